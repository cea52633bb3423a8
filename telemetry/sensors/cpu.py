"""The processor, its memory and this process, through psutil.

Busy time is the share of all cores' time that was not idle: a driver's time fraction, not a compute share. An idle
core and one that waits for memory both look as the kernel says, so it never stands on the compute gauge.
Not covered: hardware counters of the processor, which ordinary users and virtual machines cannot read.
"""

from __future__ import annotations

import importlib
from typing import Any

from telemetry.sensors.base import Gauge, GaugeSensor, Sensor, Unavailable, unavailable

NAME = "cpu"
MISSING = "The package psutil is not installed."


def open_cpu(device: int | None, psutil: Any = None) -> list[Sensor]:
    """The processor's sensor. ``device`` is its index in ``Header.devices``, None when the run is on a GPU.

    ``psutil`` stands in for the package in tests. Without the package every metric carries the reason.
    """
    try:
        gauges = _gauges(_Processor(psutil or importlib.import_module("psutil")))
    except ImportError:
        gauges = unavailable(_gauges(_Processor(None)), MISSING)
    return [GaugeSensor(NAME, device, gauges)]


def _gauges(cpu: _Processor) -> list[Gauge]:
    return [
        Gauge(
            "cpu_busy",
            "fraction",
            "driver_time_fraction",
            "busy time of all cores",
            "fast",
            cpu.busy_fraction,
            high=1.0,
            restart=cpu.restart,
        ),
        Gauge("memory_used_bytes", "bytes", "counter", "system memory in use", "slow", cpu.memory_used_bytes),
        Gauge("worker_rss_bytes", "bytes", "counter", "memory of the engine's process", "slow", cpu.rss_bytes),
        Gauge("cpu_clock_hz", "Hz", "counter", "clock, mean of all cores", "slow", cpu.clock_hz, low=1e7, high=2e10),
    ]


class _Processor:
    def __init__(self, psutil: Any) -> None:
        self._psutil = psutil
        self._last: tuple[float, float] | None = None

    def restart(self) -> None:
        self._last = None

    def busy_fraction(self) -> float:
        """Share of non-idle time since the last call; 0.0 as the baseline, which is never shown."""
        last, self._last = self._last, self._times()
        total, idle = self._last
        if last is None:
            return 0.0
        if total <= last[0]:
            raise Unavailable("The processor's time counters have not moved.")
        return min(1.0, max(0.0, 1.0 - (idle - last[1]) / (total - last[0])))

    def _times(self) -> tuple[float, float]:
        times = self._psutil.cpu_times()
        # Linux counts guest time inside user time as well.
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return sum(times) - guests, times.idle + getattr(times, "iowait", 0.0)

    def memory_used_bytes(self) -> float:
        total, available = system_memory(self._psutil)
        return float(total - available)

    def rss_bytes(self) -> float:
        return float(self._psutil.Process().memory_info().rss)

    def clock_hz(self) -> float:
        try:
            frequency = self._psutil.cpu_freq()
        except (AttributeError, RuntimeError, OSError) as error:
            raise Unavailable("This system does not tell the processor's clock.") from error
        if frequency is None or not frequency.current:
            raise Unavailable("This system does not tell the processor's clock.")
        return float(frequency.current) * 1e6


def system_memory(psutil: Any = None) -> tuple[int, int]:
    """(total, available) bytes of system memory. Raises Unavailable without psutil."""
    try:
        psutil = psutil or importlib.import_module("psutil")
    except ImportError as error:
        raise Unavailable(MISSING) from error
    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.available)
