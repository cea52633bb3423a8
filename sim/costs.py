"""What one forward pass of a dense Llama-family decoder costs: FLOPs, and bytes by part.

Pure arithmetic on a ``ModelSpec``: the same function prices a measured step (engine) and a simulated one. A multiply
and an add count as two FLOPs. Products are counted exactly; norms, rotary embedding, softmax and SwiGLU's elementwise
work are left out (under 1 % of a step, and no matrix unit does them), as in the FLOP counters of PyTorch and in
Kaplan et al. 2020 (arXiv:2001.08361, section 2.1), whose ``2 N + 2 L d n_ctx`` per token this refines.

Bytes are what a step must move between memory and cores if nothing stays in a cache between steps: weights once a step
(however many tokens share it), the KV cache as read and written, activations between products. For a model larger than
the last-level cache that is a lower bound of the real DRAM traffic; for one that fits, an upper bound.

Not covered: mixture of experts, sliding windows, latent attention, tensor parallelism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.specs import ModelSpec

UNQUANTISED_BITS = 16.0  # norms and biases are never stored in fewer bits


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of the stored weights as a step reads them.

    ``layers``: projections, MLP and biases of all layers. ``head``: the whole LM head (for tied models the embedding
    matrix, which is then read as the head). ``embedding_row``: one row of the embedding, gathered for each token.
    """

    layers: int
    head: int
    norms: int
    embedding_row: int


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


def step_cost(
    spec: ModelSpec,
    rows: Sequence[tuple[int, int]],
    weights: WeightBytes,
    kv_bytes_per_element: float,
    activation_bytes_per_element: float,
    logit_rows: int | None = None,
) -> StepCost:
    """The cost of one forward pass.

    ``rows``: one (new tokens, tokens already cached) a sequence; a decode row has one new token. ``logit_rows``: for
    how many tokens the LM head is computed, by default one a sequence; 0 leaves the head out, in FLOPs and in bytes.
    Raises ValueError for no rows, a row without tokens or a negative count.
    """
    if not rows or any(n < 1 or context < 0 for n, context in rows):
        raise ValueError("A step needs at least one row, each with one new token or more on top of 0 or more cached.")
    logits = len(rows) if logit_rows is None else logit_rows
    n_tokens = sum(n for n, _ in rows)
    if not 0 <= logits <= n_tokens:
        raise ValueError(f"The head cannot be computed for {logits} of {n_tokens} tokens.")
    kv_token = _kv_elements_per_token(spec) * kv_bytes_per_element
    return StepCost(
        flops=n_tokens * projection_flops_per_token(spec)
        + sum(attention_flops(spec, n, context) for n, context in rows)
        + logits * head_flops_per_row(spec),
        weights_bytes=weights.layers
        + weights.norms
        + n_tokens * weights.embedding_row
        + (weights.head if logits else 0),
        kv_read_bytes=round(kv_token * sum(n + context for n, context in rows)),
        kv_write_bytes=round(kv_token * n_tokens),
        activation_bytes=round(_activation_elements(spec, n_tokens, logits) * activation_bytes_per_element),
    )


def projection_flops_per_token(spec: ModelSpec) -> int:
    """FLOPs of all weight products but the head for one token: 2 per weight (Q, K, V, O, gate, up, down)."""
    return 2 * spec.n_layers * _matrix_weights_per_layer(spec)


def attention_flops(spec: ModelSpec, n_tokens: int, context: int) -> int:
    """FLOPs of scores (Q K^T) and values (P V) of ``n_tokens`` new tokens on top of ``context`` cached ones.

    Causal: new token i sees ``context + i`` positions, i from 1, so ``n * context + n (n + 1) / 2`` pairs, each worth
    ``2 * head_dim`` FLOPs for the score and as many for the value, in every query head (grouping shares K and V bytes,
    not FLOPs). Kernels without a causal skip compute up to twice that in a prefill; the surplus is not useful work.
    """
    pairs = n_tokens * context + n_tokens * (n_tokens + 1) // 2
    return 4 * spec.n_layers * spec.n_heads * spec.head_dim * pairs


def head_flops_per_row(spec: ModelSpec) -> int:
    """FLOPs of the LM head for one token, tied or not."""
    return 2 * spec.hidden * spec.vocab


def weight_bytes(spec: ModelSpec, bits_per_weight: float) -> WeightBytes:
    """Weight bytes of a format known only by its bits, scales included (Q4_1 is 5.0, group-128 int4 4.15625).

    Matrices take ``bits_per_weight``; norms and biases at least 16 bits, since no format quantises them.
    """
    matrix, vector = bits_per_weight / 8, max(bits_per_weight, UNQUANTISED_BITS) / 8
    layer = _matrix_weights_per_layer(spec) * matrix + _biases_per_layer(spec) * vector
    return WeightBytes(
        layers=round(spec.n_layers * layer),
        head=round(spec.vocab * spec.hidden * matrix),
        norms=round(_norm_weights(spec) * vector),
        embedding_row=round(spec.hidden * matrix),
    )


def kv_bytes_per_token(spec: ModelSpec, kv_bytes_per_element: float) -> int:
    """KV cache of one token over all layers: K and V, for the KV heads only (grouped-query attention)."""
    return round(_kv_elements_per_token(spec) * kv_bytes_per_element)


def parameter_count(spec: ModelSpec) -> int:
    """All weights, a tied head counted once."""
    per_layer = _matrix_weights_per_layer(spec) + _biases_per_layer(spec)
    embeddings = spec.vocab * spec.hidden * (1 if spec.tied else 2)
    return embeddings + spec.n_layers * per_layer + _norm_weights(spec)


def _matrix_weights_per_layer(spec: ModelSpec) -> int:
    queries, keys = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
    attention = spec.hidden * (2 * queries + 2 * keys)  # Q and O; K and V
    return attention + 3 * spec.hidden * spec.intermediate  # gate, up, down


def _biases_per_layer(spec: ModelSpec) -> int:
    return (spec.n_heads + 2 * spec.n_kv_heads) * spec.head_dim if spec.qkv_bias else 0


def _norm_weights(spec: ModelSpec) -> int:
    per_head = 2 * spec.head_dim if spec.family == "qwen3" else 0  # Qwen3 norms each query and key head
    return spec.n_layers * (2 * spec.hidden + per_head) + spec.hidden


def _kv_elements_per_token(spec: ModelSpec) -> int:
    return 2 * spec.n_layers * spec.n_kv_heads * spec.head_dim


def _activation_elements(spec: ModelSpec, n_tokens: int, logit_rows: int) -> int:
    """Elements that pass between products: each product reads its input once and writes its output once.

    Elementwise work is taken as fused into the product beside it, and attention scores as never written (flash
    attention). K and V are counted as KV traffic when attention reads them, as output of the projection here.
    """
    queries, keys = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
    qkv = spec.hidden + queries + 2 * keys
    attention = 2 * queries  # reads Q, writes its output
    output = queries + spec.hidden
    mlp = (spec.hidden + 2 * spec.intermediate) + (spec.intermediate + spec.hidden)
    per_token = spec.hidden + spec.n_layers * (qkv + attention + output + mlp)  # the first: the gathered embedding
    return n_tokens * per_token + logit_rows * (spec.hidden + spec.vocab)
