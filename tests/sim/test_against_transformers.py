"""Costs against models that really run: tiny random ones of five families, counted by PyTorch itself.

PyTorch counts the products that ran. Its eager attention computes the masked pairs too, which are not useful work and
are added to our figure here by what was masked; nothing else is adjusted.
"""

from __future__ import annotations

from typing import Any

import pytest

from sim.config_json import model_from_config
from sim.costs import kv_bytes_per_token, kv_cache_bytes, parameter_count, step_cost, weight_bytes
from sim.models import find_model
from sim.shape import query_value_dims
from sim.specs import ModelSpec

pytestmark = pytest.mark.engine

WINDOW = 16
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 176,
    "vocab_size": 320,
    "max_position_embeddings": 128,
}
EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}
LATENT = {
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 48,
    "first_k_dense_replace": 1,
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 24,
    "v_head_dim": 20,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "gemma3": ("Gemma3Text", {"head_dim": 32, "sliding_window": WINDOW, "sliding_window_pattern": 3}),
    "mixtral": ("Mixtral", EXPERTS),
    "deepseek_v3": ("DeepseekV3", LATENT),
}


@pytest.fixture(params=MODELS, scope="module")
def built(request: pytest.FixtureRequest) -> tuple[ModelSpec, Any]:
    """The spec as read from the configuration's own dictionary, and the model, without fused kernels (not counted)."""
    import transformers

    prefix, extra = MODELS[request.param]
    eager = {"attn_implementation": "eager", "experts_implementation": "eager"}
    config = getattr(transformers, prefix + "Config")(**{**SIZES, **extra, **eager})
    causal = {"Gemma3Text": "Gemma3ForCausalLM"}.get(prefix, prefix + "ForCausalLM")
    model = getattr(transformers, causal)(config).eval()
    return model_from_config(config.to_dict(), request.param), model


def test_parameter_count_is_that_of_the_model(built: tuple[ModelSpec, Any]) -> None:
    spec, model = built
    assert parameter_count(spec) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("n_tokens", "context"), [(40, 0), (24, 32), (1, 12)], ids=["prompt", "chunk", "decode"])
def test_flops_agree_with_pytorchs_counter(built: tuple[ModelSpec, Any], n_tokens: int, context: int) -> None:
    spec, model = built
    counted = _counted(model, n_tokens, context)
    ours = step_cost(spec, [(n_tokens, context)], weight_bytes(spec, 32), 4, 4).flops
    assert ours + _not_useful(spec, n_tokens, context) == counted


def test_kv_bytes_are_those_of_the_real_cache(built: tuple[ModelSpec, Any]) -> None:
    spec, model = built
    for n_tokens in (WINDOW - 1, 40):
        cache = _cache_after(model, n_tokens)
        stored = sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))
        # A windowed layer's cache drops at once what the next token will not see; during a step it holds one more.
        dropped = kv_bytes_per_token(spec, 4) // spec.n_layers * spec.windowed_layers if n_tokens >= WINDOW else 0
        assert stored + dropped == kv_cache_bytes(spec, n_tokens, 4)


def test_the_embedded_models_own_shape() -> None:
    """SmolLM2-135M at full size, on PyTorch's meta device: shapes are computed, no number is."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    spec = find_model("SmolLM2-135M")
    config = LlamaConfig(
        hidden_size=spec.hidden,
        num_hidden_layers=spec.n_layers,
        num_attention_heads=spec.n_heads,
        num_key_value_heads=spec.n_kv_heads,
        head_dim=spec.head_dim,
        intermediate_size=spec.intermediate,
        vocab_size=spec.vocab,
        max_position_embeddings=spec.max_context_tokens,
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config).eval()
        counted = _counted(model, 256, 0)
    assert sum(p.numel() for p in model.parameters()) == parameter_count(spec) == 134_515_008
    ours = step_cost(spec, [(256, 0)], weight_bytes(spec, 32), 4, 4).flops
    assert ours + _not_useful(spec, 256, 0) == counted


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("Meta-Llama-3-70B", "Llama"),
        ("Mistral-7B-v0.1", "Mistral"),
        ("Qwen2.5-7B", "Qwen2"),
        ("Qwen3-8B", "Qwen3"),
        ("Qwen3-30B-A3B", "Qwen3Moe"),
        ("gemma-2-9b", "Gemma2"),
        ("gemma-3-27b-it", "Gemma3Text"),
        ("Phi-3-mini-4k-instruct", "Phi3"),
        ("Mixtral-8x7B-v0.1", "Mixtral"),
        ("DeepSeek-V3", "DeepseekV3"),
        ("gpt-oss-120b", "GptOss"),
    ],
)
def test_catalog_shapes_have_the_weights_of_the_reference_implementation(name: str, prefix: str) -> None:
    """Every family at full size on the meta device: the count is the implementation's, weight for weight."""
    import torch
    import transformers

    spec = find_model(name)
    config = getattr(transformers, prefix + "Config")(**_config_of(spec))
    causal = {"Gemma3Text": "Gemma3ForCausalLM"}.get(prefix, prefix + "ForCausalLM")
    with torch.device("meta"):
        model = getattr(transformers, causal)(config)
    assert sum(p.numel() for p in model.parameters()) == parameter_count(spec)


def _config_of(spec: ModelSpec) -> dict[str, Any]:
    config: dict[str, Any] = {
        "hidden_size": spec.hidden,
        "num_hidden_layers": spec.n_layers,
        "num_attention_heads": spec.n_heads,
        "num_key_value_heads": spec.n_kv_heads,
        "intermediate_size": spec.intermediate,
        "vocab_size": spec.vocab,
        "tie_word_embeddings": spec.tied,
        "pad_token_id": 0,
    }
    if spec.latent is None:
        config["head_dim"] = spec.head_dim
    else:
        config |= {
            "q_lora_rank": spec.latent.query_rank,
            "kv_lora_rank": spec.latent.kv_rank,
            "qk_nope_head_dim": spec.latent.nope_dim,
            "qk_rope_head_dim": spec.latent.rope_dim,
            "v_head_dim": spec.latent.value_dim,
        }
    if spec.experts:
        count = {"deepseek_v3": "n_routed_experts", "qwen3_moe": "num_experts"}.get(spec.family, "num_local_experts")
        config |= {
            count: spec.experts.count,
            "num_experts_per_tok": spec.experts.per_token,
            "moe_intermediate_size": spec.experts.intermediate,
            "n_shared_experts": spec.experts.shared,
            "first_k_dense_replace": spec.experts.first_dense_layers,
        }
    return config


def _counted(model: Any, n_tokens: int, context: int) -> int:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    cache = _cache_after(model, context) if context else _empty_cache(model)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, n_tokens, dtype=torch.long), cache=cache, logits_to_keep=1)
    return int(counter.get_total_flops())


def _empty_cache(model: Any) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=model.config)


def _cache_after(model: Any, n_tokens: int) -> Any:
    import torch

    cache = _empty_cache(model)
    with torch.no_grad():
        model(torch.zeros(1, n_tokens, dtype=torch.long), cache=cache)
    return cache


def _not_useful(spec: ModelSpec, n_tokens: int, context: int) -> int:
    """What PyTorch multiplies and we do not count: the pairs behind the causal mask and outside the window.

    In latent attention it expands the cache's latents whatever the cheaper form is.
    """
    query, value = query_value_dims(spec)
    done = useful = 0
    for windowed in (False,) * (spec.n_layers - spec.windowed_layers) + (True,) * spec.windowed_layers:
        held = min(context, spec.window_tokens - 1) if windowed and spec.window_tokens else context
        limit = spec.window_tokens if windowed and spec.window_tokens else context + n_tokens
        done += n_tokens * (held + n_tokens)
        useful += sum(min(context + i, limit) for i in range(1, n_tokens + 1))
    extra = 2 * spec.n_heads * (query + value) * (done - useful)
    if spec.latent is None:
        return extra
    latent = spec.latent
    expand = 2 * spec.n_layers * spec.n_heads * latent.kv_rank * (latent.nope_dim + latent.value_dim) * context
    expanded = 2 * spec.n_heads * (query + value) * useful + expand
    absorbed = 2 * spec.n_heads * (2 * latent.kv_rank + latent.rope_dim) * useful
    return extra + expanded - min(expanded, absorbed)
