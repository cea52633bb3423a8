"""The list of recordings: play, download, delete one's own, add a file.

Names and labels may come from an uploaded file, so they are drawn with ``st.text``, which shows characters as they
are; markdown would turn them into links, colours and formulas.
"""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

import server
from server import Recording
from ui import actions, figures, selection
from ui.figures import UNKNOWN
from ui.panels import download


def page(stage: StreamlitPage) -> None:
    """Draws the upload and one row for each recording; playing one leads to ``stage``."""
    if _uploaded():
        st.switch_page(stage)
    known = server.current().recordings()
    if not known:
        st.info("There is no recording yet. Every run on this machine becomes one.")
    for recording in known:
        if _row_goes_to_stage(recording):
            st.switch_page(stage)


def _uploaded() -> bool:
    """Whether a file was added just now. A refusal is drawn as a sentence."""
    # A new key empties the widget, so that one file is added once.
    turn: int = st.session_state.setdefault("upload_turn", 0)
    file = st.file_uploader("Add a recording (.jsonl, also gzipped)", key=f"upload_{turn}")
    refusal = st.session_state.pop("upload_refusal", None)
    if file is not None:
        refusal = actions.add_recording(file.name, file)
        st.session_state["upload_refusal"] = refusal
        st.session_state["upload_turn"] = turn + 1
        if refusal is None:
            return True
        st.rerun()
    if refusal:
        with st.container(border=True):
            st.text(refusal)
    return False


def _row_goes_to_stage(recording: Recording) -> bool:
    """Draws the row; whether its recording was put on the stage just now, alone or beside the one that is there."""
    with st.container(border=True):
        what, buttons = st.columns([3, 2], vertical_alignment="center")
        with what:
            st.text(recording.title)
            st.text(facts(recording))
        with buttons.container(horizontal=True, horizontal_alignment="right"):
            play = st.button(
                "Watch" if recording.live else "Play", icon=":material/play_arrow:", key=f"play_{recording.id}"
            )
            beside = selection.on_stage() not in (None, recording.id) and st.button(
                "Beside", icon=":material/compare:", key=f"beside_{recording.id}", help="Next to the run on the stage."
            )
            if not recording.live:
                st.link_button("Download", f"api/traces/{recording.id}.jsonl?download=1", icon=":material/download:")
                download.report_button(recording, key=f"report_{recording.id}")
            if deletable(recording):
                st.button(
                    "Delete",
                    icon=":material/delete:",
                    key=f"delete_{recording.id}",
                    on_click=actions.delete_recording,
                    args=(recording.id,),
                )
    if play:
        selection.show(recording.id)
    elif beside:
        selection.put_beside(recording.id)
    return play or beside


def deletable(recording: Recording) -> bool:
    """One's own, or any for the person at this machine; never a shipped one, never one that is still growing."""
    own = selection.key_of(recording.id) is not None or actions.here()
    return own and not recording.shipped and not recording.live


def facts(recording: Recording) -> str:
    """Machine, model, precision, tokens, speed and how it ended, in one line; a dash is unknown."""
    decode_tok_s = None if recording.live else figures.decode_tok_s(recording.id)
    speed = UNKNOWN if decode_tok_s is None else f"{decode_tok_s:.3g}"
    parts = [
        recording.machine,
        recording.model,
        recording.precision,
        f"{_count(recording.n_prompt_tokens)} tokens read, {_count(recording.n_new_tokens)} written",
        f"{speed} tok/s writing",
        "running now" if recording.live else recording.end_reason or UNKNOWN,
    ]
    if recording.source != "live":
        parts.insert(0, recording.source)
    return " · ".join(parts)


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"
