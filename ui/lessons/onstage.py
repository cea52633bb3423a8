"""Puts a simulation on the stage from a chapter."""

from __future__ import annotations

import streamlit as st

from sim.scenario import Scenario
from ui import selection, simulator


def button(label: str, scenario: Scenario, key: str) -> None:
    """A button that plays a scenario on the stage below; what does not fit says so in its place."""
    need = scenario.predict().memory
    if need.fits is False:
        st.text(need.sentence())
        return
    if st.button(label, icon=":material/play_arrow:", key=key, type="primary"):
        try:
            selection.show(simulator.run_of(scenario))
        except ValueError as refusal:
            selection.say(str(refusal))
        st.rerun()
