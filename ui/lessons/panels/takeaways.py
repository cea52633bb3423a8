"""Three takeaways, each computed from the run at hand, and what a million tokens cost at the learner's own price."""

from __future__ import annotations

import streamlit as st

from sim.batching import batching_curve
from sim.hardware import find_hardware
from sim.ledger.serving import price_of_a_million_tokens
from sim.models import find_model
from sim.scenario import usual_setting
from ui.lessons import charts, drawn
from ui.lessons.ground import Ground
from ui.lessons.numbers import price, times
from ui.lessons.panels import decode, prefill
from ui.lessons.text import phrase

MODEL, DEVICES, WEIGHTS, CONTEXT = "Meta-Llama-3-8B", ("RTX 4090", "H100 SXM5 80GB", "H200 SXM"), "bf16", 1024
BATCHES = (1, 2, 4, 8, 16, 32, 64)
USERS = BATCHES[-1]


def figures(ground: Ground) -> dict[str, str]:
    """Reading and writing as chapters two and three say them, and what a batch saves."""
    read, written = prefill.figures(ground), decode.figures(ground)
    costs = _costs(DEVICES[1], 1.0)
    return {
        "read_limit": read["limit"],
        "read_share": read["compute_share"],
        "read_intensity": read["intensity"],
        "write_limit": written["limit"],
        "write_share": written["memory_share"],
        "write_intensity": written["intensity"],
        "weights_share": written["weights_share"],
        "model": MODEL,
        "device": DEVICES[1],
        "users": f"{USERS}",
        "cheaper": times(costs[0] / costs[-1]),
    }


def panel(ground: Ground) -> None:
    """Three cards, then the price."""
    found = figures(ground)
    cards = "".join(
        drawn.card(hue, phrase(f"takeaways.{name}"), figure, phrase(f"takeaways.{name}_unit"), "", said)
        for name, hue, figure, said in (
            ("reading", "read", found["read_share"], phrase("takeaways.reading_says", **_held(found, "read"))),
            ("writing", "write", found["write_share"], phrase("takeaways.writing_says", **_held(found, "write"))),
            ("together", "weights", found["cheaper"], phrase("takeaways.together_says", users=found["users"])),
        )
    )
    st.html(drawn.again(0, f'<div class="cards">{cards}</div>'))
    left, right = st.columns(2)
    device = left.selectbox(phrase("takeaways.device"), DEVICES, 1, key="takeaways_device")
    hour = right.number_input(phrase("takeaways.price"), 0.01, 1000.0, 2.0, 0.1, key="takeaways_price")
    costs = _costs(device, hour)
    st.text(phrase("takeaways.cost", alone=price(costs[0]), together=price(costs[-1]), users=f"{USERS}"))
    named = [(phrase("takeaways.million"), costs, charts.WRITING)]
    charts.show(charts.lines(BATCHES, named, phrase("servers.users"), phrase("takeaways.million")), "takeaways_costs")


def _held(found: dict[str, str], phase: str) -> dict[str, str]:
    return {"limit": found[f"{phase}_limit"], "intensity": found[f"{phase}_intensity"]}


def _costs(device: str, price_per_hour: float) -> list[float]:
    curve = batching_curve(find_model(MODEL), usual_setting(find_hardware(device), WEIGHTS), BATCHES, CONTEXT)
    return [price_of_a_million_tokens(price_per_hour, float(rate)) for rate in curve.total_tok_s]
