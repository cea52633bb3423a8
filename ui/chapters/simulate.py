"""Any model on any device, computed: the fields above the stage, what they predict below it."""

from __future__ import annotations

import streamlit as st

from ui import own, simulator
from ui.fields import RECORDING, against
from ui.panels import own as own_forms
from ui.panels import prediction, simulation

# Drawn after the stage, which stands below a page's own content; ui/main.py has the rule.
BELOW_STAGE = "below_stage"


def page() -> None:
    """Draws the fields; the figures and the forms stand below the stage."""
    own.mount()
    found = simulation.draw()
    simulator.write_address()
    with st.container(key=BELOW_STAGE):
        if found.scenario is not None:
            prediction.draw(found.scenario)
            other = simulator.values()["against"]
            if other and not other.startswith(RECORDING):
                prediction.draw(against(found.scenario, other, own.catalog()))
        own_forms.draw()
