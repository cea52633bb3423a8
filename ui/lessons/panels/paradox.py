"""The paradox: a speed-reader and a typewriter, both at the pace of one run."""

from __future__ import annotations

import streamlit as st

from sim.ledger.claim import STORY_WORDS_READ, TOKENS_READ
from ui.lessons import drawn
from ui.lessons.ground import Ground
from ui.lessons.numbers import brief, times
from ui.lessons.text import phrase


def figures(ground: Ground) -> dict[str, str]:
    """Time per token first, totals second."""
    longer = "reading_longer" if ground.read_s > ground.written_s else "writing_longer"
    return {
        "read_each": brief(ground.read_each_s),
        "write_each": brief(ground.tpot_s),
        "ratio": times(ground.ratio),
        "n_read": f"{ground.n_read:,}",
        "n_written": f"{len(ground.tokens):,}",
        "read_total": brief(ground.read_s),
        "write_total": brief(ground.written_s),
        "balance": times(ground.n_read / len(ground.tokens)),
        "words": f"{STORY_WORDS_READ:,}",
        "word_tokens": f"{TOKENS_READ:,}",
        "total_verdict": phrase(f"paradox.{longer}"),
    }


def panel(ground: Ground) -> None:
    """The two cards, and the button that lets them run again."""
    found = figures(ground)
    done = [(step.t1_s, step.n_tokens) for step in ground.reading]
    cards = drawn.card(
        "read",
        phrase("paradox.reader"),
        found["read_each"],
        phrase("paradox.each_token"),
        drawn.grid(done, "read", phrase("paradox.grid", tokens=found["n_read"])),
        phrase("paradox.read_total", tokens=found["n_read"], total=found["read_total"]),
    ) + drawn.card(
        "write",
        phrase("paradox.typewriter"),
        found["write_each"],
        phrase("paradox.each_token"),
        drawn.typed([(token.t_s, token.text) for token in ground.tokens]),
        phrase("paradox.write_total", tokens=found["n_written"], total=found["write_total"]),
    )
    turn: int = st.session_state.setdefault("paradox_turn", 0)
    place = st.container()
    if st.button(phrase("panel.again"), icon=":material/replay:", key="paradox_again"):
        st.session_state["paradox_turn"] = turn = turn + 1
    place.html(drawn.again(turn, f'<div class="cards">{cards}</div>'))
