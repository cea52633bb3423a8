"""The live simulator: which run comes to the stage below, this machine's, a recorded or a computed one."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

import server
from sim.scenario import find_scenario
from ui import actions, selection
from ui.lessons import onstage
from ui.lessons.ground import Ground
from ui.lessons.text import phrase
from ui.panels import settings


@dataclass(frozen=True, slots=True)
class Preset:
    """A simulated device with a model that people run on it."""

    model: str
    hardware: str
    weights: str


PRESETS = (
    Preset("Meta-Llama-3-8B", "RTX 4090", "bf16"),
    Preset("Meta-Llama-3-8B", "H100 SXM5 80GB", "bf16"),
    Preset("Meta-Llama-3-70B", "H200 SXM", "int8"),
    Preset("Meta-Llama-3-8B", "Apple M4 Max (40-core GPU)", "Q4_K_M"),
    Preset("Llama-3.2-1B", "Raspberry Pi 5 16GB", "Q4_K_M"),
)
SOURCES = ("recording", "device", "machine")
PROMPTS = (500, 2000)
NEW_TOKENS = (16, 64, 256)


def figures(ground: Ground) -> dict[str, str]:
    """None: the stage tells its own."""
    return {}


def panel(ground: Ground) -> None:
    """The source, and its choices in one row; the stage stands below."""
    which, choices = st.columns([1, 2], vertical_alignment="bottom")
    source = which.segmented_control(
        phrase("live.source"),
        SOURCES,
        default=SOURCES[0],
        required=True,
        format_func=lambda name: phrase(f"live.{name}"),
        key="live_source",
        label_visibility="collapsed",
    )
    with choices:
        {"machine": _machine, "device": _device}.get(str(source), _recording)()


def _recording() -> None:
    titles = {one.id: one.title for one in server.current().recordings()}
    if not titles:
        st.text(phrase("live.no_recording"))
        return
    shown = selection.shown().run_id
    chosen, play = st.columns([4, 1], vertical_alignment="bottom")
    run_id = chosen.selectbox(
        phrase("live.which_recording"),
        list(titles),
        list(titles).index(shown) if shown in titles else 0,
        format_func=lambda one: titles.get(one, one),
        key="live_recording",
    )
    if play.button(phrase("live.play"), type="primary", key="live_play_recording", width="stretch"):
        selection.show(run_id)
        st.rerun()


def _device() -> None:
    device, prompt, new, play = st.columns([4, 2, 2, 2], vertical_alignment="bottom")
    preset = device.selectbox(
        phrase("live.which_device"),
        PRESETS,
        format_func=lambda p: phrase("live.preset", model=p.model, weights=p.weights, device=p.hardware),
        key="live_device",
    )
    n_read = prompt.selectbox(phrase("live.prompt"), PROMPTS, format_func=lambda n: f"{n:,}", key="live_prompt")
    n_new = new.selectbox(phrase("live.new"), NEW_TOKENS, 1, format_func=lambda n: f"{n:,}", key="live_new")
    with play:
        scenario = find_scenario(preset.model, preset.hardware, preset.weights, n_read, n_new)
        onstage.button(phrase("live.play"), scenario, "live_play_device")


def _machine() -> None:
    worker = server.current().status().worker
    if worker.state not in ("ready", "running"):
        st.text(worker.message or phrase("live.not_ready"))
        return
    chosen, run = st.columns([4, 1], vertical_alignment="bottom")
    run.button(phrase("live.run"), type="primary", key="live_run", on_click=actions.start_run, width="stretch")
    with chosen.expander(phrase("live.settings"), icon=":material/tune:"):
        settings.draw(worker)
