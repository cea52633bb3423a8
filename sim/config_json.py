"""A Hugging Face config.json to a ``ModelSpec``: what a publisher writes beside the weights.

Covers Llama, Mistral, Qwen2, Qwen3, Qwen3-MoE, Gemma 2 and 3 (text part), Phi-3, Mixtral, DeepSeek-V3 and gpt-oss. A
config.json leaves out what equals its class's default, so those defaults stand here where a real file relies on them.
Another architecture is refused in one sentence rather than priced as something it is not. Quantisation is not read:
the weight format is chosen beside the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sim.checks import check_count
from sim.specs import Experts, LatentAttention, ModelSpec

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Architecture:
    """How one ``model_type`` writes its shape: ``defaults`` for absent keys, ``rest`` for what only it has."""

    family: str
    rest: Callable[[ModelSpec, Config], ModelSpec]
    defaults: Mapping[str, Any]


def model_from_config(config: Config, name: str) -> ModelSpec:
    """The shape that a parsed config.json describes.

    Raises ValueError with one sentence: an architecture that is not covered, a field that is absent or no whole number.
    """
    kind = config.get("model_type")
    if kind == "gemma3" and isinstance(config.get("text_config"), Mapping):
        config, kind = {**config["text_config"]}, "gemma3_text"
    architecture = _ARCHITECTURES.get(str(kind))
    if architecture is None:
        raise ValueError(
            f"{name} is a {kind!r} model, whose costs are not known; known are {', '.join(_ARCHITECTURES)}."
        )
    present = {key: value for key, value in config.items() if value is not None}
    full = {"tie_word_embeddings": False, **architecture.defaults, **present}
    try:
        return architecture.rest(_common(full, architecture.family, name), full)
    except KeyError as error:
        raise ValueError(f"The config.json of {name} does not say {error.args[0]!r}.") from None


def _common(config: Config, family: str, name: str) -> ModelSpec:
    hidden, heads = _whole(config, "hidden_size"), _whole(config, "num_attention_heads")
    if "head_dim" not in config and hidden % heads:
        raise ValueError(f"The config.json of {name} needs head_dim: {hidden} is no multiple of {heads} heads.")
    return ModelSpec(
        name=name,
        family=family,
        n_layers=_whole(config, "num_hidden_layers"),
        hidden=hidden,
        n_heads=heads,
        n_kv_heads=_whole(config, "num_key_value_heads") if "num_key_value_heads" in config else heads,
        head_dim=_whole(config, "head_dim") if "head_dim" in config else hidden // heads,
        intermediate=_whole(config, "intermediate_size"),
        vocab=_whole(config, "vocab_size"),
        tied=bool(config["tie_word_embeddings"]),
        max_context_tokens=_whole(config, "max_position_embeddings"),
        source="config.json",
        qkv_bias=family == "qwen2" or bool(config.get("attention_bias", False)),
    )


def _whole(config: Config, key: str) -> int:
    return check_count(f"{key} in the config.json", config[key])


def _plain(spec: ModelSpec, config: Config) -> ModelSpec:
    return spec


def _every_layer_windowed(spec: ModelSpec, config: Config) -> ModelSpec:
    return _with_windows(spec, config, spec.n_layers)


def _qwen_windows(spec: ModelSpec, config: Config) -> ModelSpec:
    """Qwen names a window that it does not use unless ``use_sliding_window``, and then from a layer on."""
    if not config.get("use_sliding_window"):
        return spec
    return _with_windows(spec, config, max(0, spec.n_layers - int(config.get("max_window_layers", 0))))


def _interleaved_windows(spec: ModelSpec, config: Config) -> ModelSpec:
    """All layers but every ``sliding_window_pattern``-th."""
    return _with_windows(spec, config, spec.n_layers - spec.n_layers // _whole(config, "sliding_window_pattern"))


def _with_windows(spec: ModelSpec, config: Config, by_default: int) -> ModelSpec:
    kinds = config.get("layer_types")
    layers = sum(kind == "sliding_attention" for kind in kinds) if kinds else by_default
    if not layers or "sliding_window" not in config:
        return spec
    window = _whole(config, "sliding_window")
    return spec if window >= spec.max_context_tokens else replace(spec, window_tokens=window, windowed_layers=layers)


def _mixtral(spec: ModelSpec, config: Config) -> ModelSpec:
    experts = Experts(_whole(config, "num_local_experts"), _whole(config, "num_experts_per_tok"), spec.intermediate)
    return _with_windows(replace(spec, experts=_checked(experts, spec)), config, spec.n_layers)


def _gpt_oss(spec: ModelSpec, config: Config) -> ModelSpec:
    experts = Experts(_whole(config, "num_local_experts"), _whole(config, "num_experts_per_tok"), spec.intermediate)
    return _interleaved_windows(replace(spec, experts=_checked(experts, spec)), config)


def _qwen3_moe(spec: ModelSpec, config: Config) -> ModelSpec:
    if config.get("decoder_sparse_step", 1) != 1:
        raise ValueError(f"{spec.name} has experts in some layers only, which is not covered.")
    count = config.get("num_experts") or config["num_local_experts"]
    experts = Experts(
        check_count("num_experts in the config.json", count),
        _whole(config, "num_experts_per_tok"),
        _whole(config, "moe_intermediate_size"),
        first_dense_layers=len(config.get("mlp_only_layers") or ()),
    )
    return _qwen_windows(replace(spec, experts=_checked(experts, spec)), config)


def _deepseek_v3(spec: ModelSpec, config: Config) -> ModelSpec:
    latent = LatentAttention(
        query_rank=_whole(config, "q_lora_rank") if "q_lora_rank" in config else None,
        kv_rank=_whole(config, "kv_lora_rank"),
        nope_dim=_whole(config, "qk_nope_head_dim"),
        rope_dim=_whole(config, "qk_rope_head_dim"),
        value_dim=_whole(config, "v_head_dim"),
    )
    count = config.get("n_routed_experts") or config["num_local_experts"]
    experts = Experts(
        check_count("n_routed_experts in the config.json", count),
        _whole(config, "num_experts_per_tok"),
        _whole(config, "moe_intermediate_size"),
        shared=_whole(config, "n_shared_experts") if config.get("n_shared_experts") else 0,
        first_dense_layers=int(config.get("first_k_dense_replace", 0)),
    )
    width = latent.nope_dim + latent.rope_dim
    return replace(spec, latent=latent, experts=_checked(experts, spec), n_kv_heads=spec.n_heads, head_dim=width)


def _checked(experts: Experts, spec: ModelSpec) -> Experts:
    if experts.per_token > experts.count:
        raise ValueError(f"{spec.name} cannot send a token to {experts.per_token} of {experts.count} experts.")
    if not 0 <= experts.first_dense_layers < spec.n_layers:
        raise ValueError(f"{spec.name} has {spec.n_layers} layers; {experts.first_dense_layers} cannot be dense.")
    return experts


_GEMMA = {"tie_word_embeddings": True, "head_dim": 256}
_ARCHITECTURES: dict[str, _Architecture] = {
    "llama": _Architecture("llama", _plain, {}),
    "mistral": _Architecture("mistral", _every_layer_windowed, {}),
    "qwen2": _Architecture("qwen2", _qwen_windows, {}),
    "qwen3": _Architecture("qwen3", _qwen_windows, {"head_dim": 128}),
    "qwen3_moe": _Architecture("qwen3_moe", _qwen3_moe, {"head_dim": 128}),
    "gemma2": _Architecture("gemma2", _interleaved_windows, {**_GEMMA, "sliding_window_pattern": 2}),
    "gemma3_text": _Architecture(
        "gemma3",
        _interleaved_windows,
        {
            **_GEMMA,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "vocab_size": 262_208,
            "max_position_embeddings": 131_072,
            "sliding_window": 4096,
            "sliding_window_pattern": 6,
        },
    ),
    "phi3": _Architecture("phi3", _every_layer_windowed, {}),
    "mixtral": _Architecture("mixtral", _mixtral, {"num_local_experts": 8, "num_experts_per_tok": 2}),
    "deepseek_v3": _Architecture("deepseek_v3", _deepseek_v3, {}),
    "gpt_oss": _Architecture(
        "gpt_oss", _gpt_oss, {"head_dim": 64, "attention_bias": True, "sliding_window_pattern": 2}
    ),
}
