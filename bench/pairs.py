"""Paired measurements: A B A B …, judged by the ratio within each pair, so that a drifting machine cancels out."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of paired ratios, with a bootstrapped 95 % interval of that median."""

    median: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.median:.3f} (95 % {self.low:.3f} to {self.high:.3f}, {self.n} pairs)"


def paired_ratio(a: Sequence[float], b: Sequence[float], resamples: int = 2000) -> Ratio:
    """a/b pair by pair. Raises ValueError when the two differ in length or are empty."""
    if len(a) != len(b) or not a:
        raise ValueError("Pairs need two equally long, non-empty series.")
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(resamples))
    low, high = medians[int(0.025 * resamples)], medians[int(0.975 * resamples) - 1]
    return Ratio(statistics.median(ratios), low, high, len(ratios))


def interleave(a: Callable[[], float], b: Callable[[], float], pairs: int) -> tuple[list[float], list[float]]:
    """Run both in turn, the order swapped each time so that neither always goes first; what each returned."""
    first: list[float] = []
    second: list[float] = []
    for i in range(pairs):
        if i % 2:
            second.append(b())
            first.append(a())
        else:
            first.append(a())
            second.append(b())
    return first, second
