"""A stand-in for the ``pynvml`` module, scripted by scenario: same names, same errors, same odd types.

An answer may be a value, the name of an NVML error (then the call raises it) or a function of the call's number.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from telemetry.events import Sample
from telemetry.sensors.base import Lane, Sensor

CODES = {
    "NotSupported": 3,
    "NoPermission": 4,
    "NotFound": 6,
    "LibraryNotFound": 12,
    "FunctionNotFound": 13,
    "GpuIsLost": 15,
    "LibRmVersionMismatch": 18,
    "Unknown": 999,
}


class NVMLError(Exception):
    """As in pynvml: comparable, and therefore not hashable."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __eq__(self, other: object) -> bool:
        return self.value == other.value  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


class GpmSlot(ctypes.Structure):
    _fields_ = (("metricId", ctypes.c_uint), ("nvmlReturn", ctypes.c_uint), ("value", ctypes.c_double))


class GpmRequest:
    def __init__(self) -> None:
        self.version = 0
        self.numMetrics = 0
        self.sample1: Any = None
        self.sample2: Any = None
        self.metrics = (GpmSlot * 16)()


class FakeNvml:
    """The module. ``devices`` are scripted as in the scenario file; ``answers`` overrides single functions."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_GPM_METRICS_GET_VERSION = 1
    nvmlMemory_v2 = 0x02000028
    c_nvmlGpmMetricsGet_t = GpmRequest

    def __init__(self, devices: list[dict[str, Any]], init: str | None = None, **answers: Any) -> None:
        self._devices = devices
        self._init = init
        self._answers = answers
        self.calls: list[str] = []
        self.clock = 0.0
        self.gpm: Callable[[int, Any], None] | None = None

    def _answer(self, handle: Any, function: str, default: Any) -> Any:
        self.calls.append(function)
        device = self._devices[handle]
        fails = device.get("raises_from_call", {})
        for number, error in fails.items():
            if len(self.calls) > int(number):
                raise NVMLError(CODES[error])
        value = self._answers.get(function, default)
        if callable(value):
            value = value(sum(c == function for c in self.calls))
        if isinstance(value, str) and value in CODES:
            raise NVMLError(CODES[value])
        return value

    def _scripted(self, handle: Any, key: str, default: Any) -> Any:
        return self._devices[handle].get(key, default)

    def nvmlInit(self) -> None:
        if self._init is not None:
            raise NVMLError(CODES[self._init])

    def nvmlDeviceGetCount(self) -> int:
        return len(self._devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return str(self._devices[handle]["uuid"])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        for index, device in enumerate(self._devices):
            if uuid in (device["uuid"], device.get("mig_uuid")):
                return index
        raise NVMLError(CODES["NotFound"])

    def nvmlDeviceGetName(self, handle: int) -> Any:
        name = self._scripted(handle, "name", "GPU")
        return self._answer(handle, "name", name["bytes"].encode() if isinstance(name, dict) else name)

    def nvmlDeviceIsMigDeviceHandle(self, handle: int) -> Any:
        return self._answer(handle, "is_mig", ctypes.c_uint(1 if "mig_uuid" in self._devices[handle] else 0))

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: int) -> int:
        return int(self._answer(handle, "parent", 0))

    def nvmlDeviceGetGpuInstanceId(self, handle: int) -> int:
        return int(self._answer(handle, "gpu_instance", 7))

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        busy = self._answer(handle, "utilization", self._scripted(handle, "utilization", 42))
        return SimpleNamespace(gpu=busy, memory=busy)

    def nvmlDeviceGetClockInfo(self, handle: int, which: int) -> Any:
        return self._answer(handle, "clock", 1980)

    def nvmlDeviceGetMaxClockInfo(self, handle: int, which: int) -> Any:
        return self._answer(handle, "max_clock", 10501)

    def nvmlDeviceGetMemoryBusWidth(self, handle: int) -> Any:
        return self._answer(handle, "bus_width", 384)

    def nvmlDeviceGetTemperature(self, handle: int, which: int) -> Any:
        return self._answer(handle, "temperature", self._scripted(handle, "temperature", 50))

    def nvmlDeviceGetPowerUsage(self, handle: int) -> Any:
        return self._answer(handle, "power", self._scripted(handle, "power", 100.0) * 1000)

    def nvmlDeviceGetFieldValues(self, handle: int, ids: list[int]) -> Any:
        answer = self._answer(handle, "instant_power", None)
        if answer is None:
            return [SimpleNamespace(nvmlReturn=3, valueType=1, value=SimpleNamespace(uiVal=0))]
        return [SimpleNamespace(nvmlReturn=0, valueType=1, value=SimpleNamespace(uiVal=answer))]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> Any:
        return self._answer(handle, "energy", 1000)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> Any:
        return self._answer(handle, "event_reasons", 0)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> Any:
        return self._answer(handle, "throttle_reasons", 0)

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> Any:
        total = self._scripted(handle, "memory_total", 1 << 34)
        used = self._answer(
            handle, "memory_v2" if version else "memory_v1", total if total == "NotSupported" else 5 << 30
        )
        return SimpleNamespace(total=total, used=used)

    def nvmlGpmQueryDeviceSupport(self, handle: int) -> Any:
        return SimpleNamespace(isSupportedDevice=self._answer(handle, "gpm_support", 0))

    def nvmlGpmSampleAlloc(self) -> Any:
        return SimpleNamespace(taken=None, freed=False, instance=None)

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        assert not sample.freed
        sample.freed = True
        self.calls.append("gpm_free")

    def nvmlGpmSampleGet(self, handle: int, sample: Any) -> None:
        self._answer(handle, "gpm_sample", None)
        sample.taken = len(self.calls)

    def nvmlGpmMigSampleGet(self, handle: int, instance: int, sample: Any) -> None:
        self._answer(handle, "gpm_mig_sample", None)
        sample.taken, sample.instance = len(self.calls), instance

    def nvmlGpmMetricsGet(self, request: GpmRequest) -> None:
        """Fills the slots by ``gpm_values``: id -> percent, ("error", code), or None to leave the slot alone."""
        self.calls.append("gpm_metrics")
        assert request.version == 1
        assert request.sample1.taken < request.sample2.taken, "the older snapshot comes first"
        values = self._answers.get("gpm_values", {})
        if callable(values):
            values = values(self.calls.count("gpm_metrics"))
        if isinstance(values, str):
            raise NVMLError(CODES[values])
        for slot in request.metrics[: request.numMetrics]:
            value = values.get(slot.metricId)
            if isinstance(value, tuple):
                slot.nvmlReturn, slot.value = value[1], 0.0
            elif value is not None:
                slot.nvmlReturn, slot.value = 0, value


GPM_GOOD = {5: 61.0, 10: 35.0, 2: 90.0}
NAN = math.nan
ONE = [{"uuid": "GPU-aaaa", "name": "NVIDIA H100 80GB HBM3", "memory_total": 80 << 30}]
LANES: tuple[Lane, ...] = ("fast", "slow")


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.t = 0.0

    def __call__(self) -> float:
        return self.t


def read(sensor: Sensor, clock: Clock | None = None) -> dict[str, Sample]:
    """Begin, wait a second, read both lanes."""
    clock = clock or Clock()
    sensor.begin(clock)
    clock.t += 1.0
    return {s.metric: s for lane in LANES for s in sensor.sample(lane, clock)}
