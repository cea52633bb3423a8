"""What can be said about this computer without torch: processor, its cores and cache, and which GPUs the driver lists.

The worker's first line needs it before torch is imported. What the system does not tell is None or empty.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_name() -> str:
    """The processor's marketing name, or what the platform calls it."""
    named = _value_after(Path("/proc/cpuinfo"), "model name")
    return named or platform.processor() or platform.machine() or "CPU"


def gpu_names(gpus: Path = NVIDIA_GPUS) -> tuple[str, ...]:
    """NVIDIA's GPUs as the Linux driver lists them; empty elsewhere."""
    names = (_value_after(card / "information", "Model") for card in sorted(gpus.glob("*")))
    return tuple(name for name in names if name)


def physical_cores() -> int:
    """Physical cores that this process may run on; at least 1. Without psutil, logical ones."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        import psutil
    except ImportError:
        return max(1, allowed)
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


def memory_bytes() -> int | None:
    """All of the computer's memory; None without psutil."""
    try:
        import psutil
    except ImportError:
        return None
    total: int = psutil.virtual_memory().total
    return total


def cpu_last_level_cache_bytes(caches: Path = CPU_CACHES) -> int | None:
    """The highest level of cache that core 0 sees; None where the system does not say (not Linux)."""
    found: dict[int, int] = {}
    for index in caches.glob("index*"):
        try:
            level, size = int((index / "level").read_text()), (index / "size").read_text().strip()
            found[level] = int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size)
        except (OSError, ValueError, IndexError):
            continue
    return found[max(found)] if found else None


def _value_after(path: Path, key: str) -> str | None:
    try:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(key):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return None
