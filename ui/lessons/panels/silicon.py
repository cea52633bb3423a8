"""The silicon reality: bytes for a token times tokens a second, against what memory buses carry and hold."""

from __future__ import annotations

import streamlit as st

import server
from sim.bounds import Bound, bound
from sim.claims import claim
from sim.memory import GIB, memory_needed
from sim.scenario import find_scenario
from sim.words import gb
from ui import selection
from ui.lessons import drawn, onstage
from ui.lessons.drawn import Level
from ui.lessons.ground import Ground
from ui.lessons.numbers import three, times
from ui.lessons.text import phrase

MODEL, CARD, LARGE_CARD, SPEED = "Meta-Llama-3-70B", "RTX 4090", "H100 SXM5 80GB", 30
MODELS = ("SmolLM2-135M", "Meta-Llama-3-8B", "Qwen2.5-32B", MODEL)
FORMATS = ("bf16", "int8", "Q4_K_M", "2.5bpw")
DEVICES = (
    *("Core i9-13900K DDR5-6400", "Apple M4 Max (40-core GPU)", CARD, "RTX 5090", "A100 SXM4 80GB", LARGE_CARD),
    *("H200 SXM", "B200 SXM"),
)
CONTEXT, NEW_TOKENS = 512, 64


def figures(ground: Ground) -> dict[str, str]:
    """The story's own example, and its verdict on the card."""
    eight = bound(MODEL, LARGE_CARD, "int8")
    each = eight.read_bytes(CONTEXT)
    found = claim("C11")
    return {
        "model": MODEL,
        "card": CARD,
        "large_card": LARGE_CARD,
        "speed": f"{SPEED}",
        "bytes_each": gb(each),
        "river": gb(each * SPEED),
        "large_bandwidth": gb(eight.bytes_per_s),
        "card_bandwidth": gb(bound(MODEL, CARD, "int8").bytes_per_s),
        "card_answer": found.ours,
        "card_condition": found.condition,
        "share": times(each * SPEED / eight.bytes_per_s * 100),
    }


def panel(ground: Ground) -> None:
    """Three sliders, the river against the devices, and one run to play."""
    first = st.columns([2, 2, 2])
    model = first[0].selectbox(phrase("silicon.model"), MODELS, MODELS.index(MODEL), key="silicon_model")
    weights = first[1].select_slider(phrase("silicon.bits"), FORMATS, "int8", key="silicon_bits")
    speed = first[2].slider(phrase("silicon.speed"), 1, 100, SPEED, key="silicon_speed")
    each = bound(model, LARGE_CARD, weights).read_bytes(CONTEXT)
    river = each * speed
    st.markdown(f"**{phrase('silicon.river', each=gb(each), speed=f'{speed}', river=gb(river))}**")
    bounds = [bound(model, device, weights) for device in DEVICES]
    most = max(river, *(b.bytes_per_s for b in bounds))
    rows = [_row(b, river, each, most) for b in bounds]
    st.html(drawn.again(0, drawn.levels(rows, river / most, phrase("silicon.needed"))))
    _play(model, weights)


def _play(model: str, weights: str) -> None:
    """A recorded run of the model where there is one, whatever machine it ran on; else a simulated one."""
    size = model.rpartition("-")[2].lower()
    for one in server.current().recordings():
        if one.source == "live" and not one.live and size in one.model.lower():
            if st.button(
                phrase("silicon.play_recorded", model=model), icon=":material/play_arrow:", key="silicon_record"
            ):
                selection.show(one.id)
                st.rerun()
            return
    scenario = find_scenario(model, LARGE_CARD, weights, CONTEXT, NEW_TOKENS)
    onstage.button(phrase("silicon.play", model=model, device=LARGE_CARD), scenario, "silicon_play")


def _row(b: Bound, river: float, each: float, most: float) -> Level:
    """A device: its bandwidth, what it can do in words, and in colour whether it can do what is asked."""
    need = memory_needed(b.spec, b.form, 2, CONTEXT, 1, b.hardware)
    at_most = three(b.bytes_per_s / each)
    if need.fits is False:
        said = phrase("silicon.no_room", missing=three(need.missing_bytes / GIB))
    else:
        said = phrase("silicon.enough" if b.bytes_per_s >= river else "silicon.slow", rate=at_most)
    able = need.fits is not False and b.bytes_per_s >= river
    name = f"{b.hardware.name.partition(' (')[0]}, {gb(b.bytes_per_s)}/s"
    return Level(b.bytes_per_s / most, name, said, "write" if able else "weights")
