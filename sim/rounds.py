"""Published speed-ups of speculative decoding, read for calibration and score: tokens a round over passes a round.

A row is predicted from its acceptance (a probability with the number of guesses, or the mean tokens a verifying pass
yields) and its method. A row without acceptance says nothing about the arithmetic and is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sim.engines import Setting, find_engine
from sim.formats import find_format
from sim.hardware import find_hardware
from sim.models import find_model
from sim.observations import SHORT_CHAT_TOKENS, RawRow, Skipped, number
from sim.speculation import (
    ROUND_PRIOR,
    ROUND_PRIOR_ROWS,
    USUAL_GUESSES,
    DraftMethod,
    expected_tokens,
    layers_of_size,
    method_of,
    published_round,
    verify_cost,
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
    verify: float
    fingerprint: tuple[str, ...]

    def predicted(self, rounds: Mapping[str, float]) -> float:
        """The speed-up in closed form."""
        round_cost = published_round(self.method, self.guesses, self.target_layers, self.stated_cost, rounds)
        return self.tokens / (round_cost + self.verify - 1)


def observe_speedup(row: RawRow) -> Speedup:
    """A row of the speculation file. Raises Skipped with the reason."""
    measured = number(row, "speedup")
    if measured is None or measured <= 0:
        raise Skipped("no speed-up over plain decoding")
    if "RELATIVE" in row.get("notes", ""):
        raise Skipped("speed-up over another method")
    guesses = _guesses(row)
    method = method_of(row.get("method", ""), tree=row.get("k", "") == "tree")
    return Speedup(
        row.get("hardware", ""),
        row.get("reliability", "") or "A",
        _tokens(row, guesses),
        measured,
        method,
        guesses,
        _layers(row.get("target", "")),
        number(row, "c_draft_cost_ratio"),
        _verify(row, guesses),
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
        known = published_round(s.method, s.guesses, s.target_layers, s.stated_cost, nothing) + s.verify - 1
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


def _verify(row: RawRow, guesses: int | None) -> float:
    """v by the time model for a batch, where device and target are known; 1 for a single sequence."""
    batch = number(row, "batch")
    if batch is None or batch <= 1:
        return 1.0
    try:
        spec, hardware = find_model(row.get("target", "")), find_hardware(row.get("hardware", ""))
        setting = Setting(hardware, find_engine(row.get("engine", ""), hardware), find_format(row["weight_format"]))
        return verify_cost(spec, setting, guesses or USUAL_GUESSES, SHORT_CHAT_TOKENS, batch)
    except (LookupError, ValueError):
        return 1.0


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
