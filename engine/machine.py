"""The device that the engine runs on: which one, what it is called, how much it holds, how many threads to use.

Chosen in the order cuda, mps, cpu; nothing of CUDA is called before it is known to be there. Facts that the machine
does not tell are None. Rates are not here: see ``ceilings.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.host import cpu_last_level_cache_bytes, cpu_name, memory_bytes, physical_cores
from telemetry.sensors.nvml import peak_bytes_per_s


@dataclass(frozen=True, slots=True)
class Machine:
    """One device. ``driver_bytes_per_s``: memory clock x bus width as its driver reports them."""

    device: torch.device
    name: str
    uuid: str | None
    memory_bytes: int | None
    last_level_cache_bytes: int | None
    driver_bytes_per_s: float | None
    threads: int


def this_machine(device: str | None = None) -> Machine:
    """The machine as it is now. ``device``: ``cpu``, ``cuda``, ``mps``, or None for the best there is.

    Raises ValueError with a sentence when the asked device is not here.
    """
    chosen = choose_device(device)
    return _cuda_machine(chosen) if chosen.type == "cuda" else _host_machine(chosen)


def choose_device(asked: str | None = None) -> torch.device:
    present: dict[str, Callable[[], bool]] = {"cuda": _has_cuda, "mps": _has_mps, "cpu": lambda: True}
    if asked is not None:
        kind = torch.device(asked).type
        if kind not in present or not present[kind]():
            raise ValueError(f"This machine has no {asked} device that PyTorch can use.")
        return _indexed(torch.device(asked))
    return _indexed(torch.device(next(kind for kind, here in present.items() if here())))


def use_threads(threads: int | None = None) -> int:
    """Set torch's threads to ``threads``, else SILICONSCOPE_THREADS, else the physical cores. Returns the number.

    More threads than cores made a step 1.5 times slower where it was tried; one fewer leaves the browser a core.
    """
    wanted = threads or _environment_threads() or physical_cores()
    torch.set_num_threads(max(1, wanted))
    return torch.get_num_threads()


def _has_cuda() -> bool:
    return torch.cuda.is_available() and torch.cuda.device_count() > 0


def _has_mps() -> bool:
    return torch.backends.mps.is_available()


def _indexed(device: torch.device) -> torch.device:
    return torch.device("cuda", device.index or 0) if device.type == "cuda" else device


def _environment_threads() -> int | None:
    text = os.environ.get("SILICONSCOPE_THREADS", "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _host_machine(device: torch.device) -> Machine:
    return Machine(
        device,
        cpu_name(),
        None,
        memory_bytes(),
        cpu_last_level_cache_bytes() if device.type == "cpu" else None,
        None,
        torch.get_num_threads(),
    )


def _cuda_machine(device: torch.device) -> Machine:
    properties = torch.cuda.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    return Machine(
        device,
        properties.name,
        None if uuid is None else f"GPU-{str(uuid).removeprefix('GPU-')}",
        properties.total_memory,
        getattr(properties, "L2_cache_size", None),
        peak_bytes_per_s(
            1e3 * getattr(properties, "memory_clock_rate", 0), getattr(properties, "memory_bus_width", None)
        ),
        torch.get_num_threads(),
    )
