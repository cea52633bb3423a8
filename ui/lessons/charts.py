"""The lesson's Plotly figures: drawn when a slider moves, still otherwise.

Hues stand for what they stand for on the stage: blue reads, orange writes. Each line and bar is also named in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

READING, WRITING, KV, WEIGHTS, MUTED = "#3b82f6", "#ea7317", "#c026d3", "#64748b", "#94a3b8"
TICKS_PX = 14
STILL = {"displayModeBar": False}


@dataclass(frozen=True, slots=True)
class Roof:
    """A device on a roofline: peak, bandwidth, and the two points (FLOP/byte, FLOP/s) of a run."""

    name: str
    flops_per_s: float
    bytes_per_s: float
    reading: tuple[float, float]
    writing: tuple[float, float]


def show(figure: go.Figure, key: str) -> None:
    """The figure on the page, its words in the text's own ink: the theme's grey is too faint for a projector."""
    ink = "#f1f3f6" if st.context.theme.type == "dark" else "#31333f"
    figure.update_annotations(font={"color": ink, "size": TICKS_PX})
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(tickfont={"color": ink}, title={"font": {"color": ink}})
    st.plotly_chart(figure, key=key, config=STILL)


def intensity(points: Sequence[tuple[int, float]], asked: int, ridge: float | None, ridge_name: str) -> go.Figure:
    """FLOP/byte against prompt length; the ridge is a line, the asked length a point."""
    figure = go.Figure(layout=_layout("tokens in the prompt", "FLOP for each byte", 195))
    figure.add_scatter(
        x=[n for n, _ in points],
        y=[y for _, y in points],
        mode="lines",
        line={"color": READING, "width": 4},
        hovertemplate="%{x:,} tokens: %{y:.3g} FLOP/byte<extra></extra>",
    )
    here = dict(points)[asked]
    figure.add_scatter(x=[asked], y=[here], mode="markers", marker={"color": READING, "size": 18}, hoverinfo="skip")
    if ridge is not None:
        figure.add_hline(y=ridge, line={"color": MUTED, "width": 3, "dash": "dash"})
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=math.log10(ridge), yshift=11, text=ridge_name, showarrow=False
        )
    _log(figure, "x", [n for n, _ in points])
    _log(figure, "y", [*(y for _, y in points), *([ridge] if ridge else [])])
    figure.update_layout(showlegend=False, margin={"t": 4})
    return figure


def lines(
    xs: Sequence[int], named: Sequence[tuple[str, Sequence[float], str]], x: str, y: str, mark: int | None = None
) -> go.Figure:
    """Lines over powers of two on logarithmic axes, each named at its end; ``mark``: where the learner stands."""
    figure = go.Figure(layout=_layout(x, y, 210))
    for name, values, colour in named:
        figure.add_scatter(x=list(xs), y=list(values), mode="lines", line={"color": colour, "width": 4}, name=name)
    if mark is not None:
        figure.add_vline(x=mark, line={"color": MUTED, "width": 2, "dash": "dot"})
    _log(figure, "x", xs)
    _log(figure, "y", [value for _, values, _ in named for value in values])
    return figure


def gains(
    xs: Sequence[float], named: Sequence[tuple[str, Sequence[float], str]], x: str, y: str, mark: float
) -> go.Figure:
    """Gains over doing without, on plain axes, with the line at 1 below which it loses."""
    figure = go.Figure(layout=_layout(x, y, 210))
    for name, values, colour in named:
        figure.add_scatter(x=list(xs), y=list(values), mode="lines", line={"color": colour, "width": 4}, name=name)
    figure.add_hline(y=1, line={"color": READING, "width": 2, "dash": "dash"})
    figure.add_vline(x=mark, line={"color": MUTED, "width": 2, "dash": "dot"})
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(tickformat=".0%")
    return figure


def roofline(r: Roof, xs: tuple[float, float], ys: tuple[float, float]) -> go.Figure:
    """One device's roof on axes that its neighbours share: reading a diamond, writing a circle."""
    figure = go.Figure(layout=_layout("FLOP for each byte", "", 190))
    ridge = r.flops_per_s / r.bytes_per_s
    line = [xs[0], ridge, xs[1]]
    roof = [min(r.flops_per_s, x * r.bytes_per_s) for x in line]
    figure.add_scatter(x=line, y=roof, mode="lines", line={"color": MUTED, "width": 4}, hoverinfo="skip")
    for point, colour, symbol in ((r.reading, READING, "diamond"), (r.writing, WRITING, "circle")):
        marker = {"color": colour, "size": 14, "symbol": symbol}
        figure.add_scatter(x=[point[0]], y=[point[1]], mode="markers", marker=marker, hoverinfo="skip")
    place = {"xref": "paper", "yref": "paper", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"}
    figure.add_annotation(text=f"<b>{r.name}</b>", showarrow=False, **place)
    figure.update_xaxes(type="log", range=[math.log10(x) for x in xs], dtick=2)
    figure.update_yaxes(type="log", range=[math.log10(y) for y in ys], dtick=2, showticklabels=False)
    figure.update_layout(showlegend=False)
    return figure


def _log(figure: go.Figure, axis: str, values: Sequence[float]) -> None:
    """A logarithmic axis over the values, ticks in full."""
    low, high = math.log10(min(values)), math.log10(max(values))
    room = 0.06 * (high - low) + 0.05
    update = figure.update_xaxes if axis == "x" else figure.update_yaxes
    update(type="log", range=[low - room, high + room], dtick="D1" if high - low < 1.2 else 1, exponentformat="SI")


def _layout(x: str, y: str, height_px: int) -> dict[str, Any]:
    axis = {"tickfont": {"size": TICKS_PX}, "title": {"font": {"size": TICKS_PX}}, "fixedrange": True}
    return {
        "height": height_px,
        "margin": {"l": 4, "r": 4, "t": 26, "b": 4},
        "font": {"size": TICKS_PX},
        "xaxis": {**axis, "title": {"text": x}},
        "yaxis": {**axis, "title": {"text": y}, "automargin": True},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": TICKS_PX}},
        "transition": {"duration": 0},
    }
