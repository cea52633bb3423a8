"""The switch between the three densities of the stage: what opens, what teaches, and everything."""

from __future__ import annotations

import streamlit as st

NAMES = {"hero": "Hero", "lesson": "Lesson", "lab": "Lab"}


def switch() -> str:
    """Draws the switch and gives the density that is chosen; the address keeps it."""
    chosen = st.segmented_control(
        "How much to show",
        list(NAMES),
        default="hero",
        required=True,
        format_func=NAMES.__getitem__,
        key="density",
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen or "hero"
