"""The two things all arithmetic is about: a model's shape and a device's rates.

Both are frozen, every field name carries its unit, and both say where their figures come from.
This file holds no catalog: rows are read by ``hardware.py``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The shape of a dense decoder of the Llama family.

    ``head_dim`` is explicit because ``hidden / n_heads`` is wrong for several families (Qwen3).
    ``tied`` heads share the embedding's bytes; their matrix product is still computed.
    """

    name: str
    family: str  # llama | mistral | qwen2 | qwen3 | other
    n_layers: int
    hidden: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool
    max_context_tokens: int
    source: str
    qkv_bias: bool = False


@dataclass(frozen=True, slots=True)
class HardwareSpec:
    """A device's published rates, dense (never with sparsity). None is unknown."""

    name: str
    vendor: str
    kind: str  # gpu | cpu | tpu | apu
    memory_bytes: int | None
    bandwidth_bytes_per_s: float | None
    bf16_flops: float | None
    int8_ops: float | None
    fp32_flops: float | None
    last_level_cache_bytes: int | None
    tdp_w: float | None
    source: str
    confidence: str
