"""Activity counters as the driver really answers: late, partial, lying."""

from __future__ import annotations

from typing import Any

import pytest

from telemetry.sensors.gpm import MIN_WINDOW_S, GpmSensor
from telemetry.sensors.nvml import NvmlDevice, open_device
from tests.telemetry.fake_nvml import GPM_GOOD, NAN, ONE, Clock, FakeNvml, read


def gpm_sensor(**answers: Any) -> tuple[GpmSensor, FakeNvml]:
    nvml = FakeNvml(ONE, **{"gpm_support": 1, "gpm_values": GPM_GOOD, **answers})
    return GpmSensor(0, NvmlDevice(nvml, 0), sleep=lambda _: None), nvml


def test_activity_is_a_fraction_over_its_window() -> None:
    sensor, _ = gpm_sensor()
    samples = read(sensor)
    assert {m: s.value for m, s in samples.items()} == {"tensor_active": 0.61, "dram_active": 0.35, "sm_active": 0.9}
    assert {(s.t0, s.t1) for s in samples.values()} == {(0.0, 1.0)}
    assert {info.provenance for info in sensor.metrics} == {"counter"}


def test_a_window_is_never_shorter_than_110_ms() -> None:
    sensor, nvml = gpm_sensor()
    clock = Clock()
    sensor.begin(clock)
    taken = nvml.calls.count("gpm_sample")
    windows = []
    for _ in range(300):  # ten seconds of polling at 33 ms
        clock.t += 1 / 30
        windows += [s.t1 - s.t0 for s in sensor.sample("fast", clock) if s.metric == "dram_active"]
    assert min(windows) >= MIN_WINDOW_S
    assert nvml.calls.count("gpm_sample") - taken <= 90  # nine a second


def test_an_old_snapshot_opens_a_new_window() -> None:
    sensor, _ = gpm_sensor()
    clock = Clock()
    sensor.begin(clock)
    clock.t = 30.0
    assert sensor.sample("fast", clock) == []
    clock.t = 30.2
    assert {(s.t0, s.t1) for s in sensor.sample("fast", clock)} == {(30.0, 30.2)}


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"gpm_support": 0}, "no activity counters"),
        ({"gpm_support": "FunctionNotFound"}, "too old"),
        ({"gpm_sample": "NotSupported"}, "does not offer it"),  # the support flag lies
        ({"gpm_sample": "NoPermission"}, "does not permit"),
        ({"gpm_values": "Unknown"}, "could not work out"),
        ({"gpm_values": {}}, "left this counter out"),
        ({"gpm_values": dict.fromkeys((5, 10, 2), NAN)}, "not a number"),
        ({"gpm_values": dict.fromkeys((5, 10, 2), ("error", 3))}, "error 3"),
        ({"gpm_values": dict.fromkeys((5, 10, 2), 2619.0)}, "2619 % is outside 0 to 100 %"),
    ],
)
def test_support_is_two_snapshots_that_gave_a_value(answers: dict[str, Any], reason: str) -> None:
    sensor, nvml = gpm_sensor(**answers)
    assert all(reason in (info.reason or "") for info in sensor.metrics)
    asked = len(nvml.calls)
    assert {s.value for s in read(sensor).values()} == {None}
    assert len(nvml.calls) == asked


def test_counters_fail_one_by_one() -> None:
    """An untouched slot, an error and a NaN beside good values; sentinels keep them from reading as 0."""
    sensor, _ = gpm_sensor(gpm_values={5: None, 10: 35.0, 2: NAN})
    assert {i.metric: i.reason is None for i in sensor.metrics} == {
        "tensor_active": False,
        "dram_active": True,
        "sm_active": False,
    }


def test_outliers_are_dropped_marked_once_and_spoil_nothing() -> None:
    """Guards D6: rare values of 2619 % and 4294967295 % among good ones."""
    script = [50.0, 70.0, 2619.0, 4294967295.0, -1.0, 97.0]
    sensor, _ = gpm_sensor(gpm_values=lambda n: dict.fromkeys((5, 10, 2), script[n - 1]))
    clock = Clock()
    sensor.begin(clock)
    samples = []
    for _ in script[1:]:
        clock.t += 0.2
        samples += [s for s in sensor.sample("fast", clock) if s.metric == "dram_active"]
    assert [s.value for s in samples] == [0.7, None, None, None, 0.97]
    assert all(s.reason for s in samples if s.value is None)


def test_snapshots_are_given_back_once() -> None:
    sensor, nvml = gpm_sensor()
    sensor.close()
    sensor.close()
    assert nvml.calls.count("gpm_free") == 2


def test_activity_of_a_mig_slice_is_asked_of_its_card() -> None:
    devices = [{"uuid": "GPU-card"}, {"uuid": "MIG-1", "mig_uuid": "MIG-1"}]
    nvml = FakeNvml(devices, gpm_support=1, gpm_values=GPM_GOOD)
    sensor = GpmSensor(0, open_device("MIG-1", nvml), sleep=lambda _: None)
    assert all(info.reason is None for info in sensor.metrics)
    assert nvml.calls.count("gpm_mig_sample") == 2
    assert nvml.calls.count("gpm_sample") == 0
