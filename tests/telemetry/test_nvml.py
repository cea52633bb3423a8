"""NVIDIA's driver as it really answers: missing, mismatched, partial, lying, lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from telemetry.sensors.base import Sensor, Unavailable
from telemetry.sensors.gpm import GpmSensor
from telemetry.sensors.nvml import driver_facts, open_device, open_nvml, peak_bytes_per_s, visible_uuids
from tests.telemetry.fake_nvml import LANES, NAN, ONE, Clock, FakeNvml, read

CASES = Path(__file__).parents[1] / "cases"
SCENARIOS = {s["id"]: s for s in json.loads((CASES / "d_nvml_scenarios.json").read_text())["scenarios"]}


def scenario(name: str) -> FakeNvml:
    return FakeNvml(SCENARIOS[name]["devices"], SCENARIOS[name].get("init"))


def gauges(nvml: FakeNvml, **options: Any) -> Sensor:
    return open_nvml(0, open_device(None, nvml), **options)


# Which GPU


def test_torchs_gpu_is_found_by_uuid_not_by_number() -> None:
    """Guards D1: under CUDA_VISIBLE_DEVICES=1 torch's device 0 is the driver's device 1."""
    nvml = scenario("cvd_plain")
    environment = SCENARIOS["cvd_plain"]["env"]
    assert visible_uuids(environment, nvml) == ["GPU-bbbb"]
    for uuid in ("GPU-bbbb", "bbbb", "GPU-bb", "GPU-BBBB"):
        facts = driver_facts(open_device(uuid, nvml))
        assert (facts.name, facts.memory_bytes) == ("Small", 8 << 30)


@pytest.mark.parametrize(
    ("value", "visible"),
    [
        (None, ["GPU-aaaa", "GPU-bbbb"]),
        ("", []),
        ("-1", []),
        ("1,0", ["GPU-bbbb", "GPU-aaaa"]),
        ("GPU-bb", ["GPU-bbbb"]),
        ("0,7,1", ["GPU-aaaa"]),
        ("nonsense", []),
    ],
)
def test_an_empty_or_unusable_selection_means_no_gpu(value: str | None, visible: list[str]) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert visible_uuids(environment, scenario("cvd_plain")) == visible


def test_an_unknown_uuid_is_no_other_gpu() -> None:
    with pytest.raises(Unavailable, match="knows no GPU with the UUID GPU-zzzz"):
        open_device("GPU-zzzz", scenario("cvd_plain"))
    with pytest.raises(Unavailable, match="UUID is unknown"):
        open_device(None, scenario("cvd_plain"))


# The driver does not start


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("init_mismatch", "The NVIDIA driver and its library have different versions; restart the machine."),
        ("init_nolib", "No NVIDIA driver is installed."),
    ],
)
def test_a_driver_that_does_not_start_is_one_sentence_on_every_metric(name: str, sentence: str) -> None:
    nvml = scenario(name)
    with pytest.raises(Unavailable) as caught:
        open_device("GPU-aaaa", nvml)
    assert str(caught.value) == sentence
    with pytest.raises(Unavailable):
        visible_uuids({}, nvml)
    for sensor in (open_nvml(0, sentence), GpmSensor(0, sentence)):
        assert {info.reason for info in sensor.metrics} == {sentence}
        assert {info.to_json()["provenance"] for info in sensor.metrics} == {"unavailable"}
        samples = read(sensor)
        assert len(samples) == len(sensor.metrics)
        assert {(s.value, s.reason) for s in samples.values()} == {(None, sentence)}


# Each metric fails alone


@pytest.mark.parametrize(("name", "power_w"), [("mig_util", 87.0), ("wsl_laptop", 2.0)])
def test_what_the_driver_does_not_offer_is_unknown_and_the_rest_lives(name: str, power_w: float) -> None:
    samples = read(gauges(scenario(name)))
    assert (samples["busy_time"].value, samples["busy_time"].reason) == (None, "This GPU or driver does not offer it.")
    assert samples["power_w"].value == power_w
    assert samples["temperature_c"].value == 50


@pytest.mark.parametrize("error", ["NotSupported", "NoPermission", "Unknown", "FunctionNotFound"])
@pytest.mark.parametrize(
    "function", ["clock", "power", "energy", "temperature", "utilization", "memory_v2", "event_reasons"]
)
def test_any_error_in_any_call_costs_only_its_metric(function: str, error: str) -> None:
    answers = {function: error}
    if function == "event_reasons":
        answers["throttle_reasons"] = error
    if function == "memory_v2":
        answers["memory_v1"] = error
    sensor = gauges(FakeNvml(ONE, **answers), shared=lambda: (100, 60))
    absent = {info.metric for info in sensor.metrics if info.reason}
    samples = read(sensor)
    assert {m for m, s in samples.items() if s.value is None} == absent
    if (function, error) == ("memory_v2", "NotSupported"):
        assert samples["memory_used_bytes"].value == 40
    else:
        assert absent
    assert len(samples) == len(sensor.metrics)


def test_absent_metrics_are_said_once_a_run_and_asked_no_more() -> None:
    nvml = FakeNvml(ONE, temperature="NotSupported")
    sensor, clock = gauges(nvml), Clock()
    assert "temperature_c" in read(sensor, clock)
    asked = nvml.calls.count("temperature")
    assert "temperature_c" not in {s.metric for s in sensor.sample("slow", clock)}
    assert nvml.calls.count("temperature") == asked
    assert "temperature_c" in read(sensor, clock)


@pytest.mark.parametrize(
    ("function", "metric", "n_good", "value"),
    [
        (
            "utilization",
            "busy_time",
            4,
            2619,
        ),  # two gauges share the call, once in the probe and once in the first read
        ("utilization", "busy_time", 4, 4294967295),
        ("temperature", "temperature_c", 2, NAN),
    ],
)
def test_impossible_values_are_dropped_and_marked(function: str, metric: str, n_good: int, value: float) -> None:
    sensor, clock = gauges(FakeNvml(ONE, **{function: lambda n: 40 if n <= n_good else value})), Clock()
    read(sensor, clock)
    later = [s for lane in LANES for s in sensor.sample(lane, clock) if s.metric == metric]
    assert [s.value for s in later] == [None]
    assert "value" in (later[0].reason or "")


def test_a_failing_gauge_is_said_once_asked_less_and_comes_back() -> None:
    works = False
    nvml = FakeNvml(ONE, temperature=lambda n: 50 if n == 1 or works else "Unknown")
    sensor, clock = gauges(nvml), Clock()
    sensor.begin(clock)
    said = []
    for _ in range(20):
        clock.t += 1.0
        said += [s for s in sensor.sample("slow", clock) if s.metric == "temperature_c"]
    assert [s.value for s in said] == [None]
    assert nvml.calls.count("temperature") < 10
    works = True
    clock.t += 20.0
    assert [s.value for s in sensor.sample("slow", clock) if s.metric == "temperature_c"] == [50]


# Single readings


def test_instantaneous_power_is_preferred_and_its_absence_falls_back() -> None:
    assert read(gauges(FakeNvml(ONE, instant_power=312_500)))["power_w"].value == 312.5
    assert read(gauges(FakeNvml(ONE)))["power_w"].value == 100.0
    assert read(gauges(FakeNvml(ONE, instant_power=0)))["power_w"].value == 100.0  # a GPU never draws nothing
    assert read(gauges(FakeNvml(ONE, instant_power="FunctionNotFound")))["power_w"].value == 100.0


def test_energy_is_the_difference_over_its_window() -> None:
    sensor, clock = gauges(FakeNvml(ONE, energy=lambda n: n * 50_000)), Clock()
    sample = read(sensor, clock)["energy_j"]
    assert (sample.value, sample.t0, sample.t1) == (50.0, 0.0, 1.0)


def test_an_energy_counter_that_was_reset_loses_that_window_only() -> None:
    values = iter([9_000_000, 9_000_000, 1_000, 2_000, 5_000])
    sensor, clock = gauges(FakeNvml(ONE, energy=lambda _: next(values))), Clock()
    sample = read(sensor, clock)["energy_j"]
    assert (sample.value, sample.reason) == (None, "The energy counter was reset.")
    got = []
    for _ in range(2):
        clock.t += 1.0
        got += [s for s in sensor.sample("slow", clock) if s.metric == "energy_j"]
    assert [(s.value, s.t0, s.t1) for s in got] == [(3.0, 2.0, 3.0)]


def test_idle_is_not_throttling_and_the_old_name_will_do() -> None:
    assert read(gauges(FakeNvml(ONE, event_reasons=1)))["throttle_reasons"].value == 0
    old = FakeNvml(ONE, event_reasons="FunctionNotFound", throttle_reasons=5)
    assert read(gauges(old))["throttle_reasons"].value == 4


def test_memory_version_2_falls_back_to_1() -> None:
    assert read(gauges(FakeNvml(ONE, memory_v2="Unknown")))["memory_used_bytes"].value == 5 << 30


def test_shared_memory_is_the_systems_and_says_so() -> None:
    memory = SCENARIOS["gb10"]["system_memory"]
    shared: Callable[[], tuple[int, int]] = lambda: (memory["total_kb"] * 1024, memory["available_kb"] * 1024)  # noqa: E731
    sensor = gauges(scenario("gb10"), shared=shared)
    sample = read(sensor)["memory_used_bytes"]
    assert sample.value == 9_034_380 * 1024
    assert sample.value / (memory["total_kb"] * 1024) == pytest.approx(0.0708, abs=1e-4)
    assert [i.label for i in sensor.metrics if i.metric == "memory_used_bytes"] == [
        "memory in use, shared with the system"
    ]
    assert driver_facts(open_device(None, scenario("gb10"))).memory_bytes is None


def test_zero_of_zero_counts_as_shared() -> None:
    """Some drivers succeed on a chip without memory of its own, and say 0 of 0."""
    sensor = gauges(FakeNvml([ONE[0] | {"memory_total": 0}]), shared=lambda: (100, 60))
    assert read(sensor)["memory_used_bytes"].value == 40


def test_a_forbidden_memory_query_is_not_answered_with_the_systems_memory() -> None:
    nvml = FakeNvml(ONE, memory_v1="NoPermission", memory_v2="NoPermission")
    assert read(gauges(nvml))["memory_used_bytes"].value is None


def test_names_are_text_and_the_bandwidth_is_the_datasheets() -> None:
    assert driver_facts(open_device(None, scenario("bytes_name"))).name == "NVIDIA L4"
    facts = driver_facts(open_device(None, FakeNvml(ONE)))
    assert facts.bandwidth_bytes_per_s == pytest.approx(1008e9, rel=1e-3)  # RTX 4090: 10,501 MHz, 384 bits
    assert driver_facts(open_device(None, FakeNvml(ONE, bus_width="NotSupported"))).bandwidth_bytes_per_s is None


@pytest.mark.parametrize(
    ("clock_mhz", "bus_bits", "giga"), [(10_501, 384, 1008), (1215, 5120, 1555), (2619, 5120, 3352)]
)
def test_memory_rate_from_clock_and_bus_matches_published_cards(clock_mhz: int, bus_bits: int, giga: int) -> None:
    """RTX 4090, A100 40 GB, H100 SXM: NVIDIA's published bandwidths."""
    assert peak_bytes_per_s(clock_mhz * 1e6, bus_bits) == pytest.approx(giga * 1e9, rel=1e-3)
    assert peak_bytes_per_s(None, bus_bits) is peak_bytes_per_s(clock_mhz, 0) is None


# A GPU that is lost


def test_a_lost_gpu_keeps_its_samples_says_so_once_and_is_asked_no_more() -> None:
    lost = False
    nvml = FakeNvml(
        ONE, **{f: (lambda _: "GpuIsLost" if lost else 40) for f in ("utilization", "clock", "temperature")}
    )
    sensor, clock = gauges(nvml), Clock()
    before = read(sensor, clock)
    assert before["busy_time"].value == 0.4
    lost = True
    after = [s for _ in range(30) for lane in LANES for s in sensor.sample(lane, clock)]
    assert {s.value for s in after} == {None}
    assert len(after) == len(sensor.metrics)
    assert {s.reason for s in after} == {"The GPU has fallen off the bus; its driver is not asked any more."}
    asked = len(nvml.calls)
    clock.t += 100.0
    read(sensor, clock)
    assert len(nvml.calls) == asked


def test_the_scripted_loss_at_sample_5_leaves_the_first_five() -> None:
    good_calls = 0

    def temperature(n: int) -> Any:
        return "GpuIsLost" if n > 1 + 5 else 40 + n  # one call is the probe

    sensor, clock = gauges(FakeNvml(SCENARIOS["lost"]["devices"], temperature=temperature)), Clock()
    sensor.begin(clock)
    for _ in range(10):
        clock.t += 1.0
        good_calls += sum(s.metric == "temperature_c" and s.value is not None for s in sensor.sample("slow", clock))
    assert good_calls == 5


# MIG


def test_a_mig_slice_reads_its_memory_and_the_cards_power() -> None:
    card = {"uuid": "GPU-card", "power": 300.0}
    nvml = FakeNvml([card, {"uuid": "MIG-1", "mig_uuid": "MIG-1", "memory_total": 10 << 30, "power": 0.0}])
    sensor = open_nvml(0, open_device("MIG-1", nvml))
    assert read(sensor)["power_w"].value == 300.0
    assert [i.label for i in sensor.metrics if i.metric == "power_w"] == ["power, whole card"]
