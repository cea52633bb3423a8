"""The two things all arithmetic is about: a model's shape and a device's rates.

Both are frozen, every field name carries its unit, and both say where their figures come from.
This file holds no catalog: rows are read by ``models.py`` and ``hardware.py``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts in place of the plain MLP, from layer ``first_dense_layers`` on.

    A token is routed to ``per_token`` of ``count`` experts and passes all ``shared`` ones; each is a gated MLP of width
    ``intermediate`` (shared ones of ``shared_intermediate``, by default the same).
    """

    count: int
    per_token: int
    intermediate: int
    shared: int = 0
    shared_intermediate: int | None = None
    first_dense_layers: int = 0


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): the cache holds one latent of ``kv_rank`` and one
    rotary key of ``rope_dim`` a token and layer, shared by all heads. ``query_rank`` None: queries are not compressed.
    """

    query_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The shape of a decoder.

    ``head_dim`` is explicit because ``hidden / n_heads`` is wrong for several families (Qwen3, Gemma 3).
    ``tied`` heads share the embedding's bytes; their matrix product is still computed.
    ``windowed_layers`` of the layers see the last ``window_tokens`` positions only (which ones does not change a cost).
    What a family adds to the common shape (norms, biases, ungated MLP) stands in ``families.py`` under ``family``.
    """

    name: str
    family: str  # a key of families.FAMILIES, or other
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
    window_tokens: int | None = None
    windowed_layers: int = 0
    experts: Experts | None = None
    latent: LatentAttention | None = None


@dataclass(frozen=True, slots=True)
class HardwareSpec:
    """A device's published rates, dense (never with sparsity). None is unknown.

    ``bf16_flops`` and ``fp16_flops`` accumulate in fp32; ``fp16_accumulate_flops`` is the rate with fp16 accumulation
    where it differs (GeForce: twice). ``cores``: shader or processor cores as the vendor counts them.
    """

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
    fp16_flops: float | None = None
    fp16_accumulate_flops: float | None = None
    fp8_flops: float | None = None
    fp4_flops: float | None = None
    cores: int | None = None
    year: int | None = None
    notes: str = ""
