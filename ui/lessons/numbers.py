"""Figures in words that ``sim.words`` has none for; rounding for the lesson is done here and nowhere else."""

from __future__ import annotations

UNKNOWN = "\u2013"


def brief(seconds: float) -> str:
    """Milliseconds below a second, two figures, as the stage's headline says them."""
    value, unit = (seconds * 1e3, "ms") if seconds < 0.9995 else (seconds, "s")
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"


def times(ratio: float) -> str:
    """A ratio: whole from ten on, two figures below."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def three(value: float) -> str:
    """Three figures, thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """A share of a whole; small ones keep a figure, an unknown one is a dash."""
    if share is None:
        return UNKNOWN
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.2g} %"


def price(amount: float) -> str:
    """An amount in whatever currency the learner thinks in."""
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.2g}"
