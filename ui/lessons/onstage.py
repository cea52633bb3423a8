"""Puts a run on the stage from a chapter: a simulation, made once a session, or a recording."""

from __future__ import annotations

import streamlit as st

import server
from sim.scenario import Scenario
from ui import selection


def simulate(scenario: Scenario) -> None:
    """Play a scenario. Raises ValueError with one sentence for what cannot run."""
    made: dict[Scenario, str] = st.session_state.setdefault("lesson_made", {})
    known = {recording.id for recording in server.current().recordings()}
    run_id = made.get(scenario)
    if run_id is None or run_id not in known:
        started = server.current().simulate(scenario)
        selection.remember_key(started.run_id, started.key)
        run_id = made[scenario] = started.run_id
    selection.show(run_id)


def button(label: str, scenario: Scenario, key: str) -> None:
    """A button that plays a scenario on the stage below; what does not fit says so in its place."""
    need = scenario.predict().memory
    if need.fits is False:
        st.text(need.sentence())
        return
    if st.button(label, icon=":material/play_arrow:", key=key):
        try:
            simulate(scenario)
        except ValueError as refusal:
            selection.say(str(refusal))
        st.rerun()
