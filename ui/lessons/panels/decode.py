"""Decode: one token's pass, its feedback, its time to scale, and the ledger of its bytes."""

from __future__ import annotations

import streamlit as st

from sim.roofline import regime
from sim.words import gb
from ui.lessons import drawn
from ui.lessons.drawn import Part
from ui.lessons.ground import Ground, GroundStep
from ui.lessons.numbers import brief, percent, three
from ui.lessons.text import phrase


def figures(ground: Ground) -> dict[str, str]:
    """A mean pass of this run."""
    steps = ground.writing
    flops = sum(s.cost.flops for s in steps)
    moved = sum(s.cost.total_bytes for s in steps)
    weights = sum(s.cost.weights_bytes for s in steps)
    compute = _of(flops / _seconds(steps), ground.write_flops_per_s)
    memory = _of(moved / _seconds(steps), ground.bytes_per_s)
    held_by = regime(compute, memory).name or "unknown"
    return {
        "hidden": f"{ground.spec.hidden:,}",
        "inner": f"{ground.spec.intermediate:,}",
        "write_each": brief(ground.tpot_s),
        "arithmetic": brief(flops / len(steps) / ground.write_flops_per_s) if ground.write_flops_per_s else "\u2013",
        "idle": percent(1 - compute if compute is not None else None),
        "bytes_each": gb(moved / len(steps)),
        "weights_share": percent(weights / moved),
        "intensity": three(flops / moved),
        "memory_share": percent(memory),
        "held_by": phrase(f"regime.{held_by}"),
        "limit": phrase(f"limit.{held_by}"),
    }


def panel(ground: Ground) -> None:
    """The learner picks a token; its step is drawn."""
    last = len(ground.writing)
    n = st.slider(phrase("decode.which"), 1, last, 1, key="decode_token") if last > 1 else 1
    step = ground.writing[n - 1]
    st.html(drawn.again(0, _loop(ground, n) + _time(ground, step) + _ledger(step)))


def _loop(ground: Ground, n: int) -> str:
    """The token that goes in, through the model, and the one that comes out and goes in next."""
    tokens = [token.text for token in ground.tokens]
    fed, given = (tokens[i] if i < len(tokens) else None for i in (n - 1, n))
    spec = ground.spec
    return (
        f'<div class="loop write"><b>{drawn.text(fed)}</b>\u2192<span class="matrix write">[1, {spec.hidden:,}]</span>'
        f'\u00d7<span class="matrix tall weights">[{spec.hidden:,}, {spec.intermediate:,}]</span>\u2192'
        f"<b>{drawn.text(given)}</b><span>\u21ba {drawn.text(phrase('decode.back'))}</span></div>"
    )


def _time(ground: Ground, step: GroundStep) -> str:
    total = step.duration_s
    head = f"<p><strong>{drawn.text(phrase('decode.step', time=brief(total)))}</strong></p>"
    if not ground.write_flops_per_s:
        return head + f"<p>{drawn.text(phrase('decode.no_ceiling'))}</p>"
    useful = min(total, step.cost.flops / ground.write_flops_per_s)
    memory = _of(step.cost.total_bytes / total, ground.bytes_per_s)
    rest = "waiting" if regime(0.0, memory).name == "memory" else "rest"
    parts = (
        Part(useful / total, phrase("decode.useful"), brief(useful), "write"),
        Part(1 - useful / total, phrase(f"decode.{rest}"), brief(total - useful), "rest"),
    )
    return head + drawn.bar(parts, phrase("decode.step", time=brief(total)))


def _ledger(step: GroundStep) -> str:
    cost = step.cost
    named = (
        ("weights", cost.weights_bytes, "weights"),
        ("kv_read", cost.kv_read_bytes, "kv"),
        ("kv_write", cost.kv_write_bytes, "kv"),
        ("activations", cost.activation_bytes, "activations"),
    )
    total = cost.total_bytes
    label = phrase("decode.ledger", total=gb(total))
    parts = [Part(size / total, phrase(f"decode.{name}"), gb(size), hue) for name, size, hue in named]
    return f"<p><strong>{drawn.text(label)}</strong></p>" + drawn.bar(parts, label)


def _seconds(steps: tuple[GroundStep, ...]) -> float:
    return sum(step.duration_s for step in steps)


def _of(rate: float, limit: float | None) -> float | None:
    return rate / limit if limit else None
