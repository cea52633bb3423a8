"""Memory in bytes and GiB: what fits, by how much not, and never GB for GiB."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sim.formats import find_format
from sim.hardware import find_hardware
from sim.memory import GIB, MemoryNeed, kv_tokens_that_fit, memory_needed
from sim.models import find_model

CASE = json.loads((Path(__file__).parents[1] / "cases" / "e_units.json").read_text(encoding="utf-8"))
LLAMA_70B, LLAMA_8B = find_model("Llama-3-70B"), find_model("Llama-3-8B")
RTX_4090, H100 = find_hardware("RTX 4090"), find_hardware("h100-sxm")


@pytest.mark.parametrize("row", CASE["rows"], ids=lambda row: row["gpu"])
def test_a_cards_gb_are_gib(row: dict[str, float | str]) -> None:
    """nvidia-smi's MiB are the yardstick: the catalog is above it by what the driver reserves, never below."""
    name = {"H100 80GB": "H100 SXM", "A100 80GB": "A100 SXM4 80GB"}.get(str(row["gpu"]), str(row["gpu"]))
    memory = find_hardware(name).memory_bytes
    assert memory is not None
    assert 0 <= memory / (float(row["mib"]) * 2**20) - 1 < 0.07


def test_25_gb_fit_a_24_gib_card() -> None:
    check = CASE["fit_check"]
    assert check["device_mib"] * 2**20 == check["device_bytes"] == 24 * GIB
    need = MemoryNeed(check["need_bytes"], 0, 0, check["device_bytes"])
    assert need.fits is check["fits"] is True
    assert replace(need, available_bytes=24 * 10**9).fits is False


def test_what_does_not_fit_says_by_how_much_in_gib() -> None:
    need = memory_needed(LLAMA_70B, find_format("int8"), 2, 4096, 1, RTX_4090)
    assert need.fits is False
    assert need.missing_bytes == need.needed_bytes - 24 * GIB > 0
    said = need.sentence()
    assert f"does not fit by {need.missing_bytes / GIB:.1f} GiB" in said
    assert "24.0 GiB" in said and " GB" not in said


def test_parts_by_hand() -> None:
    need = memory_needed(LLAMA_8B, find_format("bf16"), 2, 8192, 4, H100)
    assert need.weights_bytes == 2 * 8_030_261_248
    assert need.kv_bytes == 4 * 8192 * 131_072 == 4 * GIB
    # 512 rows of the widest product (gate and up 2 x 14336, in and out 2 x 4096) in 2 bytes, logits of 4 in 4 bytes
    assert need.activation_bytes == 512 * (2 * 14336 + 2 * 4096) * 2 + 4 * 128_256 * 4
    assert need.fits is True and need.sentence().startswith("It fits: 19.0 GiB of 80.0 GiB")


def test_quantised_kv_is_smaller_by_its_true_bits() -> None:
    full, q8 = (memory_needed(LLAMA_8B, 16, b, 8192).kv_bytes for b in (2, 34 / 32))
    assert q8 / full == 0.53125


def test_a_mixture_needs_room_for_all_experts() -> None:
    need = memory_needed(find_model("Mixtral-8x7B"), 16, 2, 1)
    assert need.weights_bytes == 2 * 46_702_792_704


def test_windowed_layers_stop_growing() -> None:
    gemma = find_model("gemma-3-27b")
    per_token = [
        memory_needed(gemma, 16, 2, n + 1).kv_bytes - memory_needed(gemma, 16, 2, n).kv_bytes for n in (9, 5000)
    ]
    assert per_token == [62 * 2 * 16 * 128 * 2, 10 * 2 * 16 * 128 * 2]


def test_ranks_divide_the_need() -> None:
    alone, shared = (memory_needed(LLAMA_70B, 16, 2, 4096, tensor_parallel=n) for n in (1, 8))
    assert alone.needed_bytes / 8 == pytest.approx(shared.needed_bytes, rel=2e-3)


def test_an_unknown_memory_is_not_zero() -> None:
    need = memory_needed(LLAMA_8B, 16, 2, 100, 1, replace(RTX_4090, memory_bytes=None))
    assert need.fits is None and need.missing_bytes == 0
    assert "not known" in need.sentence()
    assert kv_tokens_that_fit(LLAMA_8B, 16, 2, replace(RTX_4090, memory_bytes=None)) is None


def test_the_tokens_that_fit_are_the_last_that_fit() -> None:
    tokens = kv_tokens_that_fit(LLAMA_8B, find_format("bf16"), 2, RTX_4090, 8)
    assert tokens is not None and tokens > 1
    fits = [memory_needed(LLAMA_8B, 16, 2, n, 8, RTX_4090, chunk_tokens=1).fits for n in (tokens, tokens + 1)]
    assert fits == [True, False]
    assert kv_tokens_that_fit(LLAMA_70B, 16, 2, RTX_4090) == 0
