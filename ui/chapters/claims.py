"""The claims ledger: what the story says, what we compute, when it holds, and a button that plays the conditions.

Every figure of ours was computed a moment ago by ``sim.claims``; this page types none.
"""

from __future__ import annotations

from typing import Literal

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from sim.claims import ledger
from sim.ledger.claim import Claim, Verdict
from ui import simulator

Colour = Literal["green", "orange", "red"]
# Icon and colour of a verdict's badge.
BADGES: dict[Verdict, tuple[str, Colour]] = {
    "holds": (":material/check_circle:", "green"),
    "holds when": (":material/rule:", "orange"),
    "does not": (":material/cancel:", "red"),
}


def page(simulate: StreamlitPage) -> None:
    """Draws one row a claim; playing one leads to ``simulate``."""
    verdicts = [claim.verdict for claim in ledger()]
    st.text(" · ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in BADGES))
    for claim in ledger():
        if _row_is_played(claim):
            st.switch_page(simulate)


def _row_is_played(claim: Claim) -> bool:
    with st.container(border=True, key=f"claim_{claim.id.replace('+', '_')}"):
        said, found = st.columns([2, 3])
        with said:
            icon, colour = BADGES[claim.verdict]
            st.badge(claim.verdict, icon=icon, color=colour)
            st.markdown(f"**{claim.id}. {claim.says}**")
            st.text(f"The story's figure: {claim.figure}")
        with found:
            st.text(claim.ours)
            st.text(condition(claim))
            if claim.basis:
                st.caption(f"Rests on: {claim.basis}.")
            return st.button(
                setting_words(claim),
                icon=":material/play_arrow:",
                key=f"play_{claim.id}",
                on_click=_set_and_play,
                args=(claim,),
            )


def condition(claim: Claim) -> str:
    """When it holds, or why it does not, as a sentence."""
    lead = {"holds": "Holds", "holds when": "Holds when", "does not": "Does not hold"}[claim.verdict]
    return f"{lead}{' ' if claim.verdict == 'holds when' else ': '}{claim.condition}"


def setting_words(claim: Claim) -> str:
    """What the button sets the simulator to, and plays."""
    s = claim.setting
    batch = f", batch {s.batch:,}" if s.batch > 1 else ""
    return f"Play {s.model} in {s.weights} on {s.hardware}{batch}"


def _set_and_play(claim: Claim) -> None:
    simulator.set_to_claim(claim.setting)
    simulator.play()
