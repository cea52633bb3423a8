"""The list of recordings: play, download, delete one's own, add a file.

Names and labels may come from an uploaded file, so they are drawn with ``st.text``, which shows characters as they
are; markdown would turn them into links, colours and formulas.
"""

from __future__ import annotations

import streamlit as st

import server
from server import Recording
from ui import actions, figures, selection
from ui.figures import UNKNOWN


def page() -> None:
    """Draws the upload and one row for each recording."""
    _upload()
    known = server.current().recordings()
    if not known:
        st.info("There is no recording yet. Every run on this machine becomes one.")
    for recording in known:
        _row(recording)


def _upload() -> None:
    # A new key empties the widget, so that one file is added once.
    turn: int = st.session_state.setdefault("upload_turn", 0)
    file = st.file_uploader("Add a recording (.jsonl, also gzipped)", key=f"upload_{turn}")
    refusal = st.session_state.pop("upload_refusal", None)
    if file is not None:
        st.session_state["upload_refusal"] = actions.add_recording(file.name, file)
        st.session_state["upload_turn"] = turn + 1
        st.rerun()
    if refusal:
        with st.container(border=True):
            st.text(refusal)


def _row(recording: Recording) -> None:
    with st.container(border=True):
        what, buttons = st.columns([3, 2], vertical_alignment="center")
        with what:
            st.text(recording.title)
            st.text(facts(recording))
        with buttons.container(horizontal=True, horizontal_alignment="right"):
            st.button(
                "Watch" if recording.live else "Play",
                icon=":material/play_arrow:",
                key=f"play_{recording.id}",
                on_click=selection.show,
                args=(recording.id,),
            )
            if not recording.live:
                st.link_button("Download", f"api/traces/{recording.id}.jsonl?download=1", icon=":material/download:")
            if deletable(recording):
                st.button(
                    "Delete",
                    icon=":material/delete:",
                    key=f"delete_{recording.id}",
                    on_click=actions.delete_recording,
                    args=(recording.id,),
                )


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
