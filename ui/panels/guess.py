"""Predict first: a question whose answer is shown only to those who have committed to a guess.

The guess is kept by the person's browser (assets/stage/guess.js), so it is there again after a refresh. The script gets
it to draw the answer beside it, and keeps it nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import streamlit as st

import server

WORDS: Mapping[str, str] = MappingProxyType(
    {"commit": "That is my guess", "made": "You guessed:", "again": "Guess again"}
)


def guess(name: str, question: str, choices: Sequence[str], words: Mapping[str, str] = WORDS) -> str | None:
    """Asks ``question`` and gives the choice that was committed to, None before that.

    ``name`` is what the browser keeps the guess under, one a question of the whole lesson. Choices are plain text.
    """
    loader = (
        f"const guess = await import(new URL('stage/{server.stage_digest()}/guess.js', document.baseURI));\n"
        "export default guess.default;\n"
    )
    component = st.components.v2.component("guess", html="<div class='mount'></div>", js=loader)
    result = component(
        key=f"guess_{name}",
        data={"name": name, "question": question, "choices": list(choices), "words": dict(words)},
        default={"choice": None},
        on_choice_change=_rerun,
    )
    choice = result.get("choice")
    return choice if choice in choices else None


def _rerun() -> None:
    """The run of the script that follows any change draws the answer."""
