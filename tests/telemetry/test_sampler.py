"""The beat, the lanes, and an end that loses nothing and waits for nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from telemetry.events import Sample
from telemetry.sampler import FAST_INTERVAL_S, SLOW_INTERVAL_S, Sampler, _following
from telemetry.sensors import open_sensors
from telemetry.sensors.base import Clock, Lane, MetricInfo
from telemetry.sensors.cpu import open_cpu
from telemetry.sensors.gpm import MIN_WINDOW_S


class Recording:
    """A sensor that notes when it was asked."""

    metrics: Sequence[MetricInfo] = ()

    def __init__(self, fails: bool = False) -> None:
        self.asked: list[tuple[Lane, int]] = []
        self._fails = fails

    def begin(self, now: Clock) -> None:
        self.asked = []

    def sample(self, lane: Lane, now: Clock) -> list[Sample]:
        if self._fails:
            raise RuntimeError("a sensor with a bug")
        self.asked.append((lane, threading.get_ident()))
        return [Sample("test", lane, None, 1.0, now(), now())]

    def close(self) -> None: ...


def test_both_lanes_are_read_on_one_other_thread_and_once_more_at_the_end() -> None:
    sensor, samples = Recording(), []
    sampler = Sampler([sensor], samples.append, time.perf_counter)
    sampler.start()
    deadline = time.monotonic() + 5
    while len(samples) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    sampler.stop()
    counts = {lane: sum(asked == lane for asked, _ in sensor.asked) for lane in ("fast", "slow")}
    assert counts["slow"] >= 2  # at once, and at the end
    assert counts["fast"] >= 2
    assert [asked for asked, _ in sensor.asked[-2:]] == ["fast", "slow"]
    assert {thread for _, thread in sensor.asked}.isdisjoint({threading.get_ident()})
    assert len({thread for _, thread in sensor.asked}) == 1
    assert sampler.failure is None


def test_stopping_joins_and_leaves_no_thread() -> None:
    before = threading.active_count()
    for _ in range(5):
        sampler = Sampler([Recording()], lambda _: None, time.perf_counter)
        sampler.start()
        sampler.stop()
        sampler.stop()
    assert threading.active_count() == before
    Sampler([], lambda _: None, time.perf_counter).stop()  # never started


def test_a_driver_that_hangs_holds_up_no_run_and_says_nothing_late() -> None:
    entered, release, samples = threading.Event(), threading.Event(), []

    class Hanging(Recording):
        def sample(self, lane: Lane, now: Clock) -> list[Sample]:
            entered.set()
            release.wait(10)
            return super().sample(lane, now)

    sampler = Sampler([Hanging()], samples.append, time.perf_counter, join_s=0.05)
    sampler.start()
    assert entered.wait(5)
    sampler.stop()
    assert sampler.failure == "Sampling stopped: a sensor's driver does not answer."
    release.set()
    sampler.stop()
    assert samples == []


@pytest.mark.parametrize("broken", ["sensor", "emit"])
def test_a_bug_ends_the_sampling_with_a_sentence_not_the_run(broken: str) -> None:
    def emit(_: Sample) -> None:
        raise OSError("the pipe is closed")

    sampler = Sampler([Recording(fails=broken == "sensor")], emit, time.perf_counter)
    sampler.start()
    sampler.stop()
    assert sampler.failure is not None
    assert sampler.failure.startswith("Sampling stopped: ")


def test_the_beat_is_steady_and_missed_beats_are_skipped() -> None:
    assert _following(1.0, 0.1, 1.03) == pytest.approx(1.1)
    assert _following(1.0, 0.1, 1.37) == pytest.approx(1.4)
    assert _following(1.0, 0.1, 1.0) == pytest.approx(1.1)


def test_the_fast_lane_respects_the_hardwares_refresh() -> None:
    assert FAST_INTERVAL_S >= MIN_WINDOW_S
    assert 1 / FAST_INTERVAL_S <= 9
    assert SLOW_INTERVAL_S >= 0.5


class Times(tuple[float, ...]):
    """(busy, idle) seconds of all cores, shaped as psutil's."""

    @property
    def idle(self) -> float:
        return self[1]


def psutil_like(**changes: Any) -> Any:
    times = iter([Times((10.0, 90.0)), Times((20.0, 180.0)), Times((50.0, 190.0))])
    answers = {
        "cpu_times": lambda: next(times),
        "virtual_memory": lambda: SimpleNamespace(total=100, available=30),
        "Process": lambda: SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=12)),
        "cpu_freq": lambda: SimpleNamespace(current=2600.0),
    }
    return SimpleNamespace(**(answers | changes))


def cpu_samples(psutil: Any) -> dict[str, Sample]:
    (sensor,) = open_cpu(0, psutil)
    clock = iter(range(100))
    sensor.begin(lambda: float(next(clock)))
    return {s.metric: s for lane in ("fast", "slow") for s in sensor.sample(lane, lambda: float(next(clock)))}  # type: ignore[arg-type]


def test_processor_readings_by_hand() -> None:
    samples = cpu_samples(psutil_like())
    # between the baseline (20 busy, 180 idle) and the reading (50 busy, 190 idle): 30 of 40
    assert samples["cpu_busy"].value == pytest.approx(0.75)
    assert samples["cpu_busy"].t1 > samples["cpu_busy"].t0
    assert samples["memory_used_bytes"].value == 70
    assert samples["worker_rss_bytes"].value == 12
    assert samples["cpu_clock_hz"].value == 2.6e9


def nothing() -> None:
    return None


def refused() -> Any:
    raise RuntimeError("no frequency file")


@pytest.mark.parametrize("cpu_freq", [nothing, refused, lambda: SimpleNamespace(current=0.0)])
def test_a_clock_that_the_system_hides_is_unknown(cpu_freq: Any) -> None:
    samples = cpu_samples(psutil_like(cpu_freq=cpu_freq))
    assert samples["cpu_clock_hz"].value is None
    assert samples["cpu_busy"].value is not None


def test_counters_that_stand_still_are_unknown_not_idle() -> None:
    assert cpu_samples(psutil_like(cpu_times=lambda: Times((1.0, 1.0))))["cpu_busy"].value is None


def test_this_machines_processor_is_read() -> None:
    sensors, entries = open_sensors("cpu", None, 0)
    assert {e["sensor"] for e in entries} == {"cpu"}
    assert {e["device"] for e in entries} == {0}
    start = time.perf_counter()
    samples: list[Sample] = []
    sampler = Sampler(sensors, samples.append, lambda: time.perf_counter() - start)
    sampler.start()
    time.sleep(0.3)
    sampler.stop()
    busy = [s for s in samples if s.metric == "cpu_busy" and s.value is not None]
    assert busy
    assert all(0 <= (s.value or 0) <= 1 and s.t1 > s.t0 for s in busy)
    assert next(s.value or 0 for s in samples if s.metric == "worker_rss_bytes") > 1e6


def test_a_cuda_run_lists_every_nvidia_metric_whatever_the_machine_has() -> None:
    sensors, entries = open_sensors("cuda", "GPU-none-such", 0)
    by_sensor = {(e["sensor"], e["metric"]): e for e in entries}
    assert {("gpm", "tensor_active"), ("gpm", "dram_active"), ("nvml", "power_w")} <= set(by_sensor)
    assert by_sensor["nvml", "power_w"]["reason"]
    assert by_sensor["cpu", "cpu_busy"]["device"] is None
    for sensor in sensors:
        sensor.close()
