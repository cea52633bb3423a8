"""When a step began and ended, on the host's monotonic clock, whichever device ran it.

On a CPU a call returns when its work is done, so ``perf_counter`` around it is the step's time. On CUDA a call returns
at once: the step lies between two events in the device's stream. The device's clock is tied to the host's at the start
of a run and after each phase; how far both had drifted apart is the residual, which goes into the trace's header.
Wall-clock time plays no part: it can be set back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import torch


class StepTimer(Protocol):
    """One step at a time: ``start``, the work, ``stop``, then ``read`` once the result is wanted."""

    timing: Literal["host", "device"]

    def tie(self) -> None:
        """Line the device's clock up with the host's. Waits for the device."""
        ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def read(self) -> tuple[float, float]:
        """Begin and end of the last step in ``perf_counter`` seconds. Waits for the device."""
        ...

    def clock(self) -> Mapping[str, Any]:
        """What a trace's header says about the clock: name and ``residual_s`` (None while nothing was tied twice)."""
        ...


class HostTimer:
    timing: Literal["host", "device"] = "host"

    def __init__(self) -> None:
        self._t0 = self._t1 = 0.0

    def tie(self) -> None:
        """Nothing to line up: there is one clock."""

    def start(self) -> None:
        self._t0 = time.perf_counter()

    def stop(self) -> None:
        self._t1 = time.perf_counter()

    def read(self) -> tuple[float, float]:
        return self._t0, self._t1

    def clock(self) -> Mapping[str, Any]:
        return {"name": "perf_counter", "residual_s": None}


class DeviceTimer:
    """CUDA events. ``residual_s`` is the greatest disagreement seen between two ties."""

    timing: Literal["host", "device"] = "device"

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.current_stream(device)
        self._begin, self._end = self._event(), self._event()
        self._anchor: torch.cuda.Event | None = None
        self._anchor_host_s = 0.0
        self._residual_s: float | None = None

    def tie(self) -> None:
        anchor = self._event()
        anchor.record(self._stream)
        anchor.synchronize()
        host_s = time.perf_counter()
        if self._anchor is not None:
            device_s = self._anchor.elapsed_time(anchor) / 1e3
            self._residual_s = max(self._residual_s or 0.0, abs(host_s - self._anchor_host_s - device_s))
        self._anchor, self._anchor_host_s = anchor, host_s

    def start(self) -> None:
        self._begin.record(self._stream)

    def stop(self) -> None:
        self._end.record(self._stream)

    def read(self) -> tuple[float, float]:
        if self._anchor is None:
            raise ValueError("The device's clock has not been tied to the host's yet.")
        self._end.synchronize()
        t0 = self._anchor_host_s + self._anchor.elapsed_time(self._begin) / 1e3
        return t0, t0 + self._begin.elapsed_time(self._end) / 1e3

    def clock(self) -> Mapping[str, Any]:
        return {"name": "perf_counter, CUDA events tied to it", "residual_s": self._residual_s}

    @staticmethod
    def _event() -> torch.cuda.Event:
        event: torch.cuda.Event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        return event


class SyncTimer(HostTimer):
    """For devices that run ahead of the host without events of CUDA's kind (MPS): waits at both ends."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    def start(self) -> None:
        synchronize(self._device)
        super().start()

    def stop(self) -> None:
        synchronize(self._device)
        super().stop()


def timer_for(device: torch.device) -> StepTimer:
    if device.type == "cuda":
        return DeviceTimer(device)
    return SyncTimer(device) if device.type == "mps" else HostTimer()


def synchronize(device: torch.device) -> None:
    """Wait until ``device`` has done what it was told. The CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
