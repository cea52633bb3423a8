"""What a model's configuration says, in one form: Hugging Face's config.json or GGUF metadata to a ``DecoderConfig``.

Covers the dense Llama family: Llama (SmolLM2 among them), Mistral, Qwen2/2.5 and Qwen3, with linear and Llama 3 rope
scaling. Anything else about the model that would change its numbers (other activations, sliding windows shorter than
the context, partial rotary, YaRN, experts) raises ``UnsupportedModel``: such a model takes the generic path or is
refused, it is never run slightly wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.specs import ModelSpec

FAMILIES = {"llama": "llama", "mistral": "mistral", "qwen2": "qwen2", "qwen3": "qwen3"}


class UnsupportedModel(ValueError):
    """The native forward does not cover this model; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How the rotary frequencies are stretched. ``linear`` uses ``factor`` only; ``llama3`` all four."""

    kind: str  # linear | llama3
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context_tokens: int = 8192


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """All that the forward needs beside the weights."""

    spec: ModelSpec
    norm_eps: float
    rope_theta: float
    rope_scaling: RopeScaling | None = None
    qk_norm: bool = False


def from_hugging_face(config: Mapping[str, Any], name: str, *, has_head: bool) -> DecoderConfig:
    """A parsed config.json; ``has_head``: the weights hold an LM head, which decides where the config is silent.

    Raises UnsupportedModel, or ValueError where a field is missing.
    """
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None:
        raise UnsupportedModel(f"{name} is a {config.get('model_type')!r} model, which has no native forward here.")
    try:
        spec = _hugging_face_spec(config, family, name, has_head)
        rope = dict(config.get("rope_parameters") or {}) or {
            "rope_theta": config.get("rope_theta", 10000.0),
            **(config.get("rope_scaling") or {}),
        }
        rope.setdefault("rope_theta", config.get("rope_theta", 10000.0))
        _refuse_other_arithmetic(config, rope, spec.max_context_tokens, name)
        return DecoderConfig(
            spec=spec,
            norm_eps=float(config["rms_norm_eps"]),
            rope_theta=float(rope["rope_theta"]),
            rope_scaling=_rope_scaling(rope, name),
            qk_norm=family == "qwen3",
        )
    except KeyError as error:
        raise ValueError(f"The config.json of {name} lacks {error}.") from error


def _hugging_face_spec(config: Mapping[str, Any], family: str, name: str, has_head: bool) -> ModelSpec:
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    return ModelSpec(
        name=name,
        family=family,
        n_layers=int(config["num_hidden_layers"]),
        hidden=hidden,
        n_heads=heads,
        n_kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or (128 if family == "qwen3" else hidden // heads)),
        intermediate=int(config["intermediate_size"]),
        vocab=int(config["vocab_size"]),
        tied=bool(config.get("tie_word_embeddings", not has_head)),
        max_context_tokens=int(config["max_position_embeddings"]),
        source="config.json",
        qkv_bias=family == "qwen2" or bool(config.get("attention_bias", False)),
    )


def _refuse_other_arithmetic(config: Mapping[str, Any], rope: Mapping[str, Any], context: int, name: str) -> None:
    if config.get("hidden_act", "silu") not in ("silu", "swish"):
        raise UnsupportedModel(f"{name} uses the activation {config['hidden_act']!r}; the native forward knows SiLU.")
    if float(rope.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0) != 1.0:
        raise UnsupportedModel(f"{name} rotates a part of each head only, which the native forward does not.")
    if config.get("quantization_config"):
        raise UnsupportedModel(f"{name} is stored quantised in a format of its own; use its full-precision files.")
    window = config.get("sliding_window")
    slides = "sliding_attention" in (config.get("layer_types") or ()) or (
        config.get("model_type") == "mistral" or bool(config.get("use_sliding_window"))
    )
    if window and slides and int(window) < context:
        raise UnsupportedModel(f"{name} attends within a window of {window} tokens, shorter than its context.")


def _rope_scaling(rope: Mapping[str, Any], name: str) -> RopeScaling | None:
    kind = str(rope.get("rope_type") or rope.get("type") or "default")
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling("linear", float(rope["factor"]))
    if kind == "llama3":
        return RopeScaling(
            "llama3",
            float(rope["factor"]),
            float(rope["low_freq_factor"]),
            float(rope["high_freq_factor"]),
            int(rope["original_max_position_embeddings"]),
        )
    raise UnsupportedModel(f"{name} scales its rotary positions by {kind!r}, which the native forward does not know.")


def from_gguf(metadata: Mapping[str, Any], name: str, *, tied: bool, vocab: int, qkv_bias: bool) -> DecoderConfig:
    """GGUF metadata; what only the tensors tell comes as keywords. Raises UnsupportedModel or ValueError."""
    architecture = str(metadata.get("general.architecture"))
    if architecture not in ("llama", "qwen2", "qwen3"):
        raise UnsupportedModel(f"{name} is a GGUF of the architecture {architecture!r}, which is not supported.")
    field = _Fields(metadata, architecture, name)
    spec = _gguf_spec(field, architecture, name, tied=tied, vocab=vocab, qkv_bias=qkv_bias)
    if int(field.get("expert_count", 0)) > 0:
        raise UnsupportedModel(f"{name} is a mixture of experts, which is not supported.")
    if int(field.get("rope.dimension_count", spec.head_dim)) != spec.head_dim:
        raise UnsupportedModel(f"{name} rotates a part of each head only, which is not supported.")
    window = int(field.get("attention.sliding_window", 0))
    if 0 < window < spec.max_context_tokens:
        raise UnsupportedModel(f"{name} attends within a window of {window} tokens, shorter than its context.")
    return DecoderConfig(
        spec=spec,
        norm_eps=float(field.need("attention.layer_norm_rms_epsilon")),
        rope_theta=float(field.get("rope.freq_base", 10000.0)),
        rope_scaling=_gguf_rope_scaling(field, name),
        qk_norm=architecture == "qwen3",
    )


def _gguf_spec(field: _Fields, family: str, name: str, *, tied: bool, vocab: int, qkv_bias: bool) -> ModelSpec:
    hidden, heads = int(field.need("embedding_length")), int(field.need("attention.head_count"))
    return ModelSpec(
        name=name,
        family=family,
        n_layers=int(field.need("block_count")),
        hidden=hidden,
        n_heads=heads,
        n_kv_heads=int(field.get("attention.head_count_kv", heads)),
        head_dim=int(field.get("attention.key_length", hidden // heads)),
        intermediate=int(field.need("feed_forward_length")),
        vocab=vocab,
        tied=tied,
        max_context_tokens=int(field.need("context_length")),
        source="GGUF metadata",
        qkv_bias=qkv_bias,
    )


def _gguf_rope_scaling(field: _Fields, name: str) -> RopeScaling | None:
    kind = str(field.get("rope.scaling.type", "none"))
    if kind == "none":
        return None
    if kind == "linear":
        return RopeScaling("linear", float(field.need("rope.scaling.factor")))
    raise UnsupportedModel(f"{name} scales its rotary positions by {kind!r}, which is not supported.")


class _Fields:
    """GGUF metadata under one architecture's prefix."""

    def __init__(self, metadata: Mapping[str, Any], architecture: str, name: str) -> None:
        self._metadata, self._prefix, self._name = metadata, architecture, name

    def get(self, key: str, default: Any) -> Any:
        return self._metadata.get(f"{self._prefix}.{key}", default)

    def need(self, key: str) -> Any:
        value = self.get(key, None)
        if value is None:
            raise ValueError(f"The metadata of {self._name} lacks {self._prefix}.{key}.")
        return value
