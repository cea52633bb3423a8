"""Our forward against transformers' on the same weights: every family, every feature, chunked prefill and decode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models

from engine.load import LoadedModel, open_model

pytestmark = pytest.mark.engine
CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {
    "vocab_size": 160,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
CASES = {
    "llama-tied": ("llama", {"tie_word_embeddings": True}),
    "llama-untied-biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-rope-llama3": ("llama", {"rope_parameters": LLAMA3_ROPE}),
    "llama-rope-linear": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}}),
    "llama-one-query-a-key": ("llama", {"num_key_value_heads": 4}),
    "mistral-head-dim": ("mistral", {"head_dim": 32, "sliding_window": None}),
    "qwen2-tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2-untied": ("qwen2", {}),
    "qwen3-head-dim": ("qwen3", {"head_dim": 32}),
}


def save_tokenizer(directory: Path, size: int) -> None:
    Tokenizer(models.WordLevel({f"w{i}": i for i in range(size)}, unk_token="w0")).save(
        str(directory / "tokenizer.json")
    )


def save_model(directory: Path, family: str, changes: dict[str, Any], **save: Any) -> transformers.PreTrainedModel:
    config = transformers.AutoConfig.for_model(family, **(SHAPE | changes))
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for name, parameter in model.named_parameters():  # biases and norms start at 0 and 1: make them count
        if parameter.dim() == 1:
            torch.nn.init.uniform_(parameter, 0.5 if "norm" in name else -0.5, 1.5 if "norm" in name else 0.5)
    model.save_pretrained(directory, **save)
    save_tokenizer(directory, config.vocab_size)
    return model


def opened(directory: Path) -> LoadedModel:
    return open_model(directory, lambda doing, share: None)


@torch.inference_mode()
def expected_logits(model: transformers.PreTrainedModel, ids: list[int]) -> torch.Tensor:
    return model(torch.tensor([ids])).logits[0]


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_transformers(case: str, tmp_path: Path) -> None:
    model = save_model(tmp_path, *CASES[case])
    ids = torch.randint(0, 160, (90,), generator=torch.Generator().manual_seed(1)).tolist()
    expected = expected_logits(model, ids)
    backend = opened(tmp_path).build("fp32", CPU, 128)

    found = {}
    for start, end in ((0, 33), (33, 34), (34, 80)):
        found[end - 1] = backend.prefill(torch.tensor(ids[start:end]), start).clone()
    for position in range(80, 90):
        found[position] = backend.decode(ids[position], position).clone()

    for position, logits in found.items():
        assert (logits - expected[position]).abs().max() <= 1e-3, position
    assert expected.abs().max() > 1.0  # the bound above would say nothing about logits near zero


def test_one_prefill_equals_chunks_after_a_longer_run(tmp_path: Path) -> None:
    """Leftovers of an earlier, longer sequence in the cache must not be seen."""
    save_model(tmp_path, "llama", {})
    backend = opened(tmp_path).build("fp32", CPU, 128)
    ids = torch.arange(3, 63)
    fresh = backend.prefill(ids, 0).clone()
    backend.prefill(torch.arange(100).flip(0), 0)
    backend.reset()
    backend.prefill(ids[:17], 0)
    torch.testing.assert_close(backend.prefill(ids[17:], 17), fresh, atol=1e-4, rtol=0)


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
def test_other_precisions_stay_near_fp32(precision: str, tmp_path: Path) -> None:
    model = save_model(tmp_path, "qwen3", {"head_dim": 32, "initializer_range": 0.1})
    ids = list(range(5, 65))
    expected = expected_logits(model, ids)
    backend = opened(tmp_path).build(precision, CPU, 128)
    backend.prefill(torch.tensor(ids[:40]), 0)
    logits = torch.stack([backend.decode(ids[position], position).clone() for position in range(40, 60)])
    agreement = torch.nn.functional.cosine_similarity(logits, expected[40:], dim=-1).min()
    assert agreement > {"bf16": 0.999, "int8": 0.998, "int4": 0.95}[precision]


def test_sharded_checkpoint_is_the_same_model(tmp_path: Path) -> None:
    model = save_model(tmp_path, "llama", {}, max_shard_size="60KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    ids = list(range(5, 25))
    logits = opened(tmp_path).build("fp32", CPU, 64).prefill(torch.tensor(ids), 0)
    torch.testing.assert_close(logits, expected_logits(model, ids)[-1], atol=1e-3, rtol=0)


def test_a_step_past_the_cache_is_refused(tmp_path: Path) -> None:
    save_model(tmp_path, "llama", {})
    backend = opened(tmp_path).build("fp32", CPU, 16)
    with pytest.raises(ValueError, match="do not fit the cache of 16"):
        backend.prefill(torch.arange(17), 0)
    with pytest.raises(ValueError, match="do not fit"):
        backend.decode(3, 16)


def test_capacity_never_passes_the_model_context(tmp_path: Path) -> None:
    save_model(tmp_path, "llama", {})
    assert opened(tmp_path).build("fp32", CPU, 100_000).capacity_tokens == 256


def test_weight_bytes_are_those_of_the_tensors(tmp_path: Path) -> None:
    """4 bytes a weight in fp32; int8 decode: one byte and a bf16 scale a row; int4: half a byte, 4 bytes a group."""
    save_model(tmp_path, "llama", {})
    layer = 128 * 64 + 64 * 64 + 3 * 64 * 96
    rows = 128 + 64 + 96 + 96 + 64
    model = opened(tmp_path)
    fp32 = model.build("fp32", CPU, 64).weight_bytes("decode")
    assert (fp32.layers, fp32.head, fp32.embedding_row) == (3 * layer * 4, 160 * 64 * 4, 64 * 4)
    int8 = model.build("int8", CPU, 64)
    assert int8.weight_bytes("decode").layers == 3 * (layer + rows * 2)
    assert int8.weight_bytes("prefill").layers == 3 * layer * 2
    assert model.build("int4", CPU, 64).weight_bytes("decode").layers == 3 * (layer // 2 + layer // 32 * 4)
