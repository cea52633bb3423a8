"""What a batch gains, step by step: weights are read once for all sequences, the KV cache once for each.

So throughput rises with the batch until either the KV cache outweighs the weights, the arithmetic overtakes the
reading, or the memory is full; a mixture of experts gains little at first, since each further sequence calls further
experts. This is the curve of one decode pass; queues, arrivals and mixed passes are the serving lab's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.efficiency import Calibration, calibration
from sim.engines import Setting
from sim.memory import memory_needed
from sim.roofline import RegimeName
from sim.specs import ModelSpec
from sim.timing import many_times, step_times
from sim.weights import weight_bytes
from sim.work import work_of

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """A decode pass against the batch; each field has one entry a batch. ``kv_share``: of the bytes that it moves.

    ``fits``: None where the device's memory is unknown.
    """

    batch: tuple[int, ...]
    step_s: FloatArray
    total_tok_s: FloatArray
    tok_s_each: FloatArray
    kv_share: FloatArray
    bound: tuple[RegimeName, ...]
    fits: tuple[bool | None, ...]


def batching_curve(
    spec: ModelSpec,
    setting: Setting,
    batches: Sequence[int],
    context: int,
    kv_bytes_per_element: float = 2.0,
    constants: Calibration | None = None,
) -> Curve:
    """The curve at a context common to all sequences. Raises ValueError with one sentence for impossible counts."""
    needs = [
        memory_needed(
            spec, setting.weights, kv_bytes_per_element, context, b, setting.hardware, setting.tensor_parallel, 1
        )
        for b in batches
    ]
    weights = weight_bytes(spec, setting.weights, setting.tensor_parallel)
    work = work_of(
        spec,
        list(batches),
        1,
        context,
        weights,
        kv_bytes_per_element,
        tensor_parallel=setting.tensor_parallel,
        stages=setting.stages,
    )
    times = step_times(work, setting, (constants or calibration()).values)
    count = np.asarray(batches, dtype=np.float64)
    return Curve(
        batch=tuple(batches),
        step_s=times.total_s,
        total_tok_s=count / times.total_s,
        tok_s_each=1 / times.total_s,
        kv_share=work.costs.kv_read_bytes / work.moved_bytes,
        bound=tuple(times.bound(i) for i in range(len(batches))),
        fits=tuple(need.fits for need in needs),
    )


def kv_takeover_batch(spec: ModelSpec, setting: Setting, context: int, kv_bytes_per_element: float = 2.0) -> float:
    """The batch from which a decode pass reads more KV cache than weights, at a context; infinite without a cache.

    Fractional, and exact for dense models; a mixture of experts reads more weights as the batch grows, so the batch
    is searched.
    """
    low, high = 0.0, 20.0  # logarithms to the base 2
    weights = weight_bytes(spec, setting.weights, setting.tensor_parallel)

    def kv_is_less(exponent: float) -> bool:
        work = work_of(
            spec, 2**exponent, 1, context, weights, kv_bytes_per_element, tensor_parallel=setting.tensor_parallel
        )
        return bool(work.costs.kv_read_bytes[0] < work.costs.weights_bytes[0])

    if not kv_is_less(low):
        return 1.0
    if kv_is_less(high):
        return float("inf")
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if kv_is_less(middle) else (low, middle)
    return float(2**high)


def decode_seconds(
    spec: ModelSpec,
    settings: Sequence[Setting],
    batch: ArrayLike,
    context: ArrayLike,
    kv_bytes_per_element: float = 2.0,
    constants: Calibration | None = None,
) -> FloatArray:
    """(settings, points) seconds of a decode pass, ``batch`` and ``context`` broadcast and flattened to points.

    All settings share the weight format and the tensor parallelism of the first: what differs is the device and the
    engine. Raises ValueError otherwise, and for a device without rates.
    """
    first = settings[0]
    if any(s.weights != first.weights or s.tensor_parallel != first.tensor_parallel for s in settings):
        raise ValueError("Settings compared at once must share the weight format and the tensor parallelism.")
    weights = weight_bytes(spec, first.weights, first.tensor_parallel)
    work = work_of(spec, batch, 1, context, weights, kv_bytes_per_element, tensor_parallel=first.tensor_parallel)
    return many_times(work, settings, (constants or calibration()).values)
