"""Presenter mode: what it hides of the page, how it is entered and left, and the address that keeps it.

On the stage's page and in the chapter of the stage, the stage itself shows one idea a screen (assets/stage/present.js).
In any other chapter the chapter is the screen, in larger type, and the stage is hidden; its keys still turn the pages.
"""

from __future__ import annotations

from typing import Literal

import streamlit as st

from ui import selection

Presented = Literal["stage", "chapter"]

KEY = "presenting"
ADDRESS = "present"
ON = "1"
ALONE = """[data-testid=stHeader], .st-key-stage_choices {display: none}
.stMainBlockContainer {padding: 0.75rem clamp(0.75rem, 2vw, 2rem) 0.5rem}"""
HIDDEN = {
    "stage": """[data-testid=stVerticalBlock]:has(> [data-testid=stLayoutWrapper] > .st-key-stage_place)
        > :not(:has(> .st-key-stage_place)) {display: none}""",
    # The words of a chapter are the teacher's to say.
    "chapter": """.st-key-stage_place, .st-key-below_stage, [data-testid=stColumn]:has(.st-key-lesson_words)
        {display: none}
        html {font-size: 118%} .st-key-lesson_verdict [data-testid=stHeading] h2 {font-size: 2rem}""",
}


def presenting() -> bool:
    """Whether presenter mode is on: by the address in a new session, then by the button and the Escape key."""
    if KEY not in st.session_state:
        st.session_state[KEY] = selection.asked(ADDRESS, (ON,)) == ON
    if st.session_state[KEY]:
        st.query_params[ADDRESS] = ON
    else:
        st.query_params.pop(ADDRESS, None)
    return bool(st.session_state[KEY])


def styles(presented: Presented) -> str:
    """The rules that leave one idea on the screen."""
    return f"{ALONE} {HIDDEN[presented]}"


def button(key: str) -> None:
    """Enters presenter mode, or leaves it."""
    on = st.session_state.get(KEY, False)
    st.button(
        "Leave" if on else "Present",
        key=key,
        icon=":material/close:" if on else ":material/co_present:",
        on_click=leave if on else enter,
        help=None if on else "Large type, one idea a screen. Space and the arrow keys step, Escape leaves.",
    )


def enter() -> None:
    """As in a callback."""
    st.session_state[KEY] = True


def leave() -> None:
    """As in a callback."""
    st.session_state[KEY] = False
