"""What a step asks of a device, as one number per mechanism: the half of a time that knows the model.

A step's time is a sum over mechanisms of (what is asked) x (what one unit takes); ``rates.py`` holds the other half.
Kept apart like this, 10,000 predictions are one matrix product: devices x mechanisms times mechanisms x steps.

Counts come from ``costs.py``. Added here is what kernels do beyond the useful work: unpacking of weights, rows padded
to a tile in a mixture of experts, scores written to memory where attention is not fused. Everything is one rank's.

Not covered: steps that mix prefill and decode rows (their weights are read once; add their other parts).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.costs import StepCosts, attention_flops, step_costs
from sim.shape import matrices
from sim.specs import ModelSpec
from sim.weights import WeightBytes, expert_share_read

FloatArray = NDArray[np.float64]

# The mechanisms, in the order of every vector and matrix of them.
MECHANISMS = (
    "weights",  # bytes of weights read
    "unpack",  # weights unpacked (or merely loaded and multiplied) by the plain units, once for all rows
    "products",  # FLOPs of the dense products
    "experts",  # FLOPs of the routed experts, padding included
    "epilogue",  # FLOPs whose int8 block sums must be scaled in fp32
    "cache",  # bytes of KV read
    "attention",  # FLOPs of scores and values in a pass of many tokens
    "scores",  # score elements written and read again without fused attention
    "launches",  # layers, each a handful of kernels
    "steps",  # passes, each scheduled once
    "all_reduce",  # all-reduces, each a round of messages
    "wire",  # bytes a rank sends in them
    "handover",  # times the activations pass on to the next device of a layer split
)
MEMORY = ("weights", "cache", "scores")
COMPUTE = ("unpack", "products", "experts", "epilogue", "attention")

EXPERT_TILE_ROWS = 16  # rows of an expert are padded to a tile, half of one on average
VECTOR_ROWS = 4  # fewer rows an expert go through a vector kernel, which pads nothing
WIRE_BYTES_PER_ELEMENT = 2


@dataclass(frozen=True, slots=True)
class Work:
    """``asked``: (mechanisms, steps). ``costs``: useful FLOPs and bytes of each step, for MFU, MBU and the ledger."""

    asked: FloatArray
    costs: StepCosts

    @property
    def flops(self) -> FloatArray:
        """(steps,) useful FLOPs."""
        return self.costs.flops

    @property
    def moved_bytes(self) -> FloatArray:
        """(steps,) bytes that must move."""
        return self.costs.total_bytes


def work_of(
    spec: ModelSpec,
    batch: ArrayLike,
    n_tokens: ArrayLike,
    context: ArrayLike,
    weights: WeightBytes,
    kv_bytes_per_element: float,
    *,
    activation_bytes_per_element: float = 2.0,
    tensor_parallel: int = 1,
    stages: int = 1,
) -> Work:
    """The work of steps of ``batch`` equal rows, each of ``n_tokens`` new tokens on ``context`` cached ones.

    The three broadcast and are flattened. The head is computed once a row. ``stages``: devices that take turns in a
    layer split. Raises ValueError as ``step_costs`` does.
    """
    given = (np.asarray(x, dtype=np.float64) for x in (batch, n_tokens, context))
    b, n, c = (a.ravel() for a in np.broadcast_arrays(*given))
    costs = step_costs(
        spec, b, n, c, weights, kv_bytes_per_element, activation_bytes_per_element, tensor_parallel=tensor_parallel
    )
    tokens = b * n
    attended = b * attention_flops(spec, n, c, tensor_parallel)
    routed = tokens * _expert_flops_per_token(spec, tensor_parallel)
    dense = costs.flops - attended - routed
    asked = {
        "weights": costs.weights_bytes,
        "unpack": _weights_met(spec, tokens, tensor_parallel),
        "products": dense,
        "experts": routed * _expert_padding(spec, tokens),
        "epilogue": dense + routed * _expert_padding(spec, tokens),
        "cache": costs.kv_read_bytes,
        "attention": np.where(n > 1, attended, 0.0),
        "scores": np.where(n > 1, attended / (4 * spec.head_dim), 0.0),
        "launches": np.full_like(b, spec.n_layers),
        "steps": np.ones_like(b),
        "all_reduce": np.full_like(b, 2 * spec.n_layers if tensor_parallel > 1 else 0),
        "wire": 2 * spec.n_layers * tokens * spec.hidden * WIRE_BYTES_PER_ELEMENT * _wire_share(tensor_parallel),
        "handover": np.full_like(b, stages - 1),
    }
    return Work(np.stack([asked[name] for name in MECHANISMS]), costs)


def _wire_share(ranks: int) -> float:
    """A ring all-reduce sends each rank's data 2 (n - 1) / n times."""
    return 2 * (ranks - 1) / ranks


def _weights_met(spec: ModelSpec, tokens: FloatArray, ranks: int) -> FloatArray:
    """Weights that a step reads, the head included."""
    shared = sum(m.weights for m in matrices(spec, ranks) if m.part != "experts") + spec.hidden * spec.vocab / ranks
    experts = sum(m.weights for m in matrices(spec, ranks) if m.part == "experts")
    return shared + experts * expert_share_read(spec, tokens)


def _expert_flops_per_token(spec: ModelSpec, ranks: int) -> int:
    return sum(m.flops_per_token for m in matrices(spec, ranks) if m.part == "experts")


def _expert_padding(spec: ModelSpec, tokens: FloatArray) -> FloatArray:
    if spec.experts is None:
        return np.ones_like(tokens)
    rows = tokens * spec.experts.per_token / spec.experts.count
    return np.where(rows > VECTOR_ROWS, 1.0 + EXPERT_TILE_ROWS / 2 / np.maximum(rows, 1.0), 1.0)
