"""Which limit holds a step up, and which ceilings its percentages are taken of.

The roofline model (Williams, Waterman, Patterson 2009): a step cannot beat the device's FLOP/s nor its bytes/s. The
share of each ceiling that it reached says which one held it up. When it reached half of neither, something else did
(kernel launches, interpreter, synchronisation): that is named overhead, and never passed off as memory-bound.

Ceilings are chosen once, by the writer of a trace, so that everybody divides by the same figure. A ceiling measured on
the machine wins over one computed from the driver's clocks, and that over a datasheet: datasheets are rarely reached.
Not covered: predicting a step's time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

RegimeName = Literal["compute", "memory", "overhead"]

BOUND_SHARE = 0.5  # a limit must be reached at least half way to be called the limit
DRAM_WORKING_SET_BYTES = 1 << 30  # a read over less may be served by a cache
_RANK = {"measured": 0, "driver": 1, "datasheet": 2}


@dataclass(frozen=True, slots=True)
class Regime:
    """``share``: of its ceiling for compute and memory; for overhead, what the nearer ceiling leaves unexplained."""

    name: RegimeName | None
    share: float | None


def regime(compute_share: float | None, memory_share: float | None) -> Regime:
    """What held a step up, from its shares of the compute and the memory ceiling (fractions, 1.0 is the ceiling).

    The larger share decides when it is at least 0.5; otherwise overhead, with ``1 - larger``. Unknown when either is.
    """
    if compute_share is None or memory_share is None:
        return Regime(None, None)
    larger = max(compute_share, memory_share)
    if larger < BOUND_SHARE:
        return Regime("overhead", 1.0 - larger)
    return Regime("compute" if compute_share >= memory_share else "memory", larger)


class PeakLike(Protocol):
    """A candidate ceiling, as ``telemetry.events.Peak`` has it. Values in FLOP/s or bytes/s."""

    @property
    def quantity(self) -> Literal["flops", "bytes_per_s"]: ...
    @property
    def value(self) -> float: ...
    @property
    def provenance(self) -> Literal["datasheet", "driver", "measured"]: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def working_set_bytes(self) -> int | None: ...


P = TypeVar("P", bound=PeakLike)


@dataclass(frozen=True, slots=True)
class CeilingChoice(Generic[P]):
    """The chosen denominators; None where no candidate may stand for one."""

    prefill_compute: P | None
    decode_compute: P | None
    memory: P | None
    from_cache: bool


def choose_ceilings(
    peaks: Iterable[P],
    *,
    prefill_dtype: str,
    decode_dtype: str,
    decode_weights_bytes: int | None,
    last_level_cache_bytes: int | None,
) -> CeilingChoice[P]:
    """The ceilings of a run, from all candidates of its device.

    Compute: peaks of the very dtype that the phase's products use; measured over driver over datasheet, the greatest
    within one provenance. Memory: likewise, a measured one only when read over 1 GiB or more. When the decode weights
    fit the last-level cache, only a read measured at about their size (within a factor of 2, the nearest) will do:
    ``from_cache`` is then true, nothing is claimed about DRAM, and without such a measurement ``memory`` is None.
    """
    candidates = list(peaks)
    from_cache = (
        decode_weights_bytes is not None
        and last_level_cache_bytes is not None
        and decode_weights_bytes <= last_level_cache_bytes
    )
    if from_cache and decode_weights_bytes is not None:
        memory = _cache_read(candidates, decode_weights_bytes)
    else:
        memory = _best(p for p in candidates if p.quantity == "bytes_per_s" and _speaks_for_dram(p))
    return CeilingChoice(
        _best(p for p in candidates if p.quantity == "flops" and p.dtype == prefill_dtype),
        _best(p for p in candidates if p.quantity == "flops" and p.dtype == decode_dtype),
        memory,
        from_cache,
    )


def _best(candidates: Iterable[P]) -> P | None:
    return min((p for p in candidates if p.value > 0), key=lambda p: (_RANK[p.provenance], -p.value), default=None)


def _speaks_for_dram(peak: PeakLike) -> bool:
    return peak.provenance != "measured" or (peak.working_set_bytes or 0) >= DRAM_WORKING_SET_BYTES


def _cache_read(candidates: Iterable[P], size_bytes: int) -> P | None:
    near = [
        p
        for p in candidates
        if p.quantity == "bytes_per_s"
        and p.provenance == "measured"
        and p.working_set_bytes is not None
        and size_bytes / 2 <= p.working_set_bytes <= size_bytes * 2
    ]
    return min(near, key=lambda p: (abs((p.working_set_bytes or 0) - size_bytes), -p.value), default=None)
