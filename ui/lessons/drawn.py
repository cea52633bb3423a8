"""Figures of the lesson drawn as HTML from data; whatever moves takes the time that was measured or computed.

A thing that appears does so by a CSS animation whose delay is its time on the run's clock, so nothing moves that no
quantity moves, and a person who wants no motion sees the end at once (``assets/lessons/lesson.css``). Text that a model
wrote is escaped here, at the one place where it enters HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STYLES = Path(__file__).resolve().parents[2] / "assets" / "lessons" / "lesson.css"
MOST_CELLS = 600  # in a grid of tokens; a cell stands for several where there are more
BLOCK = "\u2588"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: its share of the whole, what it is, its figure, and the hue class it is drawn in."""

    share: float
    name: str
    figure: str
    hue: str


@dataclass(frozen=True, slots=True)
class Level:
    """A bar among others: its share of the longest, what it is, what that means in words, and its hue class."""

    share: float
    name: str
    said: str
    hue: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that appears at a moment: seconds, a class that says what it is, and where it stands on the line of
    time when several appear at once (by default at its moment)."""

    t_s: float
    hue: str
    place_s: float | None = None


@cache
def styles() -> str:
    """The lesson's style element."""
    return f"<style>{STYLES.read_text(encoding='utf-8')}</style>"


def text(characters: str | None) -> str:
    """A token's text as characters; a block where it is withheld or empty, a sign where it is a new line."""
    if not characters:
        return BLOCK
    return html.escape(re.sub(r"[\r\n]+", "\u21b5", characters))


def card(hue: str, name: str, figure: str, unit: str, body: str, foot: str) -> str:
    """A card with one large figure above what moves, and a line below it."""
    return (
        f'<section class="card {hue}"><h3>{html.escape(name)}</h3>'
        f'<p class="large">{html.escape(figure)} <small>{html.escape(unit)}</small></p>'
        f"{body}<p>{html.escape(foot)}</p></section>"
    )


def grid(chunks: Sequence[tuple[float, int]], hue: str, label: str) -> str:
    """Tokens as cells; each chunk's light up together when its pass is done. ``chunks``: seconds and tokens."""
    each = -(-sum(n for _, n in chunks) // MOST_CELLS)
    cells = "".join(f'<i class="{hue}" style="animation-delay:{t:.3f}s"></i>' * max(1, n // each) for t, n in chunks)
    return f'<div class="cells" role="img" aria-label="{html.escape(label, quote=True)}">{cells}</div>'


def typed(tokens: Sequence[tuple[float, str | None]]) -> str:
    """A text that appears token by token. ``tokens``: seconds and the model's characters."""
    spans = (f'<span style="animation-delay:{t:.3f}s">{text(characters)}</span>' for t, characters in tokens)
    return f'<div class="typed" tabindex="0">{"".join(spans)}</div>'


def bar(parts: Sequence[Part], label: str) -> str:
    """A bar to scale, its parts named below with their figures; the name carries what the colour says."""
    pieces = "".join(f'<i class="{p.hue}" style="width:{p.share * 100:.3f}%"></i>' for p in parts)
    names = "".join(
        f'<li><i class="{p.hue}"></i>{html.escape(p.name)} <b>{html.escape(p.figure)}</b></li>' for p in parts
    )
    said = html.escape(label, quote=True)
    return f'<div class="bar" role="img" aria-label="{said}">{pieces}</div><ul class="parts">{names}</ul>'


def levels(bars: Sequence[Level], line: float, label: str) -> str:
    """Bars below each other, and a line across all of them at ``line`` of their length, which ``label`` names."""
    across = f'<s style="left:{line * 100:.2f}%"></s>'
    rows = "".join(
        f"<li><span>{html.escape(b.name)}</span>"
        f'<div aria-hidden="true"><i class="{b.hue}" style="width:{b.share * 100:.2f}%"></i>{across}</div>'
        f"<b>{html.escape(b.said)}</b></li>"
        for b in bars
    )
    return f'<p class="line">{html.escape(label)}</p><ul class="levels">{rows}</ul>'


def filling(pieces: Sequence[tuple[float, float]], hue: str, label: str) -> str:
    """A bar that fills piece by piece. ``pieces``: seconds and the share of the whole."""
    drawn = "".join(
        f'<i class="{hue} late" style="width:{share * 100:.3f}%;animation-delay:{t:.3f}s"></i>' for t, share in pieces
    )
    return f'<p>{html.escape(label)}</p><div class="bar thin" aria-hidden="true">{drawn}</div>'


def track(name: str, marks: Sequence[Mark], length_s: float, slowed: float, count: str) -> str:
    """A line of time with a mark at each moment, shown ``slowed`` times slower, and how many there are in words."""
    dots = "".join(
        f'<i class="{m.hue}" style="left:{_place(m) / length_s * 100:.2f}%;animation-delay:{m.t_s * slowed:.3f}s"></i>'
        for m in marks
    )
    return f'<div class="track"><span>{html.escape(name)}</span><div>{dots}</div><b>{html.escape(count)}</b></div>'


def _place(mark: Mark) -> float:
    return mark.t_s if mark.place_s is None else mark.place_s


def again(turn: int, drawn: str) -> str:
    """The figure as a new thing each turn, so that its animations begin from the start."""
    return f'<div class="lesson-figure" data-turn="{turn}">{drawn}</div>'
