"""The learner's guess before the answer: named choices, one press, and then the run speaks."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ui.lessons.text import phrase


@dataclass(frozen=True, slots=True)
class Guess:
    """``choices``: names of phrases in the section ``name``, which also keeps the answer."""

    name: str
    choices: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"guess_{self.name}"

    def made(self) -> str | None:
        """What was chosen in this session."""
        chosen: str | None = st.session_state.get(self.key)
        return chosen

    def ask(self) -> None:
        """Draws the choices; pressing one is the guess."""
        for choice, place in zip(self.choices, st.columns(len(self.choices)), strict=True):
            place.button(
                phrase(f"{self.name}.{choice}"),
                key=f"{self.key}_{choice}",
                on_click=self._keep,
                args=(choice,),
                width="stretch",
            )
        st.button(phrase("panel.no_guess"), key=f"{self.key}_none", type="tertiary", on_click=self._keep, args=("",))

    def _keep(self, choice: str) -> None:
        st.session_state[self.key] = choice
