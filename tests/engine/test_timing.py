"""Device times tied to the host's clock, and what the heart-beat knows."""

from __future__ import annotations

import time

import pytest
import torch

from engine import timing
from engine.activity import Activity
from engine.timing import DeviceTimer, HostTimer

pytestmark = pytest.mark.engine


class Clock:
    """Host and device clocks that advance together, the device's drifting by a set factor."""

    def __init__(self, drift: float) -> None:
        self.host_s, self._drift = 100.0, drift

    @property
    def device_ms(self) -> float:
        return self.host_s * 1e3 * self._drift


class Event:
    def __init__(self, clock: Clock) -> None:
        self._clock, self._at = clock, 0.0

    def record(self, stream: object) -> None:
        self._at = self._clock.device_ms

    def synchronize(self) -> None: ...

    def elapsed_time(self, later: Event) -> float:
        return later._at - self._at


def timer_on(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> DeviceTimer:
    monkeypatch.setattr(torch.cuda, "Event", lambda enable_timing: Event(clock))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock.host_s)
    return DeviceTimer(torch.device("cuda", 0))


def test_device_steps_lie_on_the_hosts_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1.0)
    timer = timer_on(clock, monkeypatch)
    timer.tie()
    clock.host_s += 2.0
    timer.start()
    clock.host_s += 0.5
    timer.stop()
    clock.host_s += 1.0  # the host looks later; the step's time does not change
    assert timer.read() == pytest.approx((102.0, 102.5))


def test_the_residual_is_the_greatest_disagreement_between_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1.001)
    timer = timer_on(clock, monkeypatch)
    timer.tie()
    assert timer.clock()["residual_s"] is None
    for seconds in (10.0, 1.0):
        clock.host_s += seconds
        timer.tie()
    assert timer.clock()["residual_s"] == pytest.approx(0.01)


def test_an_untied_device_clock_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    timer = timer_on(Clock(1.0), monkeypatch)
    with pytest.raises(ValueError, match="not been tied"):
        timer.read()


def test_the_hosts_timer_ignores_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: -5.0)
    timer = HostTimer()
    timer.tie()
    timer.start()
    timer.stop()
    t0, t1 = timer.read()
    assert 0 <= t1 - t0 < 5
    assert timer.clock() == {"name": "perf_counter", "residual_s": None}


def test_the_beat_knows_what_is_done_since_when_and_how_long_it_usually_takes() -> None:
    activity = Activity()
    activity.begin("decode")
    assert activity.read()[2] is None
    for _ in range(3):
        activity.begin("decode")
    doing, since_s, median_s = activity.read()
    assert doing == "decode" and since_s >= 0
    assert median_s is not None and 0 <= median_s < 1
