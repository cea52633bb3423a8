"""Bits of weight and KV formats, against block layouts and against the sizes of real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sim.formats import BLOCK_BITS, FORMATS, KV_BYTES_PER_ELEMENT, find_format, find_kv_format
from sim.models import find_model
from sim.weights import stored_bytes, weight_bytes

CASE = json.loads((Path(__file__).parents[1] / "cases" / "e_bits.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("block", [k for k in CASE["bits_per_weight"] if k in BLOCK_BITS])
def test_a_block_takes_its_scales_along(block: str) -> None:
    assert BLOCK_BITS[block] == CASE["bits_per_weight"][block]


def test_other_formats_bits() -> None:
    assert find_format("int4-g128").bits == CASE["bits_per_weight"]["int4 group 128, 16-bit scale, 4-bit zero"]
    # OCP microscaling: 32 weights of 4 bits and one 8-bit scale; NVFP4: 16 and one
    assert find_format("mxfp4").bits == (32 * 4 + 8) / 32
    assert find_format("nvfp4").bits == (16 * 4 + 8) / 16


def test_kv_formats_against_fp16() -> None:
    assert find_kv_format("q8_0") / 2 == CASE["kv_cache_q8_0_vs_fp16"]
    assert find_kv_format("Q4_0") / 2 == CASE["kv_cache_q4_0_vs_fp16"]


@pytest.mark.parametrize(
    ("model", "form", "file_gb"),  # decimal GB of files and checkpoints as their benchmarks' authors print them
    [
        ("Llama-2-7b", "Q4_0", 3.823),
        ("Llama-2-7b", "Q8_0", 7.162),
        ("Llama-2-7b", "Q4_K_M", 4.080),
        ("Llama-2-7b", "int8", 6.872),
        ("Llama-2-7b", "int4-g32", 4.384),
        ("Llama-2-70b", "int4-g32", 43.472),
        ("Llama-3-8B", "F16", 16.063),
        ("Llama-3-8B", "Q4_K_M", 4.918),
        ("Llama-3-70B", "Q4_K_M", 42.509),
        ("Llama-3.1-405B", "Q4_K_M", 243.1),
        ("Qwen2.5-14B", "Q4_K_M", 8.987),
        ("Llama-3.2-3B", "Q4_K_M", 2.008),
        ("Qwen3-30B-A3B", "Q8_0", 32.481),
        ("Qwen3-30B-A3B", "Q4_0", 17.298),
        ("Mixtral-8x7B", "Q8_0", 49.6),
        ("DeepSeek-V3", "Q4_K_M", 404.4),
        ("phi-2", "Q4_0", 1.600),
        ("Mistral-7B-v0.1", "Q4_0", 4.112),
        ("gpt-oss-20b", "MXFP4_MOE", 12.101),
        ("gpt-oss-20b", "MXFP4", 13.8),
        ("Qwen2.5-32B", "bf16", 65.5),
    ],
)
def test_whole_models_have_the_size_of_their_files(model: str, form: str, file_gb: float) -> None:
    spec = find_model(model)
    assert stored_bytes(spec, weight_bytes(spec, find_format(form))) / 1e9 == pytest.approx(file_gb, rel=0.004)


def test_rows_that_no_k_block_fits_take_what_llama_cpp_takes() -> None:
    """SmolLM2-135M is 576 wide: its Q4_K_M holds Q5_0 and Q8_0; the published file's 105 MB hold 1.7 of vocabulary."""
    spec = find_model("SmolLM2-135M")
    assert stored_bytes(spec, weight_bytes(spec, find_format("Q4_K_M"))) / 1e6 == pytest.approx(105 - 1.7, rel=0.02)


def test_routers_and_norms_are_never_quantised() -> None:
    spec = find_model("Qwen3-30B-A3B")
    low, high = weight_bytes(spec, find_format("Q4_0")), weight_bytes(spec, find_format("bf16"))
    assert low.norms == high.norms
    router = 48 * 2048 * 128 * 2
    assert low.layers - router == pytest.approx((high.layers - router) * 4.5 / 16, rel=1e-6)


@pytest.mark.parametrize("typed", ["q4_k_m", "Q4 K M", "q4-k-m", "F16", "float16", "INT4", "8-bit", "2.5bpw"])
def test_names_are_found_as_people_write_them(typed: str) -> None:
    assert find_format(typed).bits > 1


def test_bits_alone_are_taken_at_their_word() -> None:
    assert find_format("2.5bpw").bits == 2.5


@pytest.mark.parametrize("typed", ["Q4_K_Z", "", "0bpw", "int3", "nanbpw"])
def test_an_unknown_format_lists_the_nearest(typed: str) -> None:
    with pytest.raises(LookupError, match=r"nearest|could be"):
        find_format(typed)
    with pytest.raises(LookupError, match=r"nearest|could be"):
        find_kv_format(typed)


@pytest.mark.parametrize("bits", [0, -4, float("nan"), float("inf"), 65])
def test_impossible_bits_are_refused(bits: float) -> None:
    with pytest.raises(ValueError, match="bits"):
        weight_bytes(find_model("SmolLM2-135M"), bits)


def test_every_format_has_sane_bits() -> None:
    assert all(2 < f.bits <= 32 and f.head_bits >= 4 and f.embedding_bits >= 2 for f in FORMATS.values())
    assert all(0 < size <= 4 for size in KV_BYTES_PER_ELEMENT.values())
