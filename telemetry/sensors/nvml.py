"""One NVIDIA GPU's driver readings: power, energy, temperature, clocks, memory, throttling, busy time.

All calls go through one gate (``NvmlDevice.call``) that turns each driver error into a sentence and stops asking a GPU
that has fallen off the bus, since the driver's library is known to crash when asked on. A GPU is told by its UUID:
torch's index and the driver's differ under CUDA_VISIBLE_DEVICES. The library is never shut down: doing so while
another thread still asks is a known crash, and the process's end does it anyway.

``utilization.gpu`` is the share of time in which any kernel ran, so it is shown as busy time and never stands for
compute; ``utilization.memory`` likewise is no bandwidth. Activity counters are in ``gpm.py``. Not covered: process
lists (slow, and wrong in containers), PCIe throughput (blocks for 20 ms a call).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from telemetry.sensors.base import Gauge, GaugeSensor, Sensor, Unavailable, unavailable
from telemetry.sensors.cpu import system_memory

NAME = "nvml"

_SENTENCES = {
    1: "The NVIDIA driver's library was not started.",
    3: "This GPU or driver does not offer it.",
    4: "The driver does not permit it to this user.",
    6: "The driver knows no such GPU.",
    9: "The NVIDIA driver is not loaded.",
    12: "No NVIDIA driver is installed.",
    13: "The NVIDIA driver is too old for it.",
    15: "The GPU has fallen off the bus; its driver is not asked any more.",
    18: "The NVIDIA driver and its library have different versions; restart the machine.",
    999: "The driver answered with an unknown error.",
}
_NOT_SUPPORTED, _LOST = 3, 15
_IDLE_REASON = 0x1  # an idle GPU's clocks are low, but it is not throttled
_FIELD_VALUE_MEMBER = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by NVML_VALUE_TYPE_*


class NvmlDevice:
    """The gate to one GPU: every call is answered, or raises Unavailable with a sentence."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self.nvml = nvml
        self.handle = handle
        self._lost: str | None = None

    def call(self, function: str, *arguments: Any) -> Any:
        """``nvml.<function>(handle, *arguments)``."""
        if self._lost is not None:
            raise Unavailable(self._lost)
        try:
            return getattr(self.nvml, function)(self.handle, *arguments)
        except self.nvml.NVMLError as error:
            if error.value == _LOST:
                self._lost = _sentence(error)
            raise _NvmlUnavailable(_sentence(error), error.value) from error
        except AttributeError as error:
            raise Unavailable("The installed nvidia-ml-py is too old for it.") from error
        except UnicodeDecodeError as error:
            raise Unavailable("The driver's text is not readable.") from error

    def card(self) -> NvmlDevice:
        """The whole card when this is a MIG slice, else this device. Raises Unavailable."""
        return (
            NvmlDevice(self.nvml, self.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle")) if self.is_mig() else self
        )

    def is_mig(self) -> bool:
        try:
            answer = self.call("nvmlDeviceIsMigDeviceHandle")
        except Unavailable:
            return False
        return bool(getattr(answer, "value", answer))  # a ctypes integer, which never equals a plain one


class _NvmlUnavailable(Unavailable):
    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """What the driver says of a GPU, for the header's device entry. None is unknown."""

    name: str | None
    memory_bytes: int | None
    bandwidth_bytes_per_s: float | None


def open_device(uuid: str | None, nvml: Any = None) -> NvmlDevice:
    """The GPU with torch's ``uuid`` ("GPU-…", "MIG-…", or without prefix); None will do where there is only one.

    ``nvml`` stands in for the ``pynvml`` module in tests. Raises Unavailable with a sentence: package or driver
    missing, versions that differ, no such GPU.
    """
    nvml = _started(nvml)
    handles = [(_text(_device_uuid(nvml, handle)), handle) for handle in _handles(nvml)]
    if uuid is None:
        if len(handles) != 1:
            raise Unavailable("The GPU's UUID is unknown, so the driver's readings cannot be told apart.")
        return NvmlDevice(nvml, handles[0][1])
    bare = _bare(uuid)
    for known, handle in handles:
        if known is not None and bare and _bare(known).startswith(bare):
            return NvmlDevice(nvml, handle)
    for prefix in ("", "MIG-"):
        try:
            return NvmlDevice(nvml, nvml.nvmlDeviceGetHandleByUUID(prefix + uuid))
        except nvml.NVMLError:
            continue
    raise Unavailable(f"The driver knows no GPU with the UUID {uuid}.")


def visible_uuids(environment: Mapping[str, str], nvml: Any = None) -> list[str]:
    """UUIDs of the GPUs that CUDA_VISIBLE_DEVICES leaves visible, for a caller without torch.

    Numbers count as under CUDA_DEVICE_ORDER=PCI_BUS_ID. Like CUDA, the list ends at the first entry that is no GPU;
    an empty value means no GPU. Raises Unavailable when the driver does not start.
    """
    nvml = _started(nvml)
    known = [u for u in (_text(_device_uuid(nvml, handle)) for handle in _handles(nvml)) if u is not None]
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return known
    visible: list[str] = []
    for entry in (e.strip() for e in wanted.split(",")):
        if entry.isdigit():
            found = known[int(entry) : int(entry) + 1]
        else:
            found = [u for u in known if entry and u.startswith(entry)]
        if len(found) != 1:
            break
        visible += found
    return visible


def driver_facts(device: NvmlDevice) -> DriverFacts:
    """Name, memory and peak bandwidth, each None where the driver does not say."""

    def or_none(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except Unavailable:
            return None

    clock_mhz = or_none(lambda: device.call("nvmlDeviceGetMaxClockInfo", device.nvml.NVML_CLOCK_MEM))
    bus_bits = or_none(lambda: device.call("nvmlDeviceGetMemoryBusWidth"))
    memory = or_none(lambda: _memory(device))
    return DriverFacts(
        name=_text(or_none(lambda: device.call("nvmlDeviceGetName"))),
        memory_bytes=int(memory.total) if memory is not None and memory.total else None,
        bandwidth_bytes_per_s=peak_bytes_per_s(clock_mhz and clock_mhz * 1e6, bus_bits),
    )


def peak_bytes_per_s(memory_clock_hz: float | None, bus_width_bits: int | None) -> float | None:
    """2 x the memory clock's maximum x bus width / 8 (double data rate); None where either is unknown.

    An RTX 4090's 10,501 MHz and 384 bits give its 1,008 GB/s; an H100 SXM's 2,619 MHz and 5,120 bits its 3,352 GB/s.
    """
    if not memory_clock_hz or not bus_width_bits:
        return None
    return 2.0 * memory_clock_hz * bus_width_bits / 8


def open_nvml(
    device: int | None, gpu: NvmlDevice | str, shared: Callable[[], tuple[int, int]] = system_memory
) -> Sensor:
    """The driver's gauges of one GPU. ``gpu`` is the sentence that says why, when there is none.

    ``shared`` gives (total, available) bytes of system memory, for chips without a memory of their own.
    """
    if isinstance(gpu, str):
        return GaugeSensor(NAME, device, unavailable(_gauges(NvmlDevice(None, None), False, shared), gpu))
    return GaugeSensor(NAME, device, _gauges(gpu, gpu.is_mig(), shared))


def _gauges(gpu: NvmlDevice, is_mig: bool, shared: Callable[[], tuple[int, int]]) -> list[Gauge]:
    readings = _Readings(gpu.card() if is_mig else gpu)
    whole = ", whole card" if is_mig else ""
    memory_read, memory_label = _memory_gauge(gpu, shared)
    return [
        Gauge("busy_time", "fraction", "driver_time_fraction", "time in which a kernel ran", "fast",
              lambda: gpu.call("nvmlDeviceGetUtilizationRates").gpu / 100, high=1.0),
        Gauge("memory_busy_time", "fraction", "driver_time_fraction", "time in which memory was touched", "fast",
              lambda: gpu.call("nvmlDeviceGetUtilizationRates").memory / 100, high=1.0),
        Gauge("sm_clock_hz", "Hz", "counter", f"core clock{whole}", "fast", readings.sm_clock_hz, high=2e10),
        Gauge("mem_clock_hz", "Hz", "counter", f"memory clock{whole}", "fast", readings.mem_clock_hz, high=1e11),
        Gauge("power_w", "W", "counter", f"power{whole}", "slow", readings.power_w, high=1e5),
        Gauge("energy_j", "J", "counter", f"energy since the last reading{whole}", "slow", readings.energy_j,
              restart=readings.restart),
        Gauge("temperature_c", "°C", "counter", f"temperature{whole}", "slow", readings.temperature_c, -50, 200),
        Gauge("memory_used_bytes", "bytes", "counter", memory_label, "slow", memory_read),
        Gauge("throttle_reasons", "bits", "counter", f"reasons for lower clocks{whole}", "slow",
              readings.throttle_reasons),
    ]  # fmt: skip


class _Readings:
    """Readings that need more than one call, a choice, or a memory of the last one."""

    def __init__(self, card: NvmlDevice) -> None:
        self._card = card
        self._energy_mj: int | None = None
        self._instant_power = True

    def sm_clock_hz(self) -> float:
        return float(self._card.call("nvmlDeviceGetClockInfo", self._card.nvml.NVML_CLOCK_SM)) * 1e6

    def mem_clock_hz(self) -> float:
        return float(self._card.call("nvmlDeviceGetClockInfo", self._card.nvml.NVML_CLOCK_MEM)) * 1e6

    def temperature_c(self) -> float:
        return float(self._card.call("nvmlDeviceGetTemperature", self._card.nvml.NVML_TEMPERATURE_GPU))

    def power_w(self) -> float:
        """The instantaneous field where the driver has it; the older call is a one-second average on most GPUs."""
        if self._instant_power:
            try:
                return self._instant_power_w()
            except Unavailable:
                self._instant_power = False
        return float(self._card.call("nvmlDeviceGetPowerUsage")) / 1e3

    def _instant_power_w(self) -> float:
        field = self._card.call("nvmlDeviceGetFieldValues", [self._card.nvml.NVML_FI_DEV_POWER_INSTANT])[0]
        if field.nvmlReturn != 0 or not 0 <= field.valueType < len(_FIELD_VALUE_MEMBER):
            raise Unavailable("The driver has no instantaneous power.")
        milliwatts = getattr(field.value, _FIELD_VALUE_MEMBER[field.valueType])
        if milliwatts <= 0:
            raise Unavailable("The driver has no instantaneous power.")
        return float(milliwatts) / 1e3

    def restart(self) -> None:
        self._energy_mj = None

    def energy_j(self) -> float:
        """Joules since the last reading; 0.0 as the baseline, which is never shown.

        A counter that ran back was reset, and its window is unknown.
        """
        last, self._energy_mj = self._energy_mj, int(self._card.call("nvmlDeviceGetTotalEnergyConsumption"))
        if last is None:
            return 0.0
        if self._energy_mj < last:
            raise Unavailable("The energy counter was reset.")
        return (self._energy_mj - last) / 1e3

    def throttle_reasons(self) -> float:
        """The driver's bit mask without the idle bit; 0 is full speed."""
        try:
            mask = self._card.call("nvmlDeviceGetCurrentClocksEventReasons")
        except Unavailable:
            mask = self._card.call("nvmlDeviceGetCurrentClocksThrottleReasons")  # its name before driver 535
        return float(int(mask) & ~_IDLE_REASON)


def _memory_gauge(gpu: NvmlDevice, shared: Callable[[], tuple[int, int]]) -> tuple[Callable[[], float], str]:
    """How to read memory in use. A chip that says "not supported", or 0 of 0, shares the system's memory."""

    def own() -> float:
        return float(_memory(gpu).used)

    def of_system() -> float:
        total, available = shared()
        return float(total - available)

    try:
        has_own = bool(_memory(gpu).total) if gpu.nvml is not None else True
    except _NvmlUnavailable as error:
        has_own = error.code != _NOT_SUPPORTED
    except Unavailable:
        has_own = True
    return (own, "memory in use") if has_own else (of_system, "memory in use, shared with the system")


def _memory(gpu: NvmlDevice) -> Any:
    """Version 2 leaves out what the driver reserves; where it fails (WSL), version 1."""
    try:
        return gpu.call("nvmlDeviceGetMemoryInfo", gpu.nvml.nvmlMemory_v2)
    except (Unavailable, AttributeError):
        return gpu.call("nvmlDeviceGetMemoryInfo")


def _started(nvml: Any) -> Any:
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError as error:
            raise Unavailable("The package nvidia-ml-py is not installed.") from error
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise Unavailable(_sentence(error)) from error
    return nvml


def _handles(nvml: Any) -> list[Any]:
    handles = []
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            handles.append(nvml.nvmlDeviceGetHandleByIndex(index))
    except nvml.NVMLError as error:
        if not handles:
            raise Unavailable(_sentence(error)) from error
    return handles


def _device_uuid(nvml: Any, handle: Any) -> str | bytes | None:
    try:
        uuid: str | bytes = nvml.nvmlDeviceGetUUID(handle)
    except (nvml.NVMLError, UnicodeDecodeError):
        return None
    return uuid


def _bare(uuid: str) -> str:
    return uuid.removeprefix("GPU-").lower()


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _sentence(error: Any) -> str:
    return _SENTENCES.get(error.value, f"The driver answered with error {error.value}.")
