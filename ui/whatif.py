"""What the what-if panel shows, computed at once for all devices and batches: pure, vectorised, no page.

A slider's move asks for many decode passes on some dozens of devices; ``sim.batching.decode_seconds`` makes them one
matrix product, so the panel follows without a lag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim.batching import Curve, batching_curve, decode_seconds, kv_takeover_batch
from sim.efficiency import calibration
from sim.engines import Setting, bandwidth_bytes_per_s, compute_path
from sim.memory import MemoryNeed, memory_needed
from sim.predict import Priced, price
from sim.schedule import Passes, chunk_tokens, prefill_passes
from sim.specs import HardwareSpec, ModelSpec

BATCHES = tuple(2**n for n in range(11))
CONTEXTS = tuple(2**n for n in range(7, 18))


@dataclass(frozen=True, slots=True)
class Question:
    """One position of all sliders. ``setting``: the device that is looked at closely."""

    spec: ModelSpec
    setting: Setting
    kv_bytes_per_element: float
    batch: int
    context: int


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """Decode of all sequences together on one device; None and the missing bytes where it does not fit.

    ``low`` and ``high``: the tenth and ninetieth of what the speed may be.
    """

    name: str
    tok_s: float | None
    low: float | None
    high: float | None
    missing_bytes: int


@dataclass(frozen=True, slots=True)
class Point:
    """Where passes stand under the roof."""

    label: str
    intensity: float
    flops_per_s: float


@dataclass(frozen=True, slots=True)
class Roof:
    """The device's two limits, of all its ranks together, and what stands under them."""

    flops_per_s: float
    bytes_per_s: float
    units: str
    reading: Point
    writing: tuple[Point, ...]  # one for each of ``BATCHES``
    asked: Point

    @property
    def ridge(self) -> float:
        return self.flops_per_s / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of a decode pass by batch. ``takeover``: the batch from which the KV cache outweighs the weights."""

    batches: tuple[int, ...]
    weights_bytes: tuple[float, ...]
    kv_bytes: tuple[float, ...]
    takeover: float
    most_that_fit: int | None  # of ``batches``; None where none fits or the memory is unknown


def speeds(question: Question, settings: Sequence[Setting]) -> tuple[DeviceSpeed, ...]:
    """Decode speed on each setting, in the order given; engines may differ, the weight format may not."""
    seconds = decode_seconds(question.spec, settings, question.batch, question.context, question.kv_bytes_per_element)[
        :, 0
    ]
    return tuple(_speed(question, s, float(time_s)) for s, time_s in zip(settings, seconds, strict=True))


def _speed(question: Question, setting: Setting, time_s: float) -> DeviceSpeed:
    need = _need(question, setting.hardware)
    if need.fits is False:
        return DeviceSpeed(setting.hardware.name, None, None, None, need.missing_bytes)
    spread = calibration().spread("decode" if question.batch == 1 else "batching", setting)
    tok_s = question.batch / time_s
    return DeviceSpeed(setting.hardware.name, tok_s, tok_s / spread.p90, tok_s / spread.p10, 0)


def need(question: Question) -> MemoryNeed:
    """What the device that is looked at must hold."""
    return _need(question, question.setting.hardware)


def _need(question: Question, hardware: HardwareSpec) -> MemoryNeed:
    return memory_needed(
        question.spec,
        question.setting.weights,
        question.kv_bytes_per_element,
        question.context,
        question.batch,
        hardware,
        question.setting.tensor_parallel,
    )


def roof(question: Question) -> Roof:
    """The roofline of the device with reading a prompt of the context's length, and writing at each batch."""
    setting, q = question.setting, question
    batches = (*BATCHES, q.batch)
    passes = prefill_passes(q.context, 1, chunk_tokens(setting, q.context))
    reading = price(q.spec, setting, passes, q.kv_bytes_per_element)
    writing = price(q.spec, setting, [Passes(1, b, 1, q.context) for b in batches], q.kv_bytes_per_element)
    ranks, path = setting.tensor_parallel, compute_path(setting)
    points = [_written(writing, i, b, ranks) for i, b in enumerate(batches)]
    return Roof(
        path.flops_per_s * ranks,
        bandwidth_bytes_per_s(setting.hardware) * ranks,
        path.name,
        Point("reading", reading.flops / reading.moved_bytes, reading.flops / reading.total_s * ranks),
        tuple(points[:-1]),
        points[-1],
    )


def _written(priced: Priced, i: int, batch: int, ranks: int) -> Point:
    flops, moved = float(priced.work.flops[i]), float(priced.work.moved_bytes[i])
    return Point(f"writing, batch {batch}", flops / moved, flops / float(priced.times.total_s[i]) * ranks)


def traffic(question: Question) -> Traffic:
    """What a decode pass reads by batch, of all ranks together."""
    q = question
    curve = batching_curve(q.spec, q.setting, BATCHES, q.context, q.kv_bytes_per_element)
    costs = price(q.spec, q.setting, [Passes(1, b, 1, q.context) for b in BATCHES], q.kv_bytes_per_element).work.costs
    ranks = q.setting.tensor_parallel
    return Traffic(
        BATCHES,
        tuple(float(x) for x in np.asarray(costs.weights_bytes) * ranks),
        tuple(float(x) for x in np.asarray(costs.kv_read_bytes) * ranks),
        kv_takeover_batch(q.spec, q.setting, q.context, q.kv_bytes_per_element),
        _most_that_fit(curve),
    )


def _most_that_fit(curve: Curve) -> int | None:
    return max((b for b, fits in zip(curve.batch, curve.fits, strict=True) if fits), default=None)
