"""Hardware activity of tensor cores, memory and SMs, from NVML's GPU performance monitoring (Hopper and newer).

A reading is the mean over the window between two snapshots. The hardware refreshes them every 100 ms, so a window is
at least 110 ms and a snapshot is never taken sooner: faster polling gives invalid values. What a flag or a name says
about support is known to be wrong on virtual GPUs, so support means that two snapshots really gave a value.

The driver fills slots of our request; a slot it leaves alone, returns with an error, NaN or above 100 % is no reading.
Tensor activity counts cycles in which a tensor pipe was busy, not the share of peak FLOP/s; DRAM activity tops out
near 80 % in practice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from telemetry.events import Sample
from telemetry.sensors.base import BACKOFF_S, FAILURES_BEFORE_BACKOFF, Clock, Lane, MetricInfo, Unavailable
from telemetry.sensors.nvml import NvmlDevice

NAME = "gpm"
MIN_WINDOW_S = 0.110
MAX_WINDOW_S = 2.0  # older snapshots say nothing about now
_PROBE_S = 0.12
_UNTOUCHED = 999  # no NVML call returns it for a filled slot


@dataclass(frozen=True, slots=True)
class _Counter:
    metric: str
    id: int  # NVML_GPM_METRIC_*; numbers, since the names changed between versions
    label: str


_COUNTERS = (
    _Counter("tensor_active", 5, "cycles in which a tensor pipe was busy"),
    _Counter("dram_active", 10, "share of the memory's theoretical bandwidth"),
    _Counter("sm_active", 2, "cycles in which an SM had work"),
)


class GpmSensor:
    """Activity counters of one GPU or MIG slice."""

    def __init__(self, device: int | None, gpu: NvmlDevice | str, sleep: Callable[[float], None] = time.sleep) -> None:
        """Probes live, which takes 0.12 s. ``gpu`` is the sentence that says why, when there is none."""
        self._device = device
        self._gpu = gpu if isinstance(gpu, NvmlDevice) else None
        self._snapshots: list[Any] = []  # the older one first; both allocated once
        self._taken_t: float | None = None  # when the newer one was taken; None before the first
        self._asked_t = -math.inf
        self._n_failures = 0
        self._slice: tuple[NvmlDevice, int] | None = None  # of a MIG device: its card and its number there
        self._said: dict[str, str] = {}
        answers = self._probe(gpu, sleep)
        self.metrics: Sequence[MetricInfo] = tuple(
            MetricInfo(
                NAME, c.metric, device, "fraction", "counter", c.label, answer if isinstance(answer, str) else None
            )
            for c, answer in zip(_COUNTERS, answers, strict=True)
        )
        self._counters = [c for c, info in zip(_COUNTERS, self.metrics, strict=True) if info.reason is None]

    def begin(self, now: Clock) -> None:
        self._taken_t = None
        self._n_failures = 0
        if self._counters:
            self.sample("fast", now)  # the first snapshot; it opens a window
        self._said = {}

    def sample(self, lane: Lane, now: Clock) -> list[Sample]:
        if lane != "fast":
            return []
        t = now()
        if not self._counters:
            return self._unavailable(t, {info.metric: info.reason or "" for info in self.metrics})
        if self._taken_t is not None and t - self._taken_t < MIN_WINDOW_S:
            return []
        if self._n_failures >= FAILURES_BEFORE_BACKOFF and t - self._asked_t < BACKOFF_S:
            return []
        self._asked_t = t
        t0, self._taken_t = self._taken_t, t
        try:
            self._take()
            if t0 is None or t - t0 > MAX_WINDOW_S:
                return []
            answers = self._answers(self._counters)
            self._n_failures = 0
        except Unavailable as error:
            self._taken_t = None
            self._n_failures += 1
            return self._unavailable(t, {c.metric: str(error) for c in self._counters})
        return self._samples(answers, t0, t)

    def close(self) -> None:
        if self._gpu is not None:
            for snapshot in self._snapshots:
                self._gpu.nvml.nvmlGpmSampleFree(snapshot)
        self._snapshots, self._counters = [], []

    def _samples(self, answers: Sequence[float | str], t0: float, t1: float) -> list[Sample]:
        samples: list[Sample] = []
        for counter, answer in zip(self._counters, answers, strict=True):
            if isinstance(answer, str):
                samples += self._unavailable(t1, {counter.metric: answer})
            else:
                self._said.pop(counter.metric, None)
                samples.append(Sample(NAME, counter.metric, self._device, answer, t0, t1))
        return samples

    def _unavailable(self, t: float, reasons: dict[str, str]) -> list[Sample]:
        """One reading of None for each metric whose reason is new."""
        new = {metric: reason for metric, reason in reasons.items() if self._said.get(metric) != reason}
        self._said |= new
        return [Sample(NAME, metric, self._device, None, t, t, reason) for metric, reason in new.items()]

    def _probe(self, gpu: NvmlDevice | str, sleep: Callable[[float], None]) -> list[float | str]:
        if isinstance(gpu, str):
            return [gpu] * len(_COUNTERS)
        try:
            if not gpu.call("nvmlGpmQueryDeviceSupport").isSupportedDevice:
                raise Unavailable("This GPU has no activity counters that the driver can read (Hopper and newer do).")
            if gpu.is_mig():
                self._slice = gpu.card(), gpu.call("nvmlDeviceGetGpuInstanceId")
            self._allocate(gpu)
            self._take()
            sleep(_PROBE_S)
            self._take()
            return self._answers(_COUNTERS)
        except Unavailable as error:
            return [str(error)] * len(_COUNTERS)

    def _allocate(self, gpu: NvmlDevice) -> None:
        for _ in range(2):
            try:
                self._snapshots.append(gpu.nvml.nvmlGpmSampleAlloc())
            except (gpu.nvml.NVMLError, AttributeError) as error:
                raise Unavailable("The driver gave no memory for its activity counters.") from error

    def _take(self) -> None:
        """Take a snapshot into the older one's place and make it the newer."""
        oldest = self._snapshots[0]
        if self._slice is None:
            self._open_gpu().call("nvmlGpmSampleGet", oldest)
        else:
            card, number = self._slice
            card.call("nvmlGpmMigSampleGet", number, oldest)
        self._snapshots.reverse()

    def _answers(self, counters: Sequence[_Counter]) -> list[float | str]:
        """A fraction for each counter, or the sentence why there is none. Raises Unavailable when the call fails."""
        nvml = self._open_gpu().nvml
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(counters)
        request.sample1, request.sample2 = self._snapshots
        for slot, counter in zip(request.metrics, counters, strict=False):
            slot.metricId, slot.nvmlReturn, slot.value = counter.id, _UNTOUCHED, math.nan
        try:
            nvml.nvmlGpmMetricsGet(request)
        except nvml.NVMLError as error:
            raise Unavailable("The driver could not work out the activity counters.") from error
        return [_fraction(slot, counter) for slot, counter in zip(request.metrics, counters, strict=False)]

    def _open_gpu(self) -> NvmlDevice:
        if self._gpu is None:
            raise Unavailable("There is no GPU.")
        return self._gpu


def _fraction(slot: Any, counter: _Counter) -> float | str:
    if slot.metricId != counter.id or slot.nvmlReturn == _UNTOUCHED:
        return "The driver left this counter out."
    if slot.nvmlReturn != 0:
        return f"The driver answered with error {slot.nvmlReturn}."
    if not math.isfinite(slot.value):
        return "The driver's value is not a number."
    if not 0 <= slot.value <= 100:
        return f"The driver's value {slot.value:g} % is outside 0 to 100 %."
    return float(slot.value) / 100
