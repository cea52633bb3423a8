"""What this machine can do at best, measured: the denominators of compute and memory shares.

A datasheet's rate is rarely reached, and on a CPU there is none. So the fastest of several kernels counts, for the
arithmetic in each precision and for reading memory, each at several sizes: a single kernel would be beaten by the
model's own, and a share would pass 100 %. Reading is measured over 1 GiB, which no cache serves, and at the model's own
weight sizes, which one may. Everything is done in 10 s and kept on disk; a torn or foreign file is measured anew.

Not covered: write bandwidth, several devices, what clocks do after a minute of heat.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.kernels import PACK_HINTS, PackedLinear
from engine.machine import Machine
from engine.remembered import Remembered
from engine.timing import synchronize
from sim.costs import weight_bytes
from sim.hardware import find
from sim.roofline import choose_ceilings
from sim.specs import ModelSpec
from telemetry.events import Ceilings, Device, Peak

OWN_BITS = (32.0, 16.0, 8.5, 5.0)  # fp32, bf16, int8 and int4 with their scales
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

Kernel = Callable[[], object]
Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rates:
    """What a run's phase reached on average: FLOP/s and bytes/s."""

    flops: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure; the defaults take under 10 s. Tests make it small."""

    read_bytes: tuple[int, ...] = (1 << 30,)
    squares: tuple[int, ...] = (2048, 1024)
    rows: int = 256
    trial_s: float = 0.08
    compute_budget_s: float = 4.0
    dram_budget_s: float = 2.5
    own_size_budget_s: float = 0.4


def full_plan(device: torch.device, spec: ModelSpec) -> Plan:
    """The measurement for a model on a device: 1 GiB, and the model's own weights at each precision's size."""
    weights = [weight_bytes(spec, bits) for bits in OWN_BITS]
    own = {w.layers + w.head + w.norms for w in weights}
    reads = (1 << 30, *sorted((size for size in own if size < 1 << 30), reverse=True))
    if device.type == "cpu":
        return Plan(read_bytes=reads)
    return Plan(read_bytes=reads, squares=(8192, 4096), rows=4096)


def own_shapes(spec: ModelSpec) -> tuple[Shape, ...]:
    """(out, in) of the model's own products: the head, the MLP both ways, the queries."""
    queries = spec.n_heads * spec.head_dim
    shapes = ((spec.vocab, spec.hidden), (spec.intermediate, spec.hidden), (spec.hidden, spec.intermediate))
    return (*shapes, (queries, spec.hidden))


def measure(device: torch.device, shapes: Sequence[Shape], plan: Plan) -> tuple[Peak, ...]:
    """One peak for each dtype's arithmetic and for each working set read. What does not run here is left out."""
    peaks = []
    for dtype in DTYPES:
        budget = plan.compute_budget_s / len(DTYPES)
        peaks.append(_measure_compute(device, dtype, shapes, plan, budget))
    for size in plan.read_bytes:
        budget = plan.dram_budget_s if size >= 1 << 30 else plan.own_size_budget_s
        peaks.append(_measure_read(device, size, budget))
    return tuple(p for p in peaks if p is not None)


def published(machine: Machine) -> tuple[Peak, ...]:
    """What the datasheet and the driver say of this device; empty where neither knows it."""
    peaks = []
    spec = find(machine.name, machine.memory_bytes)
    if spec is not None:
        rates = {"bf16": spec.bf16_flops, "fp32": spec.fp32_flops}
        peaks += [Peak("flops", v, "datasheet", f"datasheet, dense {d}", d) for d, v in rates.items() if v]
        if spec.bandwidth_bytes_per_s:
            peaks.append(Peak("bytes_per_s", spec.bandwidth_bytes_per_s, "datasheet", "datasheet"))
    if machine.driver_bytes_per_s:
        peaks.append(Peak("bytes_per_s", machine.driver_bytes_per_s, "driver", "memory clock x bus width"))
    return tuple(peaks)


def choose(device: Device, prefill_dtype: str, decode_dtype: str, decode_weights_bytes: int) -> Ceilings:
    """The run's denominators from the device's peaks, by ``sim.roofline``'s rule."""
    chosen = choose_ceilings(
        device.peaks,
        prefill_dtype=prefill_dtype,
        decode_dtype=decode_dtype,
        decode_weights_bytes=decode_weights_bytes,
        last_level_cache_bytes=device.last_level_cache_bytes,
    )
    return Ceilings(chosen.prefill_compute, chosen.decode_compute, chosen.memory, chosen.from_cache)


def raised(ceilings: Ceilings, prefill: Rates | None, decode: Rates | None) -> Ceilings:
    """The ceilings, none lower than what the run itself reached: the model's own step is a kernel like another."""
    n_bytes = max((r.bytes_per_s for r in (prefill, decode) if r), default=None)
    return replace(
        ceilings,
        prefill_compute=_at_least(ceilings.prefill_compute, prefill.flops if prefill else None),
        decode_compute=_at_least(ceilings.decode_compute, decode.flops if decode else None),
        memory=_at_least(ceilings.memory, n_bytes),
    )


def _at_least(peak: Peak | None, rate: float | None) -> Peak | None:
    if peak is None or rate is None or rate <= peak.value:
        return peak
    return replace(peak, value=rate, provenance="measured", label="reached here by this run")


def measured(
    machine: Machine,
    shapes: Sequence[Shape],
    plan: Plan,
    folder: Path,
    announce: Callable[[], object] = lambda: None,
) -> tuple[Peak, ...]:
    """The peaks of :func:`measure`, from disk if they were measured under the same conditions before.

    ``announce`` is called only when there is something to measure.
    """
    remembered, under = Remembered(folder, "ceilings"), conditions(machine, shapes, plan)
    peaks = _peaks(remembered.load(under))
    if peaks is None:
        announce()
        peaks = measure(machine.device, shapes, plan)
        remembered.store(under, [asdict(p) for p in peaks])
    return peaks


def _peaks(facts: Any) -> tuple[Peak, ...] | None:
    try:
        peaks = tuple(Peak(**p) for p in facts)
    except TypeError:
        return None
    return peaks if all(isinstance(p.value, int | float) and p.value > 0 for p in peaks) else None


def conditions(machine: Machine, shapes: Sequence[Shape], plan: Plan) -> dict[str, Any]:
    """What measured peaks depend on."""
    return {
        "device": machine.name,
        "torch": torch.__version__,
        "threads": machine.threads,
        "dtypes": list(DTYPES),
        "shapes": [list(s) for s in shapes],
        "read_bytes": list(plan.read_bytes),
    }


def _measure_compute(
    device: torch.device, dtype: str, shapes: Sequence[Shape], plan: Plan, budget_s: float
) -> Peak | None:
    deadline, best, label = time.perf_counter() + budget_s, 0.0, ""
    squares = tuple((plan.rows if device.type == "cpu" else n, n, n) for n in plan.squares)
    for rows, out, inner in (*((n, n, n) for n in plan.squares), *squares, *((plan.rows, o, i) for o, i in shapes)):
        for name, kernel in _products(device, DTYPES[dtype], rows, out, inner):
            if time.perf_counter() > deadline:
                break
            seconds = best_time(kernel, device, plan.trial_s)
            rate = 2.0 * rows * out * inner / seconds if seconds else 0.0
            if rate > best:
                best, label = rate, f"measured, {dtype} matrix product ({name}, {rows}x{inner}x{out})"
    return Peak("flops", best, "measured", label, dtype) if best else None


def _products(
    device: torch.device, dtype: torch.dtype, rows: int, out: int, inner: int
) -> Iterator[tuple[str, Kernel]]:
    x = torch.ones(rows, inner, dtype=dtype, device=device)
    w = torch.ones(out, inner, dtype=dtype, device=device)
    packed = _packed(w) if device.type == "cpu" else None
    if packed is not None:
        yield "packed", lambda: packed(x)
    yield "linear", lambda: torch.nn.functional.linear(x, w)
    wt = w.t().contiguous()
    yield "mm", lambda: torch.mm(x, wt)


def _measure_read(device: torch.device, size: int, budget_s: float) -> Peak | None:
    deadline, best, label = time.perf_counter() + budget_s, 0.0, ""
    try:
        for name, n_bytes, kernel in _reads(device, size):
            seconds = best_time(kernel, device, budget_s / 8, least=3)
            if seconds and n_bytes / seconds > best:
                best, label = n_bytes / seconds, f"measured, reading {_size(size)} ({name})"
            del kernel  # it holds the working set: free it before the next one is made
            if time.perf_counter() > deadline:
                break
    except (MemoryError, RuntimeError):  # torch reports a failed allocation as a RuntimeError
        pass
    return Peak("bytes_per_s", best, "measured", label, working_set_bytes=size) if best else None


def _reads(device: torch.device, size: int) -> Iterator[tuple[str, int, Kernel]]:
    """Kernels that read ``size`` bytes once, with the bytes that each really reads. One working set at a time."""
    side = 2048 if size >= 64 << 20 else 256
    yield from _flat_reads(device, size, side)
    if device.type == "cpu":
        for name, dtype in DTYPES.items():
            weights = _packed_weights(size, side, dtype)
            if weights:
                n_bytes = len(weights) * side * side * dtype.itemsize
                yield f"packed products, {name}", n_bytes, partial(_each, torch.ones(1, side, dtype=dtype), weights)
            del weights


def _flat_reads(device: torch.device, size: int, side: int) -> Iterator[tuple[str, int, Kernel]]:
    flat = torch.ones(size // 4, device=device)
    half = flat.numel() // 2
    matrix = flat[: flat.numel() // side * side].view(-1, side)
    yield "sum", flat.numel() * 4, flat.sum
    yield "dot", half * 8, partial(torch.dot, flat[:half], flat[half : 2 * half])
    yield "matrix x vector", matrix.numel() * 4, partial(torch.mv, matrix, torch.ones(side, device=device))
    yield "max", flat.numel() * 4, flat.max


def _each(x: Tensor, weights: Sequence[PackedLinear]) -> None:
    for w in weights:
        w(x)


def _packed_weights(size: int, side: int, dtype: torch.dtype) -> list[PackedLinear]:
    count = max(1, size // (side * side * dtype.itemsize))
    plain = torch.ones(side, side, dtype=dtype)
    weights = []
    for _ in range(count):
        packed = _packed(plain)
        if packed is None:
            return []
        weights.append(packed)
    return weights


def _packed(weight: Tensor) -> PackedLinear | None:
    """The product that our own forward prefers, with ``weight`` (out, in); None where this build of torch has none."""
    try:
        packed = PackedLinear(weight, None, PACK_HINTS[0])
        packed(torch.ones(1, weight.shape[1], dtype=weight.dtype))
    except (AttributeError, RuntimeError):
        return None
    return packed


def best_time(kernel: Kernel, device: torch.device, trial_s: float, least: int = 2) -> float | None:
    """The shortest of repeated calls in seconds, after one that does not count; None if the kernel does not run."""
    try:
        kernel()
        synchronize(device)
        best, begun, n = float("inf"), time.perf_counter(), 0
        while n < least or time.perf_counter() - begun < trial_s:
            t0 = time.perf_counter()
            kernel()
            synchronize(device)
            best, n = min(best, time.perf_counter() - t0), n + 1
        return best
    except RuntimeError:
        return None


def _size(size: int) -> str:
    return f"{size / (1 << 30):.0f} GiB" if size >= 1 << 30 else f"{size / 1e6:.0f} MB"
