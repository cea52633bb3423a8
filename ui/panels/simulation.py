"""The simulator's fields: what runs on what, on how many tokens, and what stands beside it.

Numbers are text fields on purpose: a number field would cut "1.5" to 1 and forget "0" without a word. Names may also be
typed, as freely as on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

import server
from sim.catalog_file import OwnCatalog
from sim.formats import FORMATS, KV_BYTES_PER_ELEMENT
from sim.hardware import all_hardware
from sim.models import all_models
from ui import own, simulator
from ui.fields import RECORDING, Resolved, resolve
from ui.panels import prediction, problem

NOTHING = ""


def draw() -> Resolved:
    """Draws the fields, the button and the verdict, and gives the scenario that they mean."""
    mine = own.catalog()
    found = resolve(simulator.values(), mine)
    if found.scenario is not None:
        simulator.spell_out(found.scenario)
    first = st.columns([2, 2, 1, 1])
    _names("model", "Model", [*(m.name for m in mine.models), *(m.name for m in all_models())], first[0], found)
    _names("device", "Device", _devices(mine), first[1], found)
    _names("weights", "Weights", list(FORMATS), first[2], found)
    _names("kv", "KV cache", list(KV_BYTES_PER_ELEMENT), first[3], found)
    second = st.columns([1, 1, 1, 1, 2])
    _number("prompt", "Prompt tokens", second[0], found)
    _number("new", "New tokens", second[1], found)
    _number("batch", "Batch", second[2], found)
    _number("gpus", "Devices", second[3], found)
    _beside(mine, second[4], found)
    third = st.columns([1, 6], vertical_alignment="center")
    with third[0]:
        fits = found.scenario is not None and found.scenario.predict().memory.fits is not False
        st.button("Play", type="primary", width="stretch", disabled=not fits, on_click=simulator.play, key="sim_play")
    with third[1]:
        if found.scenario is not None:
            prediction.say_verdict(found.scenario)
    problem.say("refusal", simulator.refusal())
    return found


def _names(
    name: str, label: str, options: list[str], place: st.delta_generator.DeltaGenerator, found: Resolved
) -> None:
    with place:
        _keep(name)
        st.selectbox(label, options, key=simulator.key(name), accept_new_options=True, persist_state="session")
        problem.say(name, found.problems.get(name))


def _number(name: str, label: str, place: st.delta_generator.DeltaGenerator, found: Resolved) -> None:
    with place:
        _keep(name)
        st.text_input(label, key=simulator.key(name), max_chars=20, persist_state="session")
        problem.say(name, found.problems.get(name))


def _beside(mine: OwnCatalog, place: st.delta_generator.DeltaGenerator, found: Resolved) -> None:
    recorded = _recordings()
    with place:
        _keep("against")
        st.selectbox(
            "Beside it",
            [NOTHING, *recorded, *_devices(mine)],
            format_func=lambda option: recorded.get(option, option) or "nothing",
            key=simulator.key("against"),
            accept_new_options=True,
            persist_state="session",
        )
        problem.say("against", found.problems.get("against"))


def _keep(name: str) -> None:
    """The field's value before the widget is there: a widget without one would begin at its first option."""
    st.session_state[simulator.key(name)] = simulator.values()[name]


def _devices(mine: OwnCatalog) -> list[str]:
    return [*(device.name for device in mine.devices), *(device.name for device in all_hardware())]


def _recordings() -> Mapping[str, str]:
    """Measured runs that a simulation can stand beside, by what the field holds."""
    known = server.current().recordings()
    return {f"{RECORDING}{one.id}": f"recorded: {one.title}" for one in known if one.source != "simulated"}
