"""The catalog of models against published sizes, and mixtures of experts and latents against hand sums."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sim.costs import (
    active_parameter_count,
    attention_flops,
    kv_bytes_per_token,
    kv_cache_bytes,
    parameter_count,
    projection_flops_per_token,
    step_cost,
    step_parts,
    weight_bytes,
)
from sim.formats import find_format
from sim.models import all_models, find_model, published_size
from sim.specs import ModelSpec
from sim.weights import stored_bytes

CASES = Path(__file__).parents[1] / "cases"
MODELS = json.loads((CASES / "e_models.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("spec", all_models(), ids=lambda spec: spec.name)
def test_every_model_has_the_published_size(spec: ModelSpec) -> None:
    published = published_size(spec)
    assert parameter_count(spec) / 1e9 == pytest.approx(published.params_billions, rel=0.01)
    assert spec.source and published.source
    if published.active_billions is not None:
        # gpt-oss and DeepSeek count active weights without the embedding table, Mixtral and Qwen with it
        table = spec.vocab * spec.hidden
        counts = [active_parameter_count(spec) / 1e9, (active_parameter_count(spec) - table) / 1e9]
        assert min(abs(c / published.active_billions - 1) for c in counts) < 0.02


def test_there_are_over_forty_models_each_with_a_name_of_its_own() -> None:
    names = [spec.name for spec in all_models()]
    assert len(set(names)) == len(names) > 40


@pytest.mark.parametrize(
    ("name", "exact"),  # the counts that Hugging Face prints for the checkpoints' tensors
    [
        ("Llama-2-7b", 6_738_415_616),
        ("Meta-Llama-3-70B", 70_553_706_496),
        ("Meta-Llama-3.1-405B", 405_853_388_800),
        ("Mixtral-8x7B", 46_702_792_704),
        ("Mixtral-8x22B", 140_630_071_296),
        ("Qwen2.5-7B", 7_615_616_512),
        ("Qwen3-30B-A3B", 30_532_122_624),
        ("gemma-2-9b", 9_241_705_984),
        ("phi-2", 2_779_683_840),
        ("Phi-3-mini-4k", 3_821_079_552),
        ("gpt-oss-20b", 20_914_757_184),
        ("gpt-oss-120b", 116_829_156_672),
    ],
)
def test_exact_counts(name: str, exact: int) -> None:
    assert parameter_count(find_model(name)) == exact


@pytest.mark.parametrize(
    ("key", "name"),
    [("smollm2_135m", "SmolLM2-135M"), ("llama3_8b", "Llama-3-8B"), ("qwen3_0_6b", "Qwen3-0.6B")],
)
def test_kv_counts_kv_heads_at_their_own_width(key: str, name: str) -> None:
    expected, spec = MODELS[key]["expect"], find_model(name)
    assert kv_bytes_per_token(spec, 2) == expected["kv_bytes_per_token_fp16"]
    mistakes = {v for k, v in expected.items() if k.startswith("kv_if")}
    assert mistakes and kv_bytes_per_token(spec, 2) not in mistakes


def test_a_tied_head_is_stored_once_and_multiplied_all_the_same() -> None:
    spec, case = find_model("SmolLM2-135M"), MODELS["smollm2_135m"]["expect"]
    assert parameter_count(spec) == case["params"] != case["params_if_untied_by_mistake"]
    weights = weight_bytes(spec, 16)
    assert stored_bytes(spec, weights) == 2 * case["params"]
    head = step_cost(spec, [(1, 0)], weights, 2, 2).flops - step_cost(spec, [(1, 0)], weights, 2, 2, 0).flops
    assert head == 2 * 576 * 49152


def test_an_untied_embedding_is_stored_and_only_its_rows_are_read() -> None:
    spec = find_model("Llama-3-8B")
    weights = weight_bytes(spec, 16)
    read = step_cost(spec, [(1, 0)], weights, 2, 2).weights_bytes
    assert stored_bytes(spec, weights) == 2 * 8_030_261_248
    assert stored_bytes(spec, weights) - read == 2 * (128_256 - 1) * 4096


def test_mixtral_fills_memory_with_all_experts_and_reads_two() -> None:
    spec, case = find_model("Mixtral-8x7B"), MODELS["mixtral_8x7b"]["expect"]
    weights = weight_bytes(spec, 16)
    assert parameter_count(spec) == case["params_total"]
    assert active_parameter_count(spec) == case["params_active"]
    assert stored_bytes(spec, weights) == 2 * case["params_total"]
    one = step_cost(spec, [(1, 0)], weights, 2, 2)
    table = 2 * 32_000 * 4096  # of which one row is read
    assert one.weights_bytes == pytest.approx(2 * case["params_active"] - table, rel=1e-4)
    norms = (2 * 32 + 1) * 4096
    products = case["params_active"] - norms - 2 * 32_000 * 4096
    assert projection_flops_per_token(spec) == 2 * products


def test_two_tokens_touch_the_expected_number_of_experts() -> None:
    """8 experts, 2 a token: the second token's 2 miss each of the first's with 6/8, so 8 (1 - (6/8)^2) = 3.5."""
    spec = find_model("Mixtral-8x7B")
    weights = weight_bytes(spec, 16)
    two = step_cost(spec, [(1, 0), (1, 0)], weights, 2, 2)
    without = weights.layers + weights.norms + weights.head + 2 * weights.embedding_row
    assert two.weights_bytes - without == pytest.approx(weights.experts * 3.5 / 8, rel=1e-9)


def test_deepseek_caches_one_latent_of_576_and_its_shared_expert_is_always_read() -> None:
    spec = find_model("DeepSeek-V3")
    # arXiv:2405.04434, table 1: d_c + d_h^R elements a token and layer: 512 + 64
    assert kv_bytes_per_token(spec, 2) == 61 * 576 * 2 == 70_272
    # by hand, of one MoE layer: q 7168x1536 + 1536x24576, kv 7168x576 + 512x32768, o 16384x7168; experts 3x7168x2048
    attention = 7168 * 1536 + 1536 * 24576 + 7168 * 576 + 512 * 32768 + 16384 * 7168
    expert = 3 * 7168 * 2048
    layers = 61 * attention + 3 * 3 * 7168 * 18432 + 58 * (9 * expert + 256 * 7168)
    assert projection_flops_per_token(spec) == 2 * layers


def test_latent_attention_takes_its_cheaper_form() -> None:
    spec = find_model("DeepSeek-V3")
    # decode over 1,000 cached: absorbed, 128 heads x (576 + 512) x 2 FLOPs a pair; expanding 1,000 latents costs more
    assert attention_flops(spec, 1, 999) == 61 * 128 * 2 * (576 + 512) * 1000
    # a prompt: expanded, 192 + 128 a pair
    assert attention_flops(spec, 1000, 0) == 61 * 128 * 2 * (192 + 128) * 500_500


def test_windows_bound_pairs_and_cache_in_their_layers_only() -> None:
    spec = find_model("gemma-3-4b")  # 29 of 34 layers see 1,024 tokens; 8 heads of 256
    pairs = 5 * 4096 + 29 * 1024
    assert attention_flops(spec, 1, 4095) == 4 * 8 * 256 * pairs
    assert kv_cache_bytes(spec, 4096, 2) == 2 * 4 * 256 * 2 * pairs
    assert kv_cache_bytes(spec, 1000, 2) == 1000 * kv_bytes_per_token(spec, 2)
    # a prompt of 1,500 within the window of the first 1,024: sum of min(i, 1024)
    windowed = 1024 * 1025 // 2 + 476 * 1024
    assert attention_flops(spec, 1500, 0) == 4 * 8 * 256 * (5 * 1500 * 1501 // 2 + 29 * windowed)


def test_one_kv_head_is_mqa() -> None:
    assert kv_bytes_per_token(find_model("gemma-3-1b"), 2) == 26 * 2 * 256 * 2


def test_ranks_share_weights_and_repeat_kv_heads() -> None:
    spec = find_model("Llama-3-70B")  # 64 heads, 8 KV heads
    form = find_format("bf16")
    weights = weight_bytes(spec, form)
    whole = stored_bytes(spec, weights)
    for ranks in (2, 4, 8):
        share = stored_bytes(spec, weight_bytes(spec, form, ranks))
        assert share == (whole - weights.norms) // ranks + weights.norms  # every rank has the norms
        assert kv_bytes_per_token(spec, 2, ranks) == kv_bytes_per_token(spec, 2) // ranks
    assert kv_bytes_per_token(spec, 2, 16) == kv_bytes_per_token(spec, 2, 8)
    assert kv_bytes_per_token(find_model("DeepSeek-V3"), 2, 8) == 70_272  # the latent serves all heads


def test_ranks_together_do_the_whole_work() -> None:
    spec = find_model("Llama-3-70B")
    whole = step_cost(spec, [(100, 50)], weight_bytes(spec, 16), 2, 2)
    rank = step_cost(spec, [(100, 50)], weight_bytes(spec, 16, 8), 2, 2, tensor_parallel=8)
    assert 8 * rank.flops == whole.flops


@pytest.mark.parametrize("name", ["Llama-3-8B", "Mixtral-8x7B", "gemma-3-4b", "DeepSeek-V3"])
@pytest.mark.parametrize("rows", [[(1, 300)], [(64, 0)], [(1, 10), (1, 2000)]])
def test_the_ledgers_parts_add_up(name: str, rows: list[tuple[int, int]]) -> None:
    spec = find_model(name)
    weights = weight_bytes(spec, find_format("q4_k_m"))
    whole, parts = step_cost(spec, rows, weights, 2, 2), step_parts(spec, rows, weights, 2, 2)
    assert sum(p.flops for p in parts) == whole.flops
    assert sum(p.bytes for p in parts) == whole.total_bytes
    assert all(p.flops >= 0 and p.bytes >= 0 for p in parts)


def test_parts_need_weights_that_tell_attention_apart() -> None:
    spec = find_model("Llama-3-8B")
    with pytest.raises(ValueError, match="attention"):
        step_parts(spec, [(1, 0)], replace(weight_bytes(spec, 16), attention=None), 2, 2)
