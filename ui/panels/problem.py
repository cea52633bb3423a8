"""One sentence about something that is wrong, as characters: it may repeat what a stranger's link said."""

from __future__ import annotations

import streamlit as st

# Containers whose key begins so are drawn in the colour of a problem; ui/main.py has the rule.
KEY = "problem_"


def say(name: str, sentence: str | None) -> None:
    """The sentence at a field called ``name``; nothing where there is none."""
    if sentence:
        with st.container(key=f"{KEY}{name}"):
            st.text(sentence)
