"""What one forward pass of a decoder costs: FLOPs, and bytes by part.

Pure arithmetic on a ``ModelSpec``: the same function prices a measured step (engine) and a simulated one. A multiply
and an add count as two FLOPs. Products are counted exactly; norms, rotary embedding, softmax and SwiGLU's elementwise
work are left out (under 1 % of a step, and no matrix unit does them), as in the FLOP counters of PyTorch and in
Kaplan et al. 2020 (arXiv:2001.08361, section 2.1), whose ``2 N + 2 L d n_ctx`` per token this refines.

Bytes are what a step must move between memory and cores if nothing stays in a cache between steps: weights once a step
(however many tokens share it), the KV cache as read and written, activations between products. For a model larger than
the last-level cache that is a lower bound of the real DRAM traffic; for one that fits, an upper bound.

With ``tensor_parallel`` every figure is one rank's. Not covered: expert and pipeline parallelism, and routers that
favour some experts (they are taken as even, which touches the most).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.shape import ceil_share, kv_heads_per_rank, matrices, query_value_dims
from sim.specs import LatentAttention, ModelSpec
from sim.weights import WeightBytes, active_parameter_count, expert_share_read, parameter_count, weight_bytes

__all__ = [
    "PartCost",
    "StepCost",
    "StepCosts",
    "WeightBytes",
    "active_parameter_count",
    "attention_flops",
    "head_flops_per_row",
    "kv_bytes_per_token",
    "kv_cache_bytes",
    "parameter_count",
    "projection_flops_per_token",
    "step_cost",
    "step_costs",
    "step_parts",
    "weight_bytes",
]

FloatArray = NDArray[np.float64]
N = TypeVar("N", int, FloatArray)


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step: FLOPs, and bytes by part."""

    flops: int
    weights_bytes: int
    kv_read_bytes: int
    kv_write_bytes: int
    activation_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_read_bytes + self.kv_write_bytes + self.activation_bytes

    @property
    def intensity_flops_per_byte(self) -> float:
        return self.flops / self.total_bytes


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Many steps at once: each field an array of the common shape of the inputs."""

    flops: FloatArray
    weights_bytes: FloatArray
    kv_read_bytes: FloatArray
    kv_write_bytes: FloatArray
    activation_bytes: FloatArray

    @property
    def total_bytes(self) -> FloatArray:
        return self.weights_bytes + self.kv_read_bytes + self.kv_write_bytes + self.activation_bytes

    @property
    def intensity_flops_per_byte(self) -> FloatArray:
        return self.flops / self.total_bytes


@dataclass(frozen=True, slots=True)
class PartCost:
    """One line of the byte ledger; all lines add up to the step's ``StepCost``."""

    name: str
    flops: int
    bytes: int


def step_cost(
    spec: ModelSpec,
    rows: Sequence[tuple[int, int]],
    weights: WeightBytes,
    kv_bytes_per_element: float,
    activation_bytes_per_element: float,
    logit_rows: int | None = None,
    tensor_parallel: int = 1,
) -> StepCost:
    """The cost of one forward pass, on one rank.

    ``rows``: one (new tokens, tokens already cached) a sequence; a decode row has one new token. ``weights``: of one
    rank, ``weight_bytes(..., tensor_parallel)``. ``logit_rows``: for how many tokens the LM head is computed, by
    default one a sequence; 0 leaves the head out, in FLOPs and in bytes.
    Raises ValueError for no rows, a row without tokens, a negative count or ranks that cannot share the heads.
    """
    if not rows or any(n < 1 or context < 0 for n, context in rows):
        raise ValueError("A step needs at least one row, each with one new token or more on top of 0 or more cached.")
    logits = len(rows) if logit_rows is None else logit_rows
    n_tokens = sum(n for n, _ in rows)
    if not 0 <= logits <= n_tokens:
        raise ValueError(f"The head cannot be computed for {logits} of {n_tokens} tokens.")
    rates = _rates(spec, tensor_parallel)
    return StepCost(
        flops=n_tokens * rates.projection_flops
        + sum(attention_flops(spec, n, context, tensor_parallel) for n, context in rows)
        + logits * rates.head_flops,
        weights_bytes=weights.layers
        + weights.norms
        + n_tokens * weights.embedding_row
        + (weights.head if logits else 0)
        + round(weights.experts * expert_share_read(spec, n_tokens)),
        kv_read_bytes=round(sum(_kv_elements_read(spec, rates, n, c) for n, c in rows) * kv_bytes_per_element),
        kv_write_bytes=round(n_tokens * rates.kv_elements * kv_bytes_per_element),
        activation_bytes=round(
            (n_tokens * rates.activation_elements + logits * rates.logit_elements) * activation_bytes_per_element
        ),
    )


def step_costs(
    spec: ModelSpec,
    batch: ArrayLike,
    n_tokens: ArrayLike,
    context: ArrayLike,
    weights: WeightBytes,
    kv_bytes_per_element: float,
    activation_bytes_per_element: float,
    logit_rows: ArrayLike | None = None,
    tensor_parallel: int = 1,
) -> StepCosts:
    """``step_cost`` of many steps, each of ``batch`` equal rows (``n_tokens`` new, ``context`` cached); they broadcast.

    ``logit_rows``: of the whole step, by default one a row. Fractional contexts are means and allowed.
    Raises ValueError as ``step_cost`` does, and for anything not finite.
    """
    b, n, c = (np.asarray(a, dtype=np.float64) for a in np.broadcast_arrays(batch, n_tokens, context))
    if not all(np.isfinite(a).all() for a in (b, n, c)) or (b < 1).any() or (n < 1).any() or (c < 0).any():
        raise ValueError("A step needs at least one row, each with one new token or more on top of 0 or more cached.")
    logits = b if logit_rows is None else np.broadcast_to(np.asarray(logit_rows, dtype=np.float64), b.shape)
    if (logits < 0).any() or (logits > b * n).any():
        raise ValueError("The head cannot be computed for fewer than 0 or more than all tokens.")
    rates = _rates(spec, tensor_parallel)
    tokens = b * n
    return StepCosts(
        flops=tokens * rates.projection_flops
        + b * attention_flops(spec, n, c, tensor_parallel)
        + logits * rates.head_flops,
        weights_bytes=weights.layers
        + weights.norms
        + tokens * weights.embedding_row
        + np.where(logits > 0, weights.head, 0)
        + weights.experts * expert_share_read(spec, tokens),
        kv_read_bytes=b * _kv_elements_read(spec, rates, n, c) * kv_bytes_per_element,
        kv_write_bytes=tokens * rates.kv_elements * kv_bytes_per_element,
        activation_bytes=(tokens * rates.activation_elements + logits * rates.logit_elements)
        * activation_bytes_per_element,
    )


def step_parts(
    spec: ModelSpec,
    rows: Sequence[tuple[int, int]],
    weights: WeightBytes,
    kv_bytes_per_element: float,
    activation_bytes_per_element: float,
    logit_rows: int | None = None,
    tensor_parallel: int = 1,
) -> tuple[PartCost, ...]:
    """The step part by part: embedding row, attention projections, scores, MLP, norms, LM head, KV and activations.

    Arguments and errors as ``step_cost``'s, whose figures the parts add up to. Raises ValueError where ``weights`` do
    not tell attention apart.
    """
    if weights.attention is None:
        raise ValueError("These weights do not say which of their bytes are attention's.")
    whole = step_cost(
        spec, rows, weights, kv_bytes_per_element, activation_bytes_per_element, logit_rows, tensor_parallel
    )
    rates = _rates(spec, tensor_parallel)
    n_tokens = sum(n for n, _ in rows)
    logits = len(rows) if logit_rows is None else logit_rows
    attention = n_tokens * rates.attention_flops
    head = logits * rates.head_flops
    experts = round(weights.experts * expert_share_read(spec, n_tokens))
    mlp_flops = n_tokens * (rates.projection_flops - rates.attention_flops)
    scores = whole.flops - attention - mlp_flops - head
    return (
        PartCost("embedding row", 0, n_tokens * weights.embedding_row),
        PartCost("attention projections", attention, weights.attention),
        PartCost("scores", scores, 0),
        PartCost("mlp", mlp_flops, weights.layers - weights.attention + experts),
        PartCost("norms", 0, weights.norms),
        PartCost("lm head", head, weights.head if logits else 0),
        PartCost("kv read", 0, whole.kv_read_bytes),
        PartCost("kv write", 0, whole.kv_write_bytes),
        PartCost("activations", 0, whole.activation_bytes),
    )


def projection_flops_per_token(spec: ModelSpec, tensor_parallel: int = 1) -> int:
    """FLOPs of all weight products but the head for one token: 2 per weight that it passes (routed experts: k of E)."""
    return _rates(spec, tensor_parallel).projection_flops


@overload
def attention_flops(spec: ModelSpec, n_tokens: int, context: int, tensor_parallel: int = 1) -> int: ...
@overload
def attention_flops(
    spec: ModelSpec, n_tokens: FloatArray, context: FloatArray, tensor_parallel: int = 1
) -> FloatArray: ...
def attention_flops(spec: ModelSpec, n_tokens: N, context: N, tensor_parallel: int = 1) -> N:
    """FLOPs of scores (Q K^T) and values (P V) of ``n_tokens`` new tokens on top of ``context`` cached ones.

    Causal: new token i sees ``context + i`` positions, i from 1, in a windowed layer at most the window. Each pair is
    worth ``2 * head_dim`` FLOPs for the score and as many for the value, in every query head (grouping shares K and V
    bytes, not FLOPs). Kernels without a causal skip compute up to twice that in a prefill; the surplus is not useful.
    Latent attention takes the cheaper of its two forms: keys and values expanded from the cached latents, or, in
    decode, queries absorbed into the latent space (DeepSeek-V2, arXiv:2405.04434, section 2.1.2).
    """
    heads = spec.n_heads // tensor_parallel
    full = spec.n_layers - spec.windowed_layers
    pairs = full * _causal_pairs(n_tokens, context, None)
    if spec.windowed_layers:
        pairs = pairs + spec.windowed_layers * _causal_pairs(n_tokens, context, spec.window_tokens)
    if spec.latent is None:
        return 4 * heads * spec.head_dim * pairs
    latent = spec.latent
    absorbed = 2 * heads * (2 * latent.kv_rank + latent.rope_dim) * pairs
    return _smaller(_expanded_flops(spec, latent, heads, pairs, context), absorbed)


def head_flops_per_row(spec: ModelSpec) -> int:
    """FLOPs of the LM head for one token, tied or not."""
    return 2 * spec.hidden * spec.vocab


def kv_bytes_per_token(spec: ModelSpec, kv_bytes_per_element: float, tensor_parallel: int = 1) -> int:
    """KV cache that one more token adds over all layers, on one rank: K and V of the KV heads, or the latent."""
    return round(_rates(spec, tensor_parallel).kv_elements * kv_bytes_per_element)


def kv_cache_bytes(spec: ModelSpec, n_tokens: int, kv_bytes_per_element: float, tensor_parallel: int = 1) -> int:
    """KV cache of one sequence of ``n_tokens``: a windowed layer keeps no more than its window."""
    kept = min(n_tokens, spec.window_tokens) if spec.window_tokens else n_tokens
    layer_tokens = (spec.n_layers - spec.windowed_layers) * n_tokens + spec.windowed_layers * kept
    return round(_kv_elements_per_layer(spec, tensor_parallel) * layer_tokens * kv_bytes_per_element)


@dataclass(frozen=True, slots=True)
class _Rates:
    """All that a step's cost is linear in, of one rank: elements and FLOPs per token and per logit row."""

    attention_flops: int
    projection_flops: int
    head_flops: int
    kv_elements: int
    activation_elements: int
    logit_elements: int


@cache
def _rates(spec: ModelSpec, tensor_parallel: int) -> _Rates:
    """Activations: each product reads its input once and writes its output once.

    Elementwise work is taken as fused into the product beside it, and attention scores as never written (flash
    attention). K and V are counted as KV traffic when attention reads them, as output of the projection here.
    """
    products = matrices(spec, tensor_parallel)
    query, value = query_value_dims(spec)
    vocab = ceil_share(spec.vocab, tensor_parallel)
    attention_io = spec.n_layers * spec.n_heads // tensor_parallel * (query + value)  # reads Q, writes its output
    return _Rates(
        attention_flops=sum(m.flops_per_token for m in products if m.part == "attention"),
        projection_flops=sum(m.flops_per_token for m in products),
        head_flops=2 * spec.hidden * vocab,
        kv_elements=spec.n_layers * _kv_elements_per_layer(spec, tensor_parallel),
        activation_elements=spec.hidden  # the gathered embedding
        + attention_io
        + sum(m.activation_elements_per_token for m in products if m.role != "router"),
        logit_elements=spec.hidden + vocab,
    )


def _kv_elements_per_layer(spec: ModelSpec, tensor_parallel: int) -> int:
    if spec.latent:
        return spec.latent.kv_rank + spec.latent.rope_dim  # one for all heads, so every rank holds it whole
    return 2 * kv_heads_per_rank(spec, tensor_parallel) * spec.head_dim


def _kv_elements_read(spec: ModelSpec, rates: _Rates, n_tokens: N, context: N) -> N:
    """Elements of the cache that a row's attention reads: its own new tokens and what they see of the cached ones."""
    per_layer = rates.kv_elements // spec.n_layers
    seen = (spec.n_layers - spec.windowed_layers) * (n_tokens + context)
    if spec.window_tokens and spec.windowed_layers:
        seen = seen + spec.windowed_layers * (n_tokens + _smaller(context, 0 * context + spec.window_tokens - 1))
    return per_layer * seen


def _causal_pairs(n_tokens: N, context: N, window: int | None) -> N:
    """Sum over new tokens i of ``min(context + i, window)``."""
    if window is None:
        return n_tokens * context + _triangle(n_tokens)
    room = _smaller(_larger(window - context, 0 * context), n_tokens)  # tokens that still see everything before them
    return room * context + _triangle(room) + (n_tokens - room) * window


def _expanded_flops(spec: ModelSpec, latent: LatentAttention, heads: int, pairs: N, context: N) -> N:
    """Keys and values of the cached tokens are made again from their latents, then attended to head by head."""
    query, value = query_value_dims(spec)
    expansion = 2 * spec.n_layers * heads * latent.kv_rank * (latent.nope_dim + latent.value_dim) * context
    return 2 * heads * (query + value) * pairs + expansion


def _triangle(n: N) -> N:
    return n * (n + 1) // 2 if isinstance(n, int) else n * (n + 1) / 2


def _smaller(a: N, b: N) -> N:
    return min(a, b) if isinstance(a, int) else np.minimum(a, b)


def _larger(a: N, b: N) -> N:
    return max(a, b) if isinstance(a, int) else np.maximum(a, b)
