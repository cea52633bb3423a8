"""Numbers that people type, checked before any arithmetic: one sentence that says what to change, never a clamp.

A figure is refused when it is no number, not finite, not positive, or so large that no machine or text has it; nothing
is corrected silently. A context longer than the model was made for is possible, so it is a warning.
"""

from __future__ import annotations

from math import isfinite

from sim.specs import ModelSpec

MOST_TOKENS = 10**8
MOST_SEQUENCES = 10**6


def check_count(what: str, count: object, most: int = MOST_TOKENS) -> int:
    """``count`` if it is a whole number from 1 to ``most``. Raises ValueError with one sentence otherwise."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise ValueError(f"{what} must be a whole number from 1 to {most:,}, not {_shown(count)}.")
    return count


def check_rate(what: str, rate: object, unit: str, most: float = 1e9) -> float:
    """``rate`` as a float if it is above 0 and at most ``most``. Raises ValueError with one sentence otherwise."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not isfinite(rate) or not 0 < rate <= most:
        raise ValueError(f"{what} must be a number of {unit} above 0 and at most {most:g}, not {_shown(rate)}.")
    return float(rate)


def context_warning(spec: ModelSpec, context_tokens: int) -> str | None:
    """A sentence where the context is longer than the model was made for, else None."""
    if context_tokens <= spec.max_context_tokens:
        return None
    return (
        f"{spec.name} was made for {spec.max_context_tokens:,} tokens; with {context_tokens:,} "
        "the costs hold and its answers may not."
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "..."
