"""Which precisions this device and model really profit from, found by timing each once.

Fewer bytes a weight are a lesson only where they are faster. Each precision that can be built is built, one prefill
chunk and a few decode steps are timed, and the rules of ``judge`` say what is offered, why the rest is not, and which
is the default: the fastest prefill, since that is where a device without matrix units would otherwise lose most.
Timed once and kept on disk. Not covered: how timings change with context, or with another program on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from engine.backend import Backend
from engine.failures import sentence
from engine.precisions import PrecisionSupport
from engine.timing import timer_for
from telemetry.protocol import PrecisionOffer

PREFILL_TOKENS = 2048  # at most; a backend's chunk is smaller on a CPU
DECODE_STEPS = 8
TIE = 0.03  # prefill rates this near count as equal


@dataclass(frozen=True, slots=True)
class Timed:
    """Tokens per second of one precision."""

    prefill_tok_s: float
    decode_tok_s: float


def time_backend(backend: Backend) -> Timed:
    """The better of two prefills of one chunk, and the median of a few decode steps, after a warm-up."""
    n = min(PREFILL_TOKENS, backend.prefill_chunk, backend.capacity_tokens - DECODE_STEPS - 2)
    ids = torch.arange(1, n + 1, dtype=torch.int64) % backend.spec.vocab
    timer = timer_for(backend.device)
    timer.tie()

    def timed(work: Callable[[], object]) -> float:
        timer.start()
        work()
        timer.stop()
        t0, t1 = timer.read()
        return max(t1 - t0, 1e-9)

    def prefill() -> None:
        backend.reset()
        backend.prefill(ids, 0)

    prefill()
    prefill_s = min(timed(prefill) for _ in range(2))
    backend.decode(1, n)
    steps = sorted(timed(lambda i=i: backend.decode(1, n + 1 + i)) for i in range(DECODE_STEPS))  # type: ignore[misc]
    backend.reset()
    return Timed(n / prefill_s, 1.0 / steps[len(steps) // 2])


def time_all(supports: Sequence[PrecisionSupport], build: Callable[[str], Backend]) -> dict[str, Timed | str]:
    """Each precision's figures, or the sentence that its building or running ended with."""
    found: dict[str, Timed | str] = {}
    for candidate in supports:
        if not candidate.available:
            continue
        try:
            found[candidate.precision] = time_backend(build(candidate.precision))
        except (RuntimeError, ValueError, MemoryError) as error:
            found[candidate.precision] = f"It did not run here. {sentence(error)}"
    return found


def judge(
    supports: Sequence[PrecisionSupport], timed: Mapping[str, Timed | str]
) -> tuple[tuple[PrecisionOffer, ...], str | None]:
    """The offers in the given order, and the default precision (None when nothing runs).

    fp32 is the reference and always offered where it runs. bf16 must beat it in prefill or in decode. int8 and int4
    must beat bf16 (fp32 where there is no bf16) in decode, which is what they are for.
    """
    offers = tuple(_offer(candidate, timed) for candidate in supports)
    offered = [o for o in offers if o.offered]
    if not offered:
        return offers, None
    fastest = max(o.prefill_tok_s or 0.0 for o in offered)
    tied = [o for o in offered if (o.prefill_tok_s or 0.0) >= fastest * (1 - TIE)]
    return offers, max(tied, key=lambda o: o.decode_tok_s or 0.0).precision


def _offer(candidate: PrecisionSupport, timed: Mapping[str, Timed | str]) -> PrecisionOffer:
    figures = timed.get(candidate.precision)
    if not isinstance(figures, Timed):
        why = figures if candidate.available else candidate.reason
        return PrecisionOffer(candidate.precision, False, candidate.label, why or "It was not timed here.")
    reason = _slower(candidate.precision, figures, timed)
    return PrecisionOffer(
        candidate.precision, reason is None, candidate.label, reason, figures.prefill_tok_s, figures.decode_tok_s
    )


def _slower(precision: str, own: Timed, timed: Mapping[str, Timed | str]) -> str | None:
    fp32, bf16 = timed.get("fp32"), timed.get("bf16")
    if precision == "bf16" and isinstance(fp32, Timed) and not _faster_somewhere(own, fp32):
        return (
            f"Slower than fp32 here in both phases: {own.prefill_tok_s:.0f} against {fp32.prefill_tok_s:.0f} tok/s "
            f"reading, {own.decode_tok_s:.1f} against {fp32.decode_tok_s:.1f} writing."
        )
    if precision in ("int8", "int4"):
        name, rival = ("bf16", bf16) if isinstance(bf16, Timed) else ("fp32", fp32)
        if isinstance(rival, Timed) and own.decode_tok_s <= rival.decode_tok_s:
            return (
                f"Not faster than {name} here: {own.decode_tok_s:.1f} against {rival.decode_tok_s:.1f} tok/s writing."
            )
    return None


def _faster_somewhere(own: Timed, rival: Timed) -> bool:
    return own.prefill_tok_s > rival.prefill_tok_s or own.decode_tok_s > rival.decode_tok_s


def conditions(
    model: tuple[str, str | None, int | None], device: tuple[str, int], supports: Sequence[PrecisionSupport]
) -> dict[str, Any]:
    """What timings depend on. ``model``: name, revision, size in bytes. ``device``: name, threads."""
    return {
        "model": list(model),
        "device": list(device),
        "torch": torch.__version__,
        "precisions": [[s.precision, s.available] for s in supports],
    }


def to_facts(timed: Mapping[str, Timed | str]) -> dict[str, object]:
    """JSON-ready, for :mod:`engine.remembered`."""
    return {p: figures if isinstance(figures, str) else asdict(figures) for p, figures in timed.items()}


def from_facts(facts: object) -> dict[str, Timed | str] | None:
    """The inverse of ``to_facts``; None when it is not that."""
    if not isinstance(facts, dict):
        return None
    try:
        return {p: figures if isinstance(figures, str) else Timed(**figures) for p, figures in facts.items()}
    except TypeError:
        return None
