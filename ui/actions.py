"""What follows a click: start, stop, delete, add. Callbacks, so they run before the script draws.

Each ends in a change of what is on the stage or in one sentence there. The rules (one run at a time, keys, limits) are
the server's; its sentences are shown as they are.
"""

from __future__ import annotations

import math
from typing import Any, BinaryIO

import streamlit as st

import server
from server import Busy
from ui import selection
from ui.panels import settings


def start_run() -> None:
    """Run what the settings say; if somebody else's run is on the machine, watch that one.

    The stage's button says by ``watch`` that a person wants just that, and its note says whose run it is.
    """
    watch = _from_stage("run").get("watch")
    if isinstance(watch, str):
        selection.show(watch)
        return
    try:
        started = server.current().start(
            "live", settings.request({str(key): value for key, value in st.session_state.items()})
        )
    except Busy as busy:
        selection.show(busy.run_id)
    except ValueError as refusal:
        selection.say(str(refusal))
    else:
        selection.remember_key(started.run_id, started.key)
        selection.show(started.run_id)


def stop_run() -> None:
    """Stop the run that the stage names, with the key that the browser kept."""
    asked = _from_stage("stop")
    run_id, key = asked.get("run"), asked.get("key")
    if not isinstance(run_id, str):
        return
    key = key if isinstance(key, str) else selection.key_of(run_id)
    try:
        server.current().cancel(run_id, key, loopback=here())
    except (ValueError, LookupError) as refusal:
        selection.say(_sentence(refusal))


def note_position() -> None:
    """Remember where the person paused."""
    asked = _from_stage("pos")
    run_id, t = asked.get("run"), asked.get("t")
    if isinstance(run_id, str) and isinstance(t, int | float) and math.isfinite(t):
        selection.stand_at(run_id, float(t))


def stepped() -> int:
    """Which way the stage asked the page to go on: 1, -1, or 0 where it did not."""
    direction = _from_stage("step").get("direction")
    return direction if direction in (1, -1) else 0


def install_live_set() -> None:
    """Begin, or begin again, to install what a live run needs."""
    server.current().install_live_set()


def delete_recording(run_id: str) -> None:
    """Remove one's own recording."""
    try:
        server.current().delete(run_id, selection.key_of(run_id), loopback=here())
    except (ValueError, LookupError) as refusal:
        selection.say(_sentence(refusal))


def add_recording(shown_name: str, stream: BinaryIO) -> str | None:
    """Keep an uploaded trace and put it on the stage. Gives the sentence that says why not, or None."""
    try:
        recording = server.current().add_recording(shown_name, stream)
    except ValueError as refusal:
        return str(refusal)
    selection.show(recording.id)
    return None


def here() -> bool:
    """Whether the viewer sits at this machine."""
    return server.is_loopback(st.context.ip_address, st.context.headers.get("Host"))


def _from_stage(name: str) -> dict[str, Any]:
    """The value that came with a trigger or state of the stage; whatever a browser may send, a dict of it."""
    value = (st.session_state.get("stage") or {}).get(name)
    return dict(value) if isinstance(value, dict) else {}


def _sentence(error: Exception) -> str:
    """A LookupError's str() may be quoted by Python; its first argument is the sentence."""
    return str(error.args[0]) if error.args else str(error)
