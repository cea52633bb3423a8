"""The learner's guess before the answer: which question a chapter asks, and whether it was answered or passed by.

The guess itself is asked and kept by the browser (``ui.panels.guess``). A session remembers it too, so that coming back
to a chapter does not begin with the question.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ui.lessons.text import phrase, phrases
from ui.panels.guess import guess


@dataclass(frozen=True, slots=True)
class Guess:
    """``choices``: names of phrases in the section ``name``."""

    name: str
    choices: tuple[str, ...]

    def is_open(self) -> bool:
        """Whether the answer has to wait: nothing was guessed yet, and the question was not passed by."""
        component = st.session_state.get(f"guess_{self.name}")
        if component is not None:
            st.session_state[self._made] = component.get("choice")
        return st.session_state.get(self._made) not in self._texts() and not self.is_passed()

    def is_passed(self) -> bool:
        """Whether the learner asked for the answer without a guess."""
        return bool(st.session_state.get(self._passed))

    def draw(self, question: str) -> None:
        """The question; once it is answered, the guess and the way to guess again."""
        guess(self.name, question, self._texts(), phrases()["guess"])

    def draw_way_past(self) -> None:
        """The button for those who do not want to guess."""
        st.button(phrase("panel.no_guess"), key=f"pass_{self.name}", type="tertiary", on_click=self._pass)

    @property
    def _made(self) -> str:
        return f"guessed_{self.name}"

    @property
    def _passed(self) -> str:
        return f"passed_{self.name}"

    def _texts(self) -> list[str]:
        return [phrase(f"{self.name}.{choice}") for choice in self.choices]

    def _pass(self) -> None:
        st.session_state[self._passed] = True
