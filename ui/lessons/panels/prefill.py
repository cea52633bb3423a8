"""Prefill: the prompt as a grid that lights up by real passes, and what more tokens in a pass buy."""

from __future__ import annotations

import streamlit as st

from sim.roofline import regime
from sim.words import gb
from ui.lessons import charts, drawn
from ui.lessons.ground import Ground
from ui.lessons.numbers import brief, percent, three
from ui.lessons.text import phrase

LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
USUAL_LENGTH = 512


def figures(ground: Ground) -> dict[str, str]:
    """Shapes of this model, passes of this run."""
    return {
        "n_read": f"{ground.n_read:,}",
        "hidden": f"{ground.spec.hidden:,}",
        "inner": f"{ground.spec.intermediate:,}",
        "chunk": f"{ground.chunk:,}",
        "intensity": three(_of_steps(ground)),
        "kv_each": gb(ground.kv_bytes_per_token),
        "kv_total": gb(ground.kv_bytes_per_token * ground.n_read),
        "read_total": brief(ground.read_s),
        "held_by": phrase(f"regime.{_held_by(ground)}"),
        "limit": phrase(f"limit.{_held_by(ground)}"),
        "compute_share": percent(_compute_share(ground)),
    }


def panel(ground: Ground) -> None:
    """The grid above, the intensity under the learner's slider below."""
    turn: int = st.session_state.setdefault("prefill_turn", 0)
    place = st.container()
    slider, button = st.columns([4, 1], vertical_alignment="bottom")
    asked = slider.select_slider(
        phrase("prefill.length"), LENGTHS, USUAL_LENGTH, format_func=lambda n: f"{n:,}", key="prefill_length"
    )
    if button.button(phrase("panel.again"), icon=":material/replay:", key="prefill_again", width="stretch"):
        st.session_state["prefill_turn"] = turn = turn + 1
    with place:
        _passes(ground, turn)
    st.text(_answer(ground, asked))
    points = [(n, _intensity(ground, n)) for n in LENGTHS]
    ridge = ground.ridge_flops_per_byte
    charts.show(charts.intensity(points, asked, ridge, phrase("prefill.ridge")), "prefill_intensity")


def _passes(ground: Ground, turn: int) -> None:
    n, spec = f"{ground.n_read:,}", ground.spec
    first = ground.reading[0]
    shapes = (
        f'<div class="products"><span class="matrix tall read">[{first.n_tokens:,}, {spec.hidden:,}]</span>\u00d7'
        f'<span class="matrix weights">[{spec.hidden:,}, {spec.intermediate:,}]</span>'
        f"<span>{drawn.text(phrase('prefill.product', tokens=f'{first.n_tokens:,}'))}</span></div>"
    )
    lit = drawn.grid([(s.t1_s, s.n_tokens) for s in ground.reading], "read", phrase("paradox.grid", tokens=n))
    total = gb(ground.kv_bytes_per_token * ground.n_read)
    cache = drawn.filling(
        [(s.t1_s, s.n_tokens / ground.n_read) for s in ground.reading], "kv", phrase("prefill.cache", total=total)
    )
    st.html(drawn.again(turn, shapes + lit + cache))


def _answer(ground: Ground, asked: int) -> str:
    found, ridge = _intensity(ground, asked), ground.ridge_flops_per_byte
    cache = gb(asked * ground.kv_bytes_per_token)
    said = {"tokens": f"{asked:,}", "intensity": three(found), "cache": cache}
    if ridge is None:
        return phrase("prefill.no_ridge", **said)
    name = "prefill.right" if found >= ridge else "prefill.left"
    return phrase(name, ridge=three(ridge), chunk=f"{ground.chunk:,}", **said)


def _of_steps(ground: Ground) -> float:
    """As measured, or as the run says: the sum of its own passes."""
    return sum(s.cost.flops for s in ground.reading) / sum(s.cost.total_bytes for s in ground.reading)


def _intensity(ground: Ground, n_tokens: int) -> float:
    costs = ground.prompt_cost(n_tokens)
    return sum(cost.flops for cost in costs) / sum(cost.total_bytes for cost in costs)


def _compute_share(ground: Ground) -> float | None:
    limit = ground.read_flops_per_s
    return sum(s.cost.flops for s in ground.reading) / ground.read_s / limit if limit else None


def _held_by(ground: Ground) -> str:
    limit = ground.bytes_per_s
    memory = sum(s.cost.total_bytes for s in ground.reading) / ground.read_s / limit if limit else None
    return regime(_compute_share(ground), memory).name or "unknown"
