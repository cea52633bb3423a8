"""Published speed-ups of speculative decoding, read for calibration and score: tokens a round over passes a round.

A row is predicted from its acceptance (a probability with the number of guesses, or the mean tokens a verifying pass
yields) and its method. A row without acceptance says nothing about the arithmetic and is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sim.models import find_model
from sim.observations import RawRow, Skipped, number
from sim.speculation import (
    METHODS,
    ROUND_PRIOR,
    ROUND_PRIOR_ROWS,
    DraftMethod,
    expected_tokens,
    layers_of_size,
    published_round,
)


@dataclass(frozen=True, slots=True)
class Speedup:
    """``tokens`` a round yields and the measured ``speedup``; their quotient is what the round cost."""

    device: str
    reliability: str
    tokens: float
    speedup: float
    method: DraftMethod
    guesses: int | None
    target_layers: int
    stated_cost: float | None
    fingerprint: tuple[str, ...]

    def predicted(self, rounds: Mapping[str, float]) -> float:
        """The speed-up in closed form."""
        return self.tokens / published_round(self.method, self.guesses, self.target_layers, self.stated_cost, rounds)


def observe_speedup(row: RawRow) -> Speedup:
    """A row of the speculation file. Raises Skipped with the reason."""
    measured = number(row, "speedup")
    if measured is None or measured <= 0:
        raise Skipped("no speed-up over plain decoding")
    if "RELATIVE" in row.get("notes", ""):
        raise Skipped("speed-up over another method")
    guesses = _guesses(row)
    method = METHODS.get(row.get("method", "").lower().split(" (")[0])
    if method is None:
        raise Skipped("drafting method not known")
    return Speedup(
        row.get("hardware", ""),
        row.get("reliability", "") or "A",
        _tokens(row, guesses),
        measured,
        method,
        guesses,
        _layers(row.get("target", "")),
        number(row, "c_draft_cost_ratio"),
        speedup_fingerprint(row),
    )


def speedup_fingerprint(row: RawRow) -> tuple[str, ...]:
    """What makes a speed-up itself, wherever its row stands."""
    columns = ("hardware", "engine", "target", "draft", "method", "batch", "task", "temperature", "k")
    return (*(row.get(c, "").strip().lower() for c in columns), f"{number(row, 'speedup') or 0:.6g}")


def fit_rounds(seen: Sequence[Speedup]) -> dict[str, dict[str, float]]:
    """What a round of a chain and of a tree costs beyond the closed form: over all rows (""), and without each device.

    The median of what is left over, pulled to the prior as if that were ``ROUND_PRIOR_ROWS`` rows; never below 0.
    """
    devices = sorted({s.device for s in seen})
    return {"": _fit(seen)} | {d: _fit([s for s in seen if s.device != d]) for d in devices}


def _fit(seen: Iterable[Speedup]) -> dict[str, float]:
    nothing = {"chain": 0.0, "tree": 0.0}
    left: dict[str, list[float]] = {"chain": [], "tree": []}
    for s in seen:
        known = published_round(s.method, s.guesses, s.target_layers, s.stated_cost, nothing)
        left["tree" if s.method.tree else "chain"].append(s.tokens / s.speedup - known)
    return {kind: _shrunk(values, ROUND_PRIOR[kind]) for kind, values in left.items()}


def _shrunk(values: Sequence[float], prior: float) -> float:
    if not values:
        return prior
    n = len(values)
    return max(0.0, (n * median(values) + ROUND_PRIOR_ROWS * prior) / (n + ROUND_PRIOR_ROWS))


def _tokens(row: RawRow, guesses: int | None) -> float:
    mean = number(row, "mean_tokens_per_verify")
    if mean is not None and mean >= 1:
        return mean
    acceptance = number(row, "alpha")
    if acceptance is None or guesses is None:
        raise Skipped("no acceptance given")
    return expected_tokens(acceptance, guesses)


def _guesses(row: RawRow) -> int | None:
    k = number(row, "k")
    return int(k) if k and k >= 1 and k == int(k) else None


def _layers(target: str) -> int:
    try:
        return find_model(target).n_layers
    except LookupError:
        pass
    size = re.search(r"(\d+(?:\.\d+)?) ?B\b", target)
    if not size:
        raise Skipped("size of the target not known")
    return layers_of_size(float(size[1]))
