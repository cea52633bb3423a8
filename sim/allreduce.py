"""What it costs that tensor-parallel devices add up their partial results, twice a layer.

An all-reduce takes a latency and sends each rank's bytes 2 (n - 1) / n times over the link (a ring, as NCCL's "bus
bandwidth" is defined). Latencies are fitted with the other constants (``rates.py``), since engines bring their own
kernels for small messages; bandwidths are read here from NCCL measurements of large ones, in
``assets/catalog/allreduce.csv``. Below about 1 MB that file is noisy by a factor of 5, and is used for nothing but the
prior of the latency.

Not covered: links between machines, NVLink after its fourth generation (taken as the fourth), AMD's and Google's links.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal

from sim.specs import HardwareSpec

MEASURED = Path(__file__).parents[1] / "assets" / "catalog" / "allreduce.csv"
LARGE_BYTES = 16 << 20  # from here on bandwidth rules
SMALL_BYTES = 100_000  # up to here latency does

Link = Literal["NVLink 3", "NVLink 4", "PCIe"]
# The file's rows that stand for a link. Four cards with NVLink in pairs are as slow as the PCIe between the pairs.
_ROWS: dict[Link, tuple[str, tuple[int, ...]]] = {
    "NVLink 3": ("A100 SXM4 80GB", (2, 4, 8)),
    "NVLink 4": ("H100 SXM5 80GB", (2, 4, 8)),
    "PCIe": ("A100 80GB pairwise NVLink (form factor not stated)", (4,)),
}
_NVLINK_4_SINCE = 2022


def link_of(hardware: HardwareSpec) -> Link:
    """The link between several of a device: NVLink for boards made for it, PCIe for all others."""
    linked = hardware.vendor == "NVIDIA" and any(word in hardware.name for word in ("SXM", "GB200", "GH200", "NVL"))
    if not linked:
        return "PCIe"
    return "NVLink 4" if (hardware.year or 0) >= _NVLINK_4_SINCE else "NVLink 3"


def bus_bytes_per_s(hardware: HardwareSpec) -> float:
    """Bytes a second that each rank sends in a large all-reduce: the median measured on the device's kind of link."""
    return _bus_bytes_per_s(link_of(hardware))


def small_latencies_s() -> tuple[float, ...]:
    """Measured times of messages that are nearly all latency, ascending, in seconds."""
    return tuple(sorted(float(r["all_reduce_ms"]) / 1e3 for r in _rows() if int(r["bytes"]) <= SMALL_BYTES))


@cache
def _bus_bytes_per_s(link: Link) -> float:
    hardware, counts = _ROWS[link]
    large = [r for r in _rows() if r["hardware"] == hardware and int(r["bytes"]) >= LARGE_BYTES]
    return 1e9 * median(float(r["busbw_GBps"]) for r in large if int(r["n_gpus"]) in counts)


@cache
def _rows() -> tuple[dict[str, str], ...]:
    with MEASURED.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))
