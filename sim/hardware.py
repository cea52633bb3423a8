"""The catalog of devices, and the ways to find one: by the name its driver gives, by the name a person types.

Rows are ``assets/catalog/hardware.csv``: published dense rates with their source and how far it can be trusted; never
rates with sparsity, and for GeForce cards the 16-bit rate with FP32 accumulation, which is half of what is often
printed. A name is matched whole: a laptop or cut-down variant has other rates, and no percentage is better than one
of the wrong peak. What a device really reaches is measured elsewhere; these are the ceilings of last resort.

The names' "GB" are GiB: an H100 80GB reports 81,559 MiB. Last-level caches are not covered; drivers report them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from sim.names import resolve
from sim.specs import HardwareSpec

CATALOG = Path(__file__).parents[1] / "assets" / "catalog" / "hardware.csv"
GIB = 1 << 30
# Drivers report a little less than the name says (ECC, reserved): T4 0.92, B300 0.93, never more.
_MEMORY_SHARE = (0.88, 1.03)

_MAKERS = ("nvidia", "geforce", "tesla", "amd", "radeon", "intel", "r", "tm")
_NOISE = frozenset((*_MAKERS, "generation", "graphics", "gpu", "cpu", "processor", "oam", "edition"))
# Names that drivers write in their own way, as (pattern in a lower-case device name, replacement).
_ALIASES = (
    (r"\bh100 80gb hbm3\b", "h100 sxm5 80gb"),
    (r"\b(h200|b200|b300)$", r"\1 sxm"),
    (r"\bgh200 480gb\b", "gh200"),  # 480 GB is the processor's memory; the GPU's decides the variant
    (r"^nvidia gb10$", "dgx spark gb10"),
    (r"\d+(th|rd|nd) gen ", ""),
    (r"@.*", ""),
    (r"\b\d+-core processor\b", ""),
)
_SIZE = re.compile(r"\b(\d+) ?gb?\b")


@cache
def all_hardware() -> tuple[HardwareSpec, ...]:
    """All devices of the catalog, rates in FLOP/s, OP/s and bytes/s. Raises OSError when the file is missing."""
    with CATALOG.open(encoding="utf-8", newline="") as file:
        return tuple(spec_of_row(row) for row in csv.DictReader(file))


def find(name: str, memory_bytes: int | None = None) -> HardwareSpec | None:
    """The device that a driver's name means ("NVIDIA H100 80GB HBM3", "AMD EPYC 9654 96-Core Processor"), or None.

    ``memory_bytes``: what the driver reports; it decides between variants, and a graphics card whose memory does not
    fit the row is another variant. Where neither name nor memory decides, the answer is None, never a guess.
    """
    wanted = name.lower()
    for pattern, replacement in _ALIASES:
        wanted = re.sub(pattern, replacement, wanted).strip()
    found = [spec for spec in all_hardware() if _is_meant(spec, wanted, memory_bytes)]
    return found[0] if len(found) == 1 else None


def find_hardware(name: str, own: Iterable[HardwareSpec] = ()) -> HardwareSpec:
    """The device that a person means ("h100-sxm", "RTX 4090"), ``own`` ones before the catalog's.

    Raises LookupError with the nearest names where it is none, or could be several.
    """
    specs = {spec.name: spec for spec in (*all_hardware(), *own)}
    return specs[resolve(name, specs, "device")]


def _is_meant(spec: HardwareSpec, wanted: str, memory_bytes: int | None) -> bool:
    row_name = _row_name(spec)
    if _words(row_name) != _words(wanted):
        return False
    row_gib, named_gib = _size_gib(row_name), _size_gib(wanted)
    if row_gib is not None and named_gib is None and memory_bytes is None:
        return False  # the row is one of several sizes
    if named_gib is not None and row_gib is not None and named_gib != row_gib:
        return False
    if spec.kind != "gpu" or memory_bytes is None or spec.memory_bytes is None:
        return True
    low, high = _MEMORY_SHARE
    return low <= memory_bytes / spec.memory_bytes <= high


def _row_name(spec: HardwareSpec) -> str:
    """The row's name without what no driver's name says: sockets and memory modules of a processor."""
    name = spec.name.lower().replace("(per gpu)", "")
    return re.sub(r"\(.*\)|\bddr\d-\d+", "", name) if spec.kind == "cpu" else name


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9.+]+", _SIZE.sub(" ", name))) - _NOISE


def _size_gib(name: str) -> int | None:
    size = _SIZE.search(name)
    return int(size[1]) if size else None


def spec_of_row(row: Mapping[str, str]) -> HardwareSpec:
    """A row of the catalog's columns. Raises KeyError for a missing column, ValueError for a cell that is no number."""

    def scaled(column: str, unit: float) -> float | None:
        return float(row[column]) * unit if row[column] else None

    memory, fp16 = scaled("memory_GiB", GIB), scaled("fp16_dense_TFLOPS", 1e12)
    return HardwareSpec(
        name=row["name"],
        vendor=row["vendor"],
        kind=row["kind"],
        memory_bytes=None if memory is None else round(memory),
        bandwidth_bytes_per_s=scaled("bandwidth_GBps", 1e9),
        bf16_flops=fp16 if row["bf16"] == "yes" else None,
        int8_ops=scaled("int8_dense_TOPS", 1e12),
        fp32_flops=scaled("fp32_TFLOPS", 1e12),
        last_level_cache_bytes=None,
        tdp_w=scaled("tdp_W", 1.0),
        source=row["source"],
        confidence=row["confidence"],
        fp16_flops=fp16,
        fp16_accumulate_flops=scaled("fp16_fp16acc_TFLOPS", 1e12),
        fp8_flops=scaled("fp8_dense_TFLOPS", 1e12),
        fp4_flops=scaled("fp4_dense_TFLOPS", 1e12),
        cores=int(row["cores"]) if row["cores"].isdecimal() else None,
        year=int(row["year"]) if row["year"] else None,
        notes=row["notes"],
    )
