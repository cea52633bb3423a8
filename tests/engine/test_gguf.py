"""GGUF: formats against ``gguf.quants``, the header against ``gguf.GGUFReader``, the model against transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Kind

from engine.catalog import embedded_model
from engine.gguf import GgufFile, GgufWeights
from engine.load import open_model
from engine.native import NativeRecipe

pytestmark = pytest.mark.engine
CPU = torch.device("cpu")
WRITABLE = (Kind.F32, Kind.F16, Kind.BF16, Kind.Q4_0, Kind.Q4_1, Kind.Q8_0)  # the package can quantise to these
RAW_ONLY = (Kind.Q4_K, Kind.Q6_K)  # and only decode these: random blocks stand for a weight
HEADS, KV_HEADS, HIDDEN, MLP, VOCAB = 4, 2, 256, 512, 96


def stored(kind: Kind, shape: tuple[int, int], seed: int = 0) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    if kind in WRITABLE:
        return gguf.quants.quantize((generator.standard_normal(shape) * 0.1).astype(np.float32), kind)
    block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (shape[0], shape[1] // block, size), dtype=np.uint8)
    halves = slice(0, 4) if kind == Kind.Q4_K else slice(208, 210)  # keep the f16 scales finite and small
    blocks[..., halves] = np.frombuffer(np.float16(0.01).tobytes() * ((halves.stop - halves.start) // 2), np.uint8)
    return blocks.reshape(shape[0], -1)


def write_model(path: Path, kind: Kind, architecture: str = "llama", fields: dict[str, Any] | None = None) -> None:
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in {
        "context_length": 128,
        "embedding_length": HIDDEN,
        "block_count": 1,
        "feed_forward_length": MLP,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
    }.items():
        writer.add_uint32(f"{architecture}.{key}", value)
    for key, value in (fields or {}).items():
        add = writer.add_string if isinstance(value, str) else writer.add_uint32
        add(f"{architecture}.{key}", value)
    writer.add_float32(f"{architecture}.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"w{i}" for i in range(VOCAB)])
    writer.add_token_merges([])
    head = HIDDEN // HEADS
    shapes = {
        "token_embd": (VOCAB, HIDDEN),
        "blk.0.attn_q": (HIDDEN, HIDDEN),
        "blk.0.attn_k": (KV_HEADS * head, HIDDEN),
        "blk.0.attn_v": (KV_HEADS * head, HIDDEN),
        "blk.0.attn_output": (HIDDEN, HIDDEN),
        "blk.0.ffn_gate": (MLP, HIDDEN),
        "blk.0.ffn_up": (MLP, HIDDEN),
        "blk.0.ffn_down": (HIDDEN, MLP),
    }
    for seed, (name, shape) in enumerate(shapes.items()):
        writer.add_tensor(f"{name}.weight", stored(kind, shape, seed), raw_dtype=kind)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.linspace(0.5, 1.5, HIDDEN, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("kind", (*WRITABLE, *RAW_ONLY), ids=lambda kind: kind.name)
def test_every_format_equals_gguf_quants(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, kind)
    weights = GgufWeights(GgufFile(path), {})
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name == "blk.0.ffn_down.weight":
            expected = gguf.quants.dequantize(tensor.data, kind)
    found = weights.dense("model.layers.0.mlp.down_proj.weight", torch.float32)
    np.testing.assert_array_equal(found.numpy(), expected)
    groups = weights.int4("model.layers.0.mlp.down_proj.weight")
    assert (groups is not None) == (kind in (Kind.Q4_0, Kind.Q4_1))
    if groups is not None:
        np.testing.assert_allclose(groups.dense().numpy(), expected, atol=1e-6)
    rows = weights.rows("model.embed_tokens.weight").rows(torch.tensor([5, 0, 5]), torch.float32)
    torch.testing.assert_close(
        rows, weights.dense("model.embed_tokens.weight", torch.float32)[[5, 0, 5]], atol=0, rtol=0
    )


@pytest.mark.parametrize("kind", (*WRITABLE, *RAW_ONLY), ids=lambda kind: kind.name)
def test_every_format_runs(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, kind)
    model = open_model(path, lambda doing, share: None)
    logits = model.build("int4", CPU, 32).prefill(torch.arange(8), 0)
    assert logits.shape == (VOCAB,) and logits.isfinite().all()


def test_header_equals_the_package_reader() -> None:
    path = embedded_model()
    assert path is not None
    ours, theirs = GgufFile(path), gguf.GGUFReader(path)
    fields = {name: field for name, field in theirs.fields.items() if not name.startswith("GGUF.")}
    assert ours.metadata.keys() == fields.keys()
    for name, field in fields.items():
        found = ours.metadata[name]
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == field.contents(), name
    assert {name: t.offset_bytes for name, t in ours.tensors.items()} == {t.name: t.data_offset for t in theirs.tensors}


def test_embedded_model_equals_transformers() -> None:
    """The package's own decoding and un-permutation (as transformers does it) into transformers' own model."""
    path = embedded_model()
    assert path is not None
    model = open_model(path, lambda doing, share: None)
    recipe = model._recipe
    assert isinstance(recipe, NativeRecipe)
    spec = model.spec
    config = transformers.LlamaConfig(
        vocab_size=spec.vocab,
        hidden_size=spec.hidden,
        intermediate_size=spec.intermediate,
        num_hidden_layers=spec.n_layers,
        num_attention_heads=spec.n_heads,
        num_key_value_heads=spec.n_kv_heads,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        reference = transformers.LlamaForCausalLM(config)
    state = {
        name: recipe.source.dense(name, torch.float32) for name in reference.state_dict() if name != "lm_head.weight"
    }
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name.startswith("blk.7.") or tensor.name == "token_embd.weight":
            check_tensor(tensor, state, spec.n_heads, spec.n_kv_heads)
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    reference.load_state_dict(state, assign=True)
    reference.model.rotary_emb = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
    ids = model.tokenizer.encode("The decode step reads every weight once for each token: 17 times, then 42. 🚀").ids
    with torch.inference_mode():
        expected = reference.eval()(torch.tensor([ids])).logits[0]
    backend = model.build("fp32", CPU, 128)
    cut = len(ids) - 4
    assert (backend.prefill(torch.tensor(ids[:cut]), 0) - expected[cut - 1]).abs().max() <= 1e-3
    for position in range(cut, len(ids)):
        assert (backend.decode(ids[position], position) - expected[position]).abs().max() <= 1e-3


def check_tensor(tensor: Any, state: dict[str, torch.Tensor], n_heads: int, n_kv_heads: int) -> None:
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj"}
    names |= {"attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj"}
    names |= {"ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    part = tensor.name.split(".")[-2]
    name = "model.embed_tokens.weight" if part == "token_embd" else f"model.layers.7.{names[part]}.weight"
    expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    if part in ("attn_q", "attn_k"):
        heads = n_heads if part == "attn_q" else n_kv_heads
        expected = expected.reshape(heads, -1, 2, expected.shape[-1]).swapaxes(1, 2).reshape(expected.shape)
    np.testing.assert_array_equal(state[name].numpy(), expected, err_msg=tensor.name)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04" + b"0" * 64, "is not a GGUF file"),
        (b"GGUF" + b"\x63\x00\x00\x00" + b"\0" * 16, "version 99"),
        (b"GGUF" + b"\x03\x00\x00\x00" + b"\xff" * 64, "damaged or cut short"),
    ],
)
def test_what_is_not_gguf_gets_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        open_model(path, lambda doing, share: None)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.999])
def test_a_file_cut_short_is_refused(share: float, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, Kind.Q8_0)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ValueError, match="cut short"):
        open_model(path, lambda doing, share: None)


@pytest.mark.parametrize(
    ("architecture", "fields", "sentence"),
    [
        ("gemma3", {}, "architecture 'gemma3'"),
        ("llama", {"expert_count": 8}, "mixture of experts"),
        ("llama", {"rope.dimension_count": 32}, "a part of each head"),
        ("llama", {"rope.scaling.type": "yarn"}, "'yarn'"),
        ("llama", {"attention.sliding_window": 64}, "window of 64"),
    ],
)
def test_models_that_would_run_wrong_are_refused(
    architecture: str, fields: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    write_model(path, Kind.F16, architecture, fields)
    with pytest.raises(ValueError, match=sentence):
        open_model(path, lambda doing, share: None)
