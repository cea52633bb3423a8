"""The what-if panel's figures in Plotly: roofline, decode speed across devices, bytes by batch, memory.

Functions of computed values; each figure keeps its axes' ranges apart from its values where a jump would mislead. Hues
stand for what they stand for on the stage: blue reads, orange writes, magenta is the KV cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from sim.memory import GIB, MemoryNeed
from sim.words import rate
from ui.whatif import DeviceSpeed, Roof, Traffic

READING, WRITING, KV, WEIGHTS, ACTIVATIONS, MUTED = "#3b82f6", "#ea7317", "#c026d3", "#64748b", "#0d9488", "#94a3b8"
HEIGHT_PX = 340
TICKS_PX = 14
LONGEST_LABEL = 22  # characters, so that a phone has room for bars


def roofline(roof: Roof) -> go.Figure:
    """Both axes logarithmic; the roof, its ridge, the reading point and the writing points by batch."""
    low, high = min(roof.writing[0].intensity, 1.0) / 2, max(roof.ridge, roof.reading.intensity) * 4
    asked, reading = roof.asked, roof.reading
    figure = go.Figure(layout=_layout("Intensity, FLOP/byte", "FLOP/s"))
    xs = [low, roof.ridge, high]
    ys = [min(roof.flops_per_s, x * roof.bytes_per_s) for x in xs]
    figure.add_scatter(x=xs, y=ys, mode="lines", line={"color": MUTED, "width": 4}, name="the roof", hoverinfo="skip")
    figure.add_scatter(
        x=[p.intensity for p in roof.writing],
        y=[p.flops_per_s for p in roof.writing],
        text=[p.label for p in roof.writing],
        mode="lines+markers",
        marker={"color": WRITING, "size": 7},
        line={"color": WRITING, "dash": "dot"},
        name="writing, any batch",
    )
    for point, colour, symbol in ((asked, WRITING, "circle"), (reading, READING, "diamond")):
        marker = {"color": colour, "size": 18, "symbol": symbol}
        figure.add_scatter(x=[point.intensity], y=[point.flops_per_s], mode="markers", marker=marker, name=point.label)
    figure.add_annotation(
        x=math.log10(roof.ridge),
        y=math.log10(roof.flops_per_s),
        text=f"ridge {roof.ridge:,.0f}",
        yshift=14,
        showarrow=False,
    )
    figure.update_xaxes(type="log", range=[math.log10(low), math.log10(high)], dtick=1)
    _decades(figure, min(ys[0], roof.writing[0].flops_per_s), roof.flops_per_s, "")
    return figure


def speed_bars(speeds: Sequence[DeviceSpeed], chosen: str) -> go.Figure:
    """One bar a device with its range; what does not fit says by how much in place of a bar."""
    shown = sorted(speeds, key=lambda s: (s.tok_s is not None, s.tok_s or -s.missing_bytes))
    figure = go.Figure(layout=_layout("tokens a second, all sequences together", ""))
    figure.add_bar(
        x=[s.tok_s for s in shown],
        y=[s.name for s in shown],
        orientation="h",
        marker={"color": [WRITING if s.name == chosen else MUTED for s in shown]},
        error_x={
            "type": "data",
            "array": [(s.high or 0) - (s.tok_s or 0) for s in shown],
            "arrayminus": [(s.tok_s or 0) - (s.low or 0) for s in shown],
            "thickness": 1.5,
        },
    )
    for s in shown:
        text = f"does not fit by {s.missing_bytes / GIB:.1f} GiB" if s.tok_s is None else rate(s.tok_s)
        figure.add_annotation(x=s.high or 0, y=s.name, text=text, showarrow=False, xanchor="left", xshift=6)
    most = max((s.high or 0.0 for s in shown), default=0.0) or 1.0
    figure.update_xaxes(range=[0, most * 1.4])  # room for the last figure
    figure.update_yaxes(tickvals=[s.name for s in shown], ticktext=[_short(s.name) for s in shown])
    figure.update_layout(showlegend=False, height=80 + 26 * len(shown), margin={"t": 10})
    return figure


def traffic_lines(traffic: Traffic, batch: int) -> go.Figure:
    """Bytes of a decode pass by batch: where the KV cache takes over from the weights, and where memory is full."""
    figure = go.Figure(layout=_layout("Batch", "Bytes a pass reads"))
    for name, values, colour in (("weights", traffic.weights_bytes, WEIGHTS), ("KV cache", traffic.kv_bytes, KV)):
        figure.add_scatter(x=traffic.batches, y=values, mode="lines", line={"color": colour, "width": 4}, name=name)
    figure.add_vline(x=batch, line={"color": WRITING, "width": 2, "dash": "dot"})
    if traffic.batches[0] <= traffic.takeover <= traffic.batches[-1]:
        figure.add_vline(x=traffic.takeover, line={"color": KV, "width": 2, "dash": "dash"})
        place = {"x": math.log10(traffic.takeover), "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
        figure.add_annotation(text="the KV cache takes over", font={"color": KV, "size": TICKS_PX}, **place)
    ticks = list(traffic.batches)
    edges = [math.log10(ticks[0]) - 0.05, math.log10(ticks[-1]) + 0.05]
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{t:,}" for t in ticks], range=edges)
    _decades(figure, min(traffic.kv_bytes[0], traffic.weights_bytes[0]), traffic.kv_bytes[-1], "B")
    return figure


def memory_bar(need: MemoryNeed) -> go.Figure:
    """What the device must hold, part by part, against what it has."""
    figure = go.Figure(layout=_layout("GiB on each device", ""))
    parts = (
        ("weights", need.weights_bytes, WEIGHTS),
        ("KV cache", need.kv_bytes, KV),
        ("activations", need.activation_bytes, ACTIVATIONS),
    )
    for name, size, colour in parts:
        figure.add_bar(x=[size / GIB], y=["needed"], orientation="h", name=name, marker={"color": colour})
    most = need.needed_bytes / GIB
    if need.available_bytes is not None:
        has = need.available_bytes / GIB
        most = max(most, has)
        line, text = {"color": MUTED, "width": 4}, f"the device has {has:,.0f} GiB"
        figure.add_vline(x=has, line=line)
        figure.add_annotation(x=has, y=1, yref="paper", yanchor="bottom", xanchor="right", text=text, showarrow=False)
    figure.update_xaxes(range=[0, most * 1.1])
    figure.update_layout(barmode="stack", height=200)
    return figure


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "\u2026"


def _decades(figure: go.Figure, low: float, high: float, unit: str) -> None:
    """A logarithmic y axis whose ticks are powers of ten in SI prefixes."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    texts = [f"{10 ** (power % 3)} {' kMGTPE'[power // 3]}{unit}" for power in powers]
    figure.update_yaxes(type="log", tickvals=[10.0**power for power in powers], ticktext=texts)


def _layout(x: str, y: str) -> go.Layout:
    axis = {"tickfont": {"size": TICKS_PX}, "title": {"font": {"size": TICKS_PX}}, "fixedrange": True}
    return go.Layout(
        height=HEIGHT_PX,
        margin={"l": 10, "r": 10, "t": 60, "b": 10},
        font={"size": TICKS_PX},
        xaxis={**axis, "title": {"text": x}},
        yaxis={**axis, "title": {"text": y}, "automargin": True},
        legend={"orientation": "h", "y": 1.1, "yanchor": "bottom", "x": 0, "font": {"size": TICKS_PX}},
        transition={"duration": 0},
    )
