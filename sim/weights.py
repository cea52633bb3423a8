"""The bytes of a model's weights in a format, how many of its experts a step reads, and how many weights there are.

Memory is filled by all experts; a step reads those that its tokens are routed to. Reading one figure for the other is
the commonest mistake about mixtures of experts, so both come from here, from one list of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from sim.formats import WeightFormat, embedding_bits, head_bits, matrix_bits
from sim.shape import ceil_share, matrices, vectors
from sim.specs import ModelSpec

UNQUANTISED_BITS = 16.0  # norms and biases are never stored in fewer bits

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of the stored weights as a step reads them.

    ``layers``: all matrices and biases of the layers that every step reads. ``head``: the whole LM head (for tied
    models the embedding matrix, which is then read as the head). ``embedding_row``: one row of the embedding, gathered
    for each token. ``experts``: all routed experts of all layers, of which a step reads those its tokens are sent to.
    ``attention``: the part of ``layers`` that is attention's, None where it was not told apart.
    """

    layers: int
    head: int
    norms: int
    embedding_row: int
    experts: int = 0
    attention: int | None = None


@cache
def weight_bytes(spec: ModelSpec, weights: float | WeightFormat, tensor_parallel: int = 1) -> WeightBytes:
    """Weight bytes of one rank in a format, or in one known only by its bits, scales included (Q4_1 is 5.0).

    Matrices take the format's bits; norms, biases and routers at least 16 bits, since no format quantises them.
    Raises ValueError for bits that no format has, or ranks that cannot share the heads.
    """
    form = weights if isinstance(weights, WeightFormat) else _bits_alone(weights)
    vector = max(form.bits, UNQUANTISED_BITS) / 8
    part = {"attention": 0.0, "mlp": 0.0, "experts": 0.0}
    for m in matrices(spec, tensor_parallel):
        part[m.part] += m.weights * matrix_bits(form, spec, m.role, m.part, m.n_in) / 8
    extra = vectors(spec)
    head = ceil_share(spec.vocab, tensor_parallel) * spec.hidden * head_bits(form, spec) / 8
    biases = extra.biases * vector / tensor_parallel
    return WeightBytes(
        layers=round(part["attention"] + part["mlp"] + biases),
        head=round(head),
        norms=round(extra.norms * vector),
        embedding_row=round(spec.hidden * embedding_bits(form, spec) / 8 / tensor_parallel),
        experts=round(part["experts"] + extra.expert_biases * vector / tensor_parallel),
        attention=round(part["attention"]),
    )


def stored_bytes(spec: ModelSpec, weights: WeightBytes) -> int:
    """Bytes that ``weights`` fill in memory: all experts, and an embedding table beside an untied head."""
    table = 0 if spec.tied else spec.vocab * weights.embedding_row
    return weights.layers + weights.experts + weights.norms + weights.head + table


@overload
def expert_share_read(spec: ModelSpec, n_tokens: int) -> float: ...
@overload
def expert_share_read(spec: ModelSpec, n_tokens: FloatArray) -> FloatArray: ...
def expert_share_read(spec: ModelSpec, n_tokens: int | FloatArray) -> float | FloatArray:
    """Expected share of a layer's routed experts that ``n_tokens`` tokens touch: ``1 - (1 - k/E)^n``.

    Each token takes k of E experts evenly and independently of the others; one token reads k, very many read all.
    0 without experts.
    """
    if spec.experts is None:
        return 0.0 * n_tokens
    missed: float | FloatArray = (1.0 - spec.experts.per_token / spec.experts.count) ** n_tokens
    return 1.0 - missed


def parameter_count(spec: ModelSpec) -> int:
    """All weights, a tied head counted once, all experts."""
    extra = vectors(spec)
    embeddings = spec.vocab * spec.hidden * (1 if spec.tied else 2)
    return embeddings + sum(m.weights for m in matrices(spec)) + extra.norms + extra.biases + extra.expert_biases


def active_parameter_count(spec: ModelSpec) -> int:
    """Weights that one token meets: of routed experts only its own. Embedding included, as publishers count."""
    if spec.experts is None:
        return parameter_count(spec)
    idle = spec.experts.count - spec.experts.per_token
    routed = sum(m.weights for m in matrices(spec) if m.part == "experts") + vectors(spec).expert_biases
    return parameter_count(spec) - routed * idle // spec.experts.count


def _bits_alone(bits: float) -> WeightFormat:
    if not 0 < bits <= 64:
        raise ValueError(f"A weight takes more than 0 and at most 64 bits, not {bits}.")
    return WeightFormat(f"{bits} bits", bits, "fp16", head_bits=bits, embedding_bits=bits)
