"""What the simulator is set to, in the session and in the address, and the run that comes of it.

The address (``/simulate?model=…&device=…``) makes the same simulation again, so a link needs no file of ours.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

import server
from sim.catalog_file import OwnCatalog
from sim.ledger.claim import StageSetting
from sim.scenario import Scenario
from ui import own, selection
from ui.fields import DEFAULTS, RECORDING, against, resolve

OWN = "own"


def key(name: str) -> str:
    """Where a field's value is kept in the session, which is also its widget's key."""
    return f"sim_{name}"


def values() -> dict[str, str]:
    """All fields as text; what was never drawn has its default."""
    kept = {name: st.session_state.get(key(name)) for name in DEFAULTS}
    return {name: default if kept[name] is None else str(kept[name]) for name, default in DEFAULTS.items()}


def set_to(asked: Mapping[str, str]) -> None:
    """Set fields; those not named get their defaults. Before the widgets are drawn, as in a callback."""
    for name, default in DEFAULTS.items():
        st.session_state[key(name)] = asked.get(name, default)


def spell_out(scenario: Scenario) -> None:
    """Put the catalogs' own names in place of what was typed ("4090")."""
    setting = scenario.setting
    names = {"model": scenario.spec.name, "device": setting.hardware.name, "weights": setting.weights.name}
    other = values()["against"]
    if other and not other.startswith(RECORDING):
        names["against"] = against(scenario, other, own.catalog()).setting.hardware.name
    for name, spelled in names.items():
        st.session_state[key(name)] = spelled


def set_to_claim(setting: StageSetting) -> None:
    """The conditions of a claim."""
    set_to(
        {
            "model": setting.model,
            "device": setting.hardware,
            "weights": setting.weights,
            "prompt": str(setting.prompt_tokens),
            "new": str(setting.new_tokens),
            "batch": str(setting.batch),
        }
    )


def enter() -> None:
    """Once a session, before the stage is mounted: take over what the address asks for, and play it."""
    if st.session_state.get("sim_entered"):
        return
    st.session_state["sim_entered"] = True
    asked = {name: st.query_params[name] for name in DEFAULTS if name in st.query_params}
    st.session_state[own.KEY] = st.query_params.get(OWN, own.text())
    if not asked:
        return
    set_to(asked)
    t = selection.seconds(st.query_params.get("t"))
    play()
    st.session_state["t"] = t


def write_address() -> None:
    """Streamlit drops the parameters when the page is switched, so they are written at each run of the script."""
    for name, value in (*values().items(), (OWN, own.text())):
        if st.query_params.get(name, "") != value:
            st.query_params[name] = value
        if not value and name in st.query_params:
            del st.query_params[name]


def refusal() -> str | None:
    """Why these very fields could not be played."""
    asked, said = st.session_state.get("sim_refusal", (None, None))
    return said if asked == values() else None


def play() -> None:
    """Put the simulation on the stage, and beside it what was chosen."""
    mine = own.catalog()
    found = resolve(values(), mine)
    if found.scenario is None or found.scenario.predict().memory.fits is False:
        return  # the fields and the verdict say why
    spell_out(found.scenario)
    asked = values()
    try:
        selection.show(run_of(found.scenario))
        if asked["against"]:
            selection.put_beside(_other_run(found.scenario, asked["against"], mine))
    except (ValueError, LookupError) as error:
        st.session_state["sim_refusal"] = (asked, str(error.args[0]))


def _other_run(scenario: Scenario, asked: str, mine: OwnCatalog) -> str:
    return asked.removeprefix(RECORDING) if asked.startswith(RECORDING) else run_of(against(scenario, asked, mine))


def run_of(scenario: Scenario) -> str:
    """The run of a scenario, made unless this session has made it already and it is still there."""
    made: dict[Scenario, str] = st.session_state.setdefault("sim_made", {})
    known = made.get(scenario)
    if known is None or not any(recording.id == known for recording in server.current().recordings()):
        started = server.current().simulate(scenario)
        selection.remember_key(started.run_id, started.key)
        known = made[scenario] = started.run_id
    return known
