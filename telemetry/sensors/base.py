"""What a sensor is, and the one way in which a gauge's reading is asked for, checked and reported.

A sensor belongs to one thread at a time. Each metric fails alone: a driver error, NaN or a value outside the metric's
range is a reading of None with a reason, never 0 and never an exception. To keep a trace small, a gauge that stays
unavailable says so once, not nine times a second; one that keeps failing is asked less and less often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from telemetry.events import Provenance, Sample

Lane = Literal["fast", "slow"]
Clock = Callable[[], float]

FAILURES_BEFORE_BACKOFF = 5
BACKOFF_S = 10.0


class Unavailable(Exception):
    """A reading that cannot be had, with the reason as a sentence for the person."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """How a metric is described in ``Header.sensors``. ``reason`` is set when a live probe found nothing."""

    sensor: str
    metric: str
    device: int | None
    unit: str
    provenance: Provenance
    label: str
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "sensor": self.sensor,
            "metric": self.metric,
            "device": self.device,
            "unit": self.unit,
            "provenance": self.provenance if self.reason is None else "unavailable",
            "label": self.label,
            "reason": self.reason,
        }


class Sensor(Protocol):
    """Something that can be read again and again during a run. All times are seconds on the run's clock."""

    @property
    def metrics(self) -> Sequence[MetricInfo]: ...

    def begin(self, now: Clock) -> None:
        """A new run starts: forget earlier windows, take the baselines of counters."""

    def sample(self, lane: Lane, now: Clock) -> list[Sample]:
        """What there is to say in this lane; empty when nothing is new. Raises nothing for a failing device."""

    def close(self) -> None:
        """Give back what the driver lent. The sampling thread must have been joined."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """One metric and how to read it. ``read`` returns the value in ``unit`` or raises Unavailable.

    ``restart`` makes the metric windowed: a value covers the time since the last reading, and ``restart`` forgets that
    one, so that the next reading is a baseline. Without it a value holds for the moment.
    """

    metric: str
    unit: str
    provenance: Provenance
    label: str
    lane: Lane
    read: Callable[[], float]
    low: float = 0.0
    high: float = 1e18
    restart: Callable[[], None] | None = None


@dataclass(slots=True)
class _Health:
    """What a gauge's last readings were like."""

    asked_t: float | None = None
    window_t: float | None = None  # where the running window began; None asks for a baseline first
    last_reason: str | None = None
    n_failures: int = 0


class GaugeSensor:
    """A sensor made of independent gauges."""

    def __init__(self, name: str, device: int | None, gauges: Sequence[Gauge]) -> None:
        """Probes each gauge at once, since only a real value that came back means that a metric is there."""
        self._name, self._device = name, device
        self.metrics: tuple[MetricInfo, ...] = tuple(self._info(gauge) for gauge in gauges)
        reasons = {info.metric: info.reason for info in self.metrics}
        self._gauges = [g for g in gauges if reasons[g.metric] is None]
        self._absent = {metric: reason for metric, reason in reasons.items() if reason is not None}
        self._unsaid = dict(self._absent)
        self._health = {g.metric: _Health() for g in self._gauges}

    def begin(self, now: Clock) -> None:
        self._health = {g.metric: _Health() for g in self._gauges}
        self._unsaid = dict(self._absent)
        for gauge in self._gauges:
            if gauge.restart is not None:
                gauge.restart()
                self._read(gauge, now)

    def sample(self, lane: Lane, now: Clock) -> list[Sample]:
        t = now()
        said = [Sample(self._name, m, self._device, None, t, t, reason) for m, reason in self._unsaid.items()]
        self._unsaid = {}
        readings = (self._read(gauge, now) for gauge in self._gauges if gauge.lane == lane)
        return said + [reading for reading in readings if reading is not None]

    def close(self) -> None:
        """Gauges hold nothing."""

    def _info(self, gauge: Gauge) -> MetricInfo:
        reason = None
        try:
            checked(gauge.read(), gauge)
        except Unavailable as error:
            reason = str(error)
        return MetricInfo(self._name, gauge.metric, self._device, gauge.unit, gauge.provenance, gauge.label, reason)

    def _read(self, gauge: Gauge, now: Clock) -> Sample | None:
        health, t1 = self._health[gauge.metric], now()
        if health.n_failures >= FAILURES_BEFORE_BACKOFF and t1 - (health.asked_t or t1) < BACKOFF_S:
            return None
        health.asked_t = t1
        try:
            value = checked(gauge.read(), gauge)
        except Unavailable as error:
            health.n_failures += 1
            health.window_t = None
            if gauge.restart is not None:
                gauge.restart()
            return self._failed(gauge, health, str(error), t1)
        health.n_failures, health.last_reason = 0, None
        if gauge.restart is None:
            return Sample(self._name, gauge.metric, self._device, value, t1, t1)
        t0, health.window_t = health.window_t, t1
        return None if t0 is None else Sample(self._name, gauge.metric, self._device, value, t0, t1)

    def _failed(self, gauge: Gauge, health: _Health, reason: str, t: float) -> Sample | None:
        if reason == health.last_reason:
            return None
        health.last_reason = reason
        return Sample(self._name, gauge.metric, self._device, None, t, t, reason)


def unavailable(gauges: Sequence[Gauge], reason: str) -> list[Gauge]:
    """The same gauges where nothing can be read, for one reason that holds for all."""

    def refuse() -> float:
        raise Unavailable(reason)

    return [replace(gauge, read=refuse) for gauge in gauges]


def checked(value: float, gauge: Gauge) -> float:
    """The value, if it is finite and inside the gauge's range. Raises Unavailable with what was read."""
    if not math.isfinite(value):
        raise Unavailable("The driver's value is not a number.")
    if not gauge.low <= value <= gauge.high:
        raise Unavailable(f"The driver's value {value:g} {gauge.unit} is outside {gauge.low:g} to {gauge.high:g}.")
    return value
