"""The switch between the three densities of the stage: what opens, what teaches, and everything.

Two runs side by side have one density of their own; then the way back to one run stands in the switch's place.
"""

from __future__ import annotations

import streamlit as st

from ui import selection

NAMES = {"hero": "Hero", "lesson": "Lesson", "lab": "Lab"}
USUAL = "hero"


def heed_address() -> None:
    """In a new session, before anything is drawn: a widget that persists does not look at the address itself."""
    if "density" not in st.session_state:
        st.session_state["density"] = selection.asked("density", NAMES) or USUAL


def switch() -> str:
    """Draws the switch and gives the density that is chosen; the address keeps it."""
    chosen = st.segmented_control(
        "How much to show",
        list(NAMES),
        required=True,
        format_func=NAMES.__getitem__,
        key="density",
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )
    return chosen or USUAL


def alone() -> str:
    """Draws the button that ends a comparison, and gives the density that a single run would have."""
    st.button("Show one run only", on_click=selection.put_beside, args=(None,), key="show_one_run")
    return str(st.session_state.get("density") or USUAL)
