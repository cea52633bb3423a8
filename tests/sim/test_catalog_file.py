"""Own devices and models, from a form's fields, a file or a config.json, priced like the catalog's."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from sim.catalog_file import device_from_fields, model_from_fields, parse_catalog, read_catalog
from sim.config_json import model_from_config
from sim.costs import kv_bytes_per_token, parameter_count
from sim.hardware import CATALOG as DEVICES
from sim.hardware import all_hardware, find_hardware
from sim.models import CATALOG as MODELS
from sim.models import all_models, find_model

# As published on Hugging Face, shortened to what arithmetic reads.
LLAMA_32_1B = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}
QWEN3_06B = {
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 128,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 40960,
    "max_window_layers": 28,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
GEMMA3_4B = {
    "model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    },
}
MIXTRAL = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "tie_word_embeddings": False,
    "v_head_dim": 128,
    "vocab_size": 129280,
}


@pytest.mark.parametrize(
    ("config", "same_as"),
    [
        (LLAMA_32_1B, "Llama-3.2-1B"),
        (QWEN3_06B, "Qwen3-0.6B"),
        (MIXTRAL, "Mixtral-8x7B"),
        (DEEPSEEK_V3, "DeepSeek-V3"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_config_json_gives_the_catalogs_shape(config: dict[str, Any], same_as: str) -> None:
    own, ours = model_from_config(config, "mine"), find_model(same_as)
    assert parameter_count(own) == parameter_count(ours)
    assert kv_bytes_per_token(own, 2) == kv_bytes_per_token(ours, 2)
    assert (own.experts, own.latent, own.max_context_tokens) == (ours.experts, ours.latent, ours.max_context_tokens)


def test_gemma_3s_own_file_relies_on_its_classs_defaults() -> None:
    own, ours = model_from_config(GEMMA3_4B, "mine"), find_model("gemma-3-4b")
    assert (own.n_heads, own.n_kv_heads, own.head_dim, own.tied) == (8, 4, 256, True)
    assert (own.window_tokens, own.windowed_layers) == (ours.window_tokens, ours.windowed_layers) == (1024, 29)
    # the file's vocabulary has 64 rows more, for images
    assert parameter_count(own) - parameter_count(ours) == 64 * 2560


@pytest.mark.parametrize(
    ("change", "windows"),
    [
        ({"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 20}, (4096, 8)),
        ({"sliding_window": 4096}, (None, 0)),  # named and not used
        ({"use_sliding_window": True, "sliding_window": 4096, "layer_types": ["sliding_attention"] * 5}, (4096, 5)),
        (
            {"use_sliding_window": True, "sliding_window": 99_999, "max_window_layers": 0},
            (None, 0),
        ),  # beyond its context
    ],
)
def test_windows_are_per_layer(change: dict[str, Any], windows: tuple[int | None, int]) -> None:
    spec = model_from_config({**QWEN3_06B, **change}, "mine")
    assert (spec.window_tokens, spec.windowed_layers) == windows


def test_the_catalogs_own_rows_can_be_given_as_a_file() -> None:
    own = parse_catalog(DEVICES.read_text(encoding="utf-8"), "x")
    assert [d.name for d in own.devices] == [d.name for d in all_hardware()]
    for mine, ours in zip(own.devices, all_hardware(), strict=True):
        assert (mine.memory_bytes, mine.bandwidth_bytes_per_s) == (ours.memory_bytes, ours.bandwidth_bytes_per_s)
        assert (mine.fp16_flops, mine.bf16_flops, mine.int8_ops) == (ours.fp16_flops, ours.bf16_flops, ours.int8_ops)
    models = parse_catalog(MODELS.read_text(encoding="utf-8"), "x").models
    assert [parameter_count(m) for m in models] == [parameter_count(m) for m in all_models()]


def test_a_few_columns_are_enough(tmp_path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([["name", "memory_GiB", "bandwidth_GBps", "fp16_dense_TFLOPS"], ["My Card", "48", "900.5", "120"]])
    (tmp_path / "mine.csv").write_text(text.getvalue(), encoding="utf-8")
    own = read_catalog(tmp_path / "mine.csv")
    device = find_hardware("my-card", own.devices)
    assert device.memory_bytes == 48 << 30
    assert device.bandwidth_bytes_per_s == 900.5e9
    assert device.fp16_flops == 120e12 and device.fp8_flops is None
    assert (device.source, device.confidence) == ("given by you", "low")


def test_json_with_both_and_a_config_by_its_folder(tmp_path: Path) -> None:
    device = {"name": "d", "memory_GiB": 8, "bandwidth_GBps": 100, "fp32_TFLOPS": 1}
    model = {"name": "m", "n_layers": 2, "hidden": 64, "n_heads": 4, "n_kv_heads": 4, "intermediate": 128, "vocab": 96}
    both = {"devices": [device], "models": [{**model, "max_context_tokens": 64, "tied": True}]}
    own = parse_catalog(json.dumps(both), "x")
    assert own.devices[0].fp32_flops == 1e12 and own.models[0].head_dim == 16 and own.models[0].tied
    (tmp_path / "My-Model").mkdir()
    path = tmp_path / "My-Model" / "config.json"
    path.write_text("\ufeff" + json.dumps(LLAMA_32_1B), encoding="utf-8")
    assert find_model("my model", read_catalog(path).models).n_layers == 16


def test_own_rows_come_before_the_catalogs() -> None:
    mine = device_from_fields({"name": "RTX 4090", "memory_GiB": 48, "bandwidth_GBps": 1000, "fp16_dense_TFLOPS": 165})
    assert find_hardware("rtx-4090", [mine]).memory_bytes == 48 << 30
    assert find_hardware("rtx-4090").memory_bytes == 24 << 30


def test_text_from_a_form_is_as_good_as_numbers() -> None:
    fields = {"n_layers": 2, "hidden": 64, "n_heads": 4, "n_kv_heads": 2, "intermediate": 128, "vocab": 96}
    numbers = {"name": "m", **fields, "max_context_tokens": 64, "head_dim": 32}
    assert model_from_fields(numbers) == model_from_fields({k: str(v) for k, v in numbers.items()})


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("h100-sxm", "H100 SXM5 80GB"),
        ("4090", "RTX 4090"),
        ("GeForce RTX 4090", "RTX 4090"),
        ("m4 max", "Apple M4 Max (40-core GPU)"),
        ("MI300X", "Instinct MI300X"),
        ("gb10", "DGX Spark GB10"),
        ("tpu-v5e", "TPU v5e"),
    ],
)
def test_devices_are_found_by_what_people_type(typed: str, name: str) -> None:
    assert find_hardware(typed).name == name


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("llama-3-70b", "Meta-Llama-3-70B"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B"),
        ("Llama 2 7B", "Llama-2-7b-hf"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
        ("qwen3 30b", "Qwen3-30B-A3B"),
        ("SMOLLM2-135M-INSTRUCT", "SmolLM2-135M"),
    ],
)
def test_models_are_found_by_what_people_type(typed: str, name: str) -> None:
    assert find_model(typed).name == name


def test_every_row_is_found_by_its_own_name() -> None:
    assert all(find_hardware(spec.name) is spec for spec in all_hardware())
    assert all(find_model(spec.name) is spec for spec in all_models())
