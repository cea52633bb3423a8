"""The arithmetic of a step against figures from outside: published configs, PyTorch's own counter, hand sums."""

from __future__ import annotations

import pytest

from sim.costs import (
    attention_flops,
    head_flops_per_row,
    kv_bytes_per_token,
    parameter_count,
    projection_flops_per_token,
    step_cost,
    weight_bytes,
)
from sim.specs import ModelSpec

# config.json of HuggingFaceTB/SmolLM2-135M, meta-llama/Meta-Llama-3-8B, Qwen/Qwen3-0.6B and Qwen/Qwen2.5-0.5B.
SMOLLM2 = ModelSpec("SmolLM2-135M", "llama", 30, 576, 9, 3, 64, 1536, 49152, True, 8192, "config.json")
LLAMA3_8B = ModelSpec("Llama-3-8B", "llama", 32, 4096, 32, 8, 128, 14336, 128256, False, 8192, "config.json")
QWEN3 = ModelSpec("Qwen3-0.6B", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, True, 40960, "config.json")
QWEN25 = ModelSpec("Qwen2.5-0.5B", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, True, 32768, "config.json", True)
TINY = ModelSpec("tiny", "llama", 2, 8, 2, 1, 4, 16, 32, False, 64, "invented here")


@pytest.mark.parametrize(
    ("spec", "published"),
    [(SMOLLM2, 134_515_008), (LLAMA3_8B, 8_030_261_248), (QWEN3, 596_049_920), (QWEN25, 494_032_768)],
    ids=lambda x: getattr(x, "name", ""),
)
def test_parameter_count_is_the_published_one(spec: ModelSpec, published: int) -> None:
    assert parameter_count(spec) == published


@pytest.mark.parametrize(
    ("spec", "published"), [(SMOLLM2, 23_040), (LLAMA3_8B, 131_072), (QWEN3, 114_688)], ids=lambda x: str(x)[:20]
)
def test_kv_bytes_per_token_counts_kv_heads_at_their_own_width(spec: ModelSpec, published: int) -> None:
    assert kv_bytes_per_token(spec, 2) == published


def test_qwen3_kv_at_full_context_is_4_375_gib() -> None:
    assert kv_bytes_per_token(QWEN3, 2) * 40_960 == 4.375 * 2**30


def test_quantised_kv_takes_its_scales_along() -> None:
    # q8_0 stores 34 bytes per 32 values: 8.5/16 of 16 bit
    assert kv_bytes_per_token(LLAMA3_8B, 34 / 32) == 131_072 * 8.5 / 16


def test_decode_step_by_hand() -> None:
    # One layer's matrices: Q 8x8, K and V 8x4, O 8x8 = 192; gate, up, down 3 x 8x16 = 384; two layers 1152; x2 = 2304.
    # Attention: 10 positions visible x 2 heads x 4 wide x (2 score + 2 value) x 2 layers = 640. Head: 2 x 8 x 32 = 512.
    cost = step_cost(TINY, [(1, 9)], weight_bytes(TINY, 32), 4, 4)
    assert cost.flops == 2304 + 640 + 512
    # weights: 1152 x 4, norms (2 x 2 x 8 + 8) x 4, one embedding row 8 x 4, head 8 x 32 x 4
    assert cost.weights_bytes == 4608 + 160 + 32 + 1024
    # KV: 2 (K, V) x 2 layers x 4 wide x 4 bytes = 64 a token
    assert (cost.kv_read_bytes, cost.kv_write_bytes) == (640, 64)
    # activations a layer: QKV 8 -> 16, attention 8 -> 8, O 8 -> 8, gate and up 8 -> 32, down 16 -> 8; embedding 8;
    # head 8 -> 32
    assert cost.activation_bytes == 4 * (8 + 2 * (24 + 16 + 16 + 40 + 24) + 40)
    assert cost.total_bytes == 5824 + 704 + cost.activation_bytes


def test_chunks_of_a_prefill_cost_what_the_whole_costs_but_reread_the_weights() -> None:
    weights = weight_bytes(SMOLLM2, 16)
    whole = step_cost(SMOLLM2, [(500, 0)], weights, 2, 2)
    chunks = [
        step_cost(SMOLLM2, [(256, 0)], weights, 2, 2, logit_rows=0),
        step_cost(SMOLLM2, [(244, 256)], weights, 2, 2),
    ]
    assert sum(c.flops for c in chunks) == whole.flops
    assert sum(c.kv_write_bytes for c in chunks) == whole.kv_write_bytes
    assert sum(c.weights_bytes for c in chunks) == whole.weights_bytes + weights.layers + weights.norms
    assert sum(c.kv_read_bytes for c in chunks) == (256 + 500) * 23_040


def test_batch_shares_weights_and_keeps_each_context() -> None:
    weights = weight_bytes(LLAMA3_8B, 16)
    alone = [step_cost(LLAMA3_8B, [(1, c)], weights, 2, 2) for c in (100, 4000)]
    both = step_cost(LLAMA3_8B, [(1, 100), (1, 4000)], weights, 2, 2)
    assert both.flops == sum(c.flops for c in alone)
    assert both.kv_read_bytes == sum(c.kv_read_bytes for c in alone) == 4102 * 131_072
    assert both.weights_bytes == alone[0].weights_bytes + weights.embedding_row


def test_head_only_for_the_rows_that_need_logits() -> None:
    weights = weight_bytes(SMOLLM2, 16)
    with_head = step_cost(SMOLLM2, [(256, 0)], weights, 2, 2)
    without = step_cost(SMOLLM2, [(256, 0)], weights, 2, 2, logit_rows=0)
    every = step_cost(SMOLLM2, [(256, 0)], weights, 2, 2, logit_rows=256)
    assert with_head.flops - without.flops == head_flops_per_row(SMOLLM2) == 2 * 576 * 49152
    assert every.flops - without.flops == 256 * head_flops_per_row(SMOLLM2)
    assert with_head.weights_bytes - without.weights_bytes == 576 * 49152 * 2


def test_weight_bytes_by_format() -> None:
    # a Q4_1 block stores 32 weights in 20 bytes (5 bits each); norms stay at 16 bits or more
    q4_1, bf16 = weight_bytes(SMOLLM2, 5.0), weight_bytes(SMOLLM2, 16)
    assert q4_1.layers / bf16.layers == 5 / 16
    assert q4_1.norms == bf16.norms
    total = bf16.layers + bf16.head + bf16.norms
    assert total == 2 * 134_515_008  # tied: the embedding matrix is the head


@pytest.mark.parametrize(
    ("rows", "logit_rows"), [([], None), ([(0, 4)], None), ([(1, -1)], None), ([(4, 0)], 5), ([(4, 0)], -1)]
)
def test_impossible_steps_are_refused(rows: list[tuple[int, int]], logit_rows: int | None) -> None:
    with pytest.raises(ValueError, match=r"[Tt]oken"):
        step_cost(TINY, rows, weight_bytes(TINY, 16), 2, 2, logit_rows)


@pytest.mark.engine
@pytest.mark.parametrize(("n_tokens", "context"), [(48, 0), (32, 32), (1, 63)], ids=["prompt", "chunk", "decode"])
def test_flops_agree_with_pytorchs_counter(n_tokens: int, context: int) -> None:
    """PyTorch counts the products that ran; its attention computes the masked pairs too, which are not useful work."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    spec = ModelSpec("tiny", "llama", 3, 64, 4, 2, 16, 176, 320, False, 128, "invented here")
    model = LlamaForCausalLM(_config(LlamaConfig, spec)).eval()
    assert sum(p.numel() for p in model.parameters()) == parameter_count(spec)
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        if context:
            model(torch.zeros(1, context, dtype=torch.long), cache=cache)
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, n_tokens, dtype=torch.long), cache=cache, logits_to_keep=1)
    masked_pairs = n_tokens * (n_tokens - 1) // 2
    masked_flops = 4 * spec.n_layers * spec.n_heads * spec.head_dim * masked_pairs
    ours = step_cost(spec, [(n_tokens, context)], weight_bytes(spec, 32), 4, 4).flops + masked_flops
    assert ours == pytest.approx(counter.get_total_flops(), rel=0.01)
    assert ours == (
        n_tokens * projection_flops_per_token(spec)
        + attention_flops(spec, n_tokens, context)
        + masked_flops
        + head_flops_per_row(spec)
    )


@pytest.mark.engine
def test_kv_bytes_equal_a_real_cache() -> None:
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    spec = ModelSpec("tiny", "llama", 3, 64, 4, 2, 16, 176, 320, False, 128, "invented here")
    model = LlamaForCausalLM(_config(LlamaConfig, spec)).eval()
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(torch.zeros(1, 20, dtype=torch.long), cache=cache)
    stored = sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))
    assert stored == 20 * kv_bytes_per_token(spec, 4)


def _config(config_class: type, spec: ModelSpec) -> object:
    return config_class(
        hidden_size=spec.hidden,
        intermediate_size=spec.intermediate,
        num_hidden_layers=spec.n_layers,
        num_attention_heads=spec.n_heads,
        num_key_value_heads=spec.n_kv_heads,
        head_dim=spec.head_dim,
        vocab_size=spec.vocab,
        max_position_embeddings=spec.max_context_tokens,
        tie_word_embeddings=spec.tied,
        attn_implementation="eager",  # the counter does not see inside the fused CPU kernel
    )
