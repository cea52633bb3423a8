"""Hardware counters on trial: what a reading costs, how late it is, and how high it goes under known loads.

The loads are a large bf16 matrix product (the compute gauge should rise) and a large copy (the memory gauge should).
On a CPU the same code reads processor time, which has no such meaning: it only shows that the code runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from engine.devicecheck.rows import Row
from engine.machine import Machine
from engine.timing import synchronize
from telemetry.sensors import Sensor, open_sensors

WINDOW_S = 0.115
METRICS = {"cuda": ("tensor_active", "dram_active"), "cpu": ("cpu_busy", "cpu_busy")}
SEEN = 0.05  # a gauge above this has noticed the load


def rows(machine: Machine, tiny: bool) -> Iterator[Row]:
    sensors, described = open_sensors(machine.device.type, machine.uuid, 0)
    for entry in described:
        reason = entry.get("reason")
        yield Row("counters", str(entry["metric"]), None if reason else "works", note=str(reason or entry["label"]))
    compute, memory = METRICS[machine.device.type]
    works = {e["metric"] for e in described if not e.get("reason")}
    if not {compute, memory} <= works:
        yield Row("counters", "peaks and lag", None, note="the activity counters do not work here")
        return
    gauges = _Gauges(sensors)
    yield Row("counters", "one reading of all fast sensors", gauges.cost_s() * 1e3, "ms")
    seconds = 0.3 if tiny else 3.0
    for what, metric, load in (
        ("bf16 matrix product", compute, _product(machine.device, tiny)),
        ("copy", memory, _copy(machine.device, tiny)),
    ):
        peak, lag_s = gauges.under(load, metric, seconds)
        yield Row("counters", f"{metric} under a {what}", peak)
        yield Row("counters", f"{metric}: lag after dispatch", lag_s, "s", "" if lag_s else "never rose")
    for sensor in sensors:
        sensor.close()


class _Gauges:
    def __init__(self, sensors: list[Sensor]) -> None:
        self._sensors = sensors
        for sensor in sensors:
            sensor.begin(time.perf_counter)

    def cost_s(self) -> float:
        """The median time of one reading."""
        costs = []
        for _ in range(9):
            time.sleep(WINDOW_S)
            begun = time.perf_counter()
            self.read()
            costs.append(time.perf_counter() - begun)
        return sorted(costs)[len(costs) // 2]

    def read(self) -> dict[str, float]:
        samples = [s for sensor in self._sensors for s in sensor.sample("fast", time.perf_counter)]
        return {s.metric: s.value for s in samples if s.value is not None}

    def under(self, load: Callable[[], None], metric: str, seconds: float) -> tuple[float | None, float | None]:
        """The greatest reading while ``load`` is repeated, and how long the first rise took; None: never."""
        self.read()
        peak, lag_s, begun = None, None, time.perf_counter()
        with _kept_busy(load):
            while (passed := time.perf_counter() - begun) < seconds:
                time.sleep(WINDOW_S)
                value = self.read().get(metric)
                if value is not None:
                    peak = value if peak is None else max(peak, value)
                    if value > SEEN and lag_s is None:
                        lag_s = passed + WINDOW_S
        return peak, lag_s


@contextmanager
def _kept_busy(load: Callable[[], None]) -> Iterator[None]:
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            load()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _product(device: torch.device, tiny: bool) -> Callable[[], None]:
    size = 128 if tiny else 8192
    a = torch.ones(size, size, dtype=torch.bfloat16, device=device)
    out = torch.empty_like(a)

    def load() -> None:
        for _ in range(4):
            torch.mm(a, a, out=out)
        synchronize(device)

    return load


def _copy(device: torch.device, tiny: bool) -> Callable[[], None]:
    source = torch.ones(1 << (16 if tiny else 30), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def load() -> None:
        for _ in range(4):
            target.copy_(source)
        synchronize(device)

    return load
