"""The figures that sum a run up, each by the definition that ``docs/trace.md`` gives in words.

The stage in the browser folds the same events by the same definitions, so a figure here and on the page agree. Times
are the events' own, on the trace's monotonic clock; nothing is read from text. A rate without an interval to measure it
over is None, never 0 or infinity.

Repeated prefill steps (``Step.repeat``) exist so that slow counters can see a prefill. They enter no figure: the clock
that the token figures use stands still while they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from statistics import fmean
from typing import Any

from telemetry.events import Ceilings, End, EndReason, Event, Peak, Request, Sample, Step, Token
from telemetry.trace import Trace

ENERGY_METRIC = "energy_j"
MIN_INTERVAL_S = 1e-7  # what a trace resolves
MIN_ENERGY_COVERAGE = 0.9  # of the run's time; below it a sum of readings would pass off a part as the whole


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """One figure for each phase."""

    prefill: float | None
    decode: float | None


@dataclass(frozen=True, slots=True)
class MeanBytes:
    """Bytes of a mean decode step, by part."""

    weights: float
    kv_read: float
    kv_write: float
    activations: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Seconds, tokens per second, FLOPs per byte, fractions of a ceiling, joules. None is unknown."""

    n_prompt_tokens: int | None
    n_new_tokens: int | None
    ttft_s: float | None
    tpot_s: float | None
    itl_p50_s: float | None
    itl_p95_s: float | None
    prefill_tok_s: float | None
    decode_tok_s: float | None
    intensity: PhaseFigures
    bytes_per_token: MeanBytes | None
    mfu: PhaseFigures
    mbu: PhaseFigures
    denominators: Ceilings
    energy_j: float | None
    end_reason: EndReason | None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, with a null in every place that is unknown; the parts of ``bytes_per_token`` always stand."""
        unknown = dict.fromkeys(("weights", "kv_read", "kv_write", "activations"))
        return asdict(self) | {"bytes_per_token": asdict(self.bytes_per_token) if self.bytes_per_token else unknown}


def summarise(trace: Trace, seq: int | None = None) -> Summary:
    """Sum up one sequence, by default that of the first request (or, without one, of the first token).

    Figures of steps (prefill tok/s, intensity, bytes, MFU, MBU) cover the steps that hold a row of the sequence.
    Raises ValueError when ``seq`` is given and no event knows it.
    """
    chosen = _first_sequence(trace.events) if seq is None else seq
    requests = [(e.t, e.body) for e in trace.events if isinstance(e.body, Request) and e.body.seq == chosen]
    if seq is not None and not requests:
        raise ValueError(f"The trace holds no request with seq {seq}.")
    steps = [e.body for e in trace.events if isinstance(e.body, Step) and _concerns(e.body, chosen)]
    counted = [s for s in steps if not s.repeat]
    prefill = [s for s in counted if _is_prefill(s)]
    decode = [s for s in counted if not _is_prefill(s)]
    tokens = _Tokens.of(trace.events, chosen, _standstills(steps))
    ceilings = trace.header.ceilings
    request_t, request = requests[0] if requests else (None, None)
    return Summary(
        n_prompt_tokens=request.n_prompt_tokens if request else None,
        n_new_tokens=tokens.count,
        ttft_s=tokens.first_after(request_t),
        tpot_s=tokens.mean_gap_s(),
        itl_p50_s=percentile(tokens.gaps_s, 0.50),
        itl_p95_s=percentile(tokens.gaps_s, 0.95),
        prefill_tok_s=_prefill_rate(prefill, chosen),
        decode_tok_s=_inverse(tokens.mean_gap_s()),
        intensity=PhaseFigures(_intensity(prefill), _intensity(decode)),
        bytes_per_token=_mean_bytes(decode),
        mfu=PhaseFigures(
            _share(_rate(prefill, _flops), ceilings.prefill_compute),
            _share(_rate(decode, _flops), ceilings.decode_compute),
        ),
        mbu=PhaseFigures(
            _share(_rate(prefill, _total_bytes), ceilings.memory), _share(_rate(decode, _total_bytes), ceilings.memory)
        ),
        denominators=ceilings,
        energy_j=_energy_j(trace.events),
        end_reason=_end_reason(trace.events, chosen),
    )


def percentile(values: Sequence[float], share: float) -> float | None:
    """The value below which ``share`` of the values lie, linear between neighbours (numpy's default)."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """One sequence's output tokens: when each event's tokens came, on the clock without repeats, and how many."""

    times_s: tuple[float, ...]
    counts: tuple[int | None, ...]
    standstills: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, events: Iterable[Event], seq: int | None, standstills: tuple[tuple[float, float], ...]) -> _Tokens:
        tokens = [
            (_running_time(e.t, standstills), e.body.count)
            for e in events
            if isinstance(e.body, Token) and e.body.seq == seq and e.body.verdict != "rejected" and e.body.count != 0
        ]
        return cls(tuple(t for t, _ in tokens), tuple(count for _, count in tokens), standstills)

    @property
    def count(self) -> int | None:
        """None when any event does not say how many tokens it carries."""
        known = [c for c in self.counts if c is not None]
        return sum(known) if len(known) == len(self.counts) else None

    @property
    def gaps_s(self) -> list[float]:
        """Gaps that end in exactly one token: the gap before a chunk of several is no token's latency."""
        gaps = pairwise(self.times_s)
        return [b - a for (a, b), count in zip(gaps, self.counts[1:], strict=True) if count == 1]

    def first_after(self, request_t: float | None) -> float | None:
        if request_t is None or not self.times_s:
            return None
        wait_s = self.times_s[0] - _running_time(request_t, self.standstills)
        return wait_s if wait_s >= 0 else None

    def mean_gap_s(self) -> float | None:
        """(last - first) / (n - 1); None below two tokens, or when all came at one moment."""
        if self.count is None or self.count < 2 or not _measurable(self.times_s[-1] - self.times_s[0]):
            return None
        return (self.times_s[-1] - self.times_s[0]) / (self.count - 1)


def _standstills(steps: Iterable[Step]) -> tuple[tuple[float, float], ...]:
    """Each unbroken run of repeat steps, from its first start to its last end."""
    ordered = sorted(steps, key=lambda s: s.t0)
    runs = [list(run) for repeated, run in groupby(ordered, key=lambda s: s.repeat) if repeated]
    return tuple((run[0].t0, max(s.t1 for s in run)) for run in runs)


def _running_time(t: float, standstills: Iterable[tuple[float, float]]) -> float:
    return t - sum(min(t, end) - start for start, end in standstills if t > start)


def _first_sequence(events: Sequence[Event]) -> int | None:
    requests = (e.body.seq for e in events if isinstance(e.body, Request))
    tokens = (e.body.seq for e in events if isinstance(e.body, Token))
    return next(requests, next(tokens, None))


def _concerns(step: Step, seq: int | None) -> bool:
    return seq is None or any(row.seq == seq for row in step.rows)


def _is_prefill(step: Step) -> bool:
    """A step that mixes prefill and decode rows belongs to prefill: its prompt tokens set its time."""
    return any(row.kind == "prefill" for row in step.rows)


def _prefill_rate(steps: Sequence[Step], seq: int | None) -> float | None:
    n_tokens = sum(r.n_tokens for s in steps for r in s.rows if r.kind == "prefill" and seq in (None, r.seq))
    time_s = sum(s.t1 - s.t0 for s in steps)
    return n_tokens / time_s if n_tokens and _measurable(time_s) else None


def _flops(step: Step) -> float | None:
    return step.flops


def _total_bytes(step: Step) -> float | None:
    return None if step.bytes is None else step.bytes.total


def _rate(steps: Iterable[Step], amount: Callable[[Step], float | None]) -> float | None:
    """Amount per second over the steps that know their amount: sum over sum, not a mean of rates."""
    known = [(value, s.t1 - s.t0) for s in steps if (value := amount(s)) is not None]
    time_s = sum(duration for _, duration in known)
    return sum(value for value, _ in known) / time_s if _measurable(time_s) else None


def _share(rate: float | None, ceiling: Peak | None) -> float | None:
    return None if rate is None or ceiling is None else rate / ceiling.value


def _intensity(steps: Iterable[Step]) -> float | None:
    known = [(s.flops, s.bytes.total) for s in steps if s.flops is not None and s.bytes is not None]
    n_bytes = sum(total for _, total in known)
    return sum(flops for flops, _ in known) / n_bytes if n_bytes else None


def _mean_bytes(steps: Iterable[Step]) -> MeanBytes | None:
    known = [s.bytes for s in steps if s.bytes is not None]
    if not known:
        return None
    return MeanBytes(
        weights=fmean(b.weights for b in known),
        kv_read=fmean(b.kv_read for b in known),
        kv_write=fmean(b.kv_write for b in known),
        activations=fmean(b.activations for b in known),
    )


def _energy_j(events: Sequence[Event]) -> float | None:
    """The energy of all devices from t = 0 to the last token or step, readings at the edges taken in proportion.

    None unless every device that reports energy has readings over at least 0.9 of that time.
    """
    end_t = max((e.t for e in events if isinstance(e.body, Token | Step)), default=0.0)
    readings = [
        e.body
        for e in events
        if isinstance(e.body, Sample) and e.body.metric == ENERGY_METRIC and e.body.value is not None
    ]
    if end_t <= 0 or not readings:
        return None
    total_j = 0.0
    for device in {r.device for r in readings}:
        own = [(r, _overlap_s(r, end_t)) for r in readings if r.device == device and r.t1 > r.t0]
        if sum(overlap for _, overlap in own) < MIN_ENERGY_COVERAGE * end_t:
            return None
        total_j += sum((r.value or 0.0) * overlap / (r.t1 - r.t0) for r, overlap in own)
    return total_j


def _overlap_s(reading: Sample, end_t: float) -> float:
    return max(0.0, min(reading.t1, end_t) - max(reading.t0, 0.0))


def _end_reason(events: Sequence[Event], seq: int | None) -> EndReason | None:
    """The sequence's own end, else the whole engine's."""
    ends = [e.body for e in events if isinstance(e.body, End)]
    own = (end.reason for end in ends if end.seq == seq)
    return next(own, next((end.reason for end in ends if end.seq is None), None))


def _measurable(interval_s: float) -> bool:
    return interval_s >= MIN_INTERVAL_S


def _inverse(value: float | None) -> float | None:
    return None if value is None else 1.0 / value
