"""Which run is on the stage: the address bar says it, the session remembers it, the opening recording is the default.

The address (``?run=…&t=…``) is what makes a link to an instant and what brings a refresh back to a running run: a
refresh is a new session, so nothing else survives it. ``&beside=…`` names a second run on the same clock. Streamlit
drops query parameters when the page is switched, so they are written again at each run of the script.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import streamlit as st

import server
from server import Recording

# The recording that opens the page: the name of its file in assets/traces, without the ending.
OPENING = "smollm2-135m-fp32-500"

NOTHING_SHIPPED = "No recording came with this copy. Run the model on this machine, or add a recording."
NOT_HERE = "That run is not here any more, so this is the opening recording."
NOT_UNDERSTOOD = "The address has a value that means nothing here (%s); the usual is shown instead."


@dataclass(frozen=True, slots=True)
class Beside:
    """The second run of a comparison."""

    run_id: str
    title: str
    live: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """What the stage is told. ``t`` is where a link wants it to stand, in seconds; ``message`` is for the person."""

    run_id: str | None
    title: str = ""
    live: bool = False
    key: str | None = None
    t: float | None = None
    message: str | None = None
    beside: Beside | None = None


def show(run_id: str) -> None:
    """Put a run on the stage, alone and from its beginning."""
    st.session_state["run"] = run_id
    st.session_state["message"] = None
    put_beside(None)
    for stale in ("t", "stood_at"):
        st.session_state.pop(stale, None)
    st.query_params.pop("t", None)


def put_beside(run_id: str | None) -> None:
    """A second run beside the one on the stage, or none."""
    st.session_state["beside"] = run_id
    if run_id is None:
        st.query_params.pop("beside", None)


def on_stage() -> str | None:
    """The run that the stage was told to show, if it was told."""
    run_id: str | None = st.session_state.get("run")
    return run_id


def say(message: str) -> None:
    """A sentence for the person, on the stage, until the next one."""
    st.session_state["message"] = message


def stand_at(run_id: str, t: float) -> None:
    """Keep where the person paused for the address, so that it can be sent as a link."""
    st.session_state["stood_at"] = (run_id, t)
    if st.session_state.get("run") is None:  # the opening recording, which needs no address until somebody stands in it
        st.session_state["run"] = run_id


def asked(name: str, known: Collection[str]) -> str | None:
    """A new session's value of ``name`` in the address, if it is one of ``known``. Otherwise it is said once.

    It leaves the address at once, so that neither a reload nor a copied link says it again.
    """
    value = st.query_params.get(name)
    if value is None or value in known:
        return value
    _not_understood(name)
    return None


def _not_understood(name: str) -> None:
    del st.query_params[name]
    strange: list[str] = st.session_state.setdefault("strange", [])
    strange.append(name)
    say(NOT_UNDERSTOOD % ", ".join(strange))


def remember_key(run_id: str, key: str) -> None:
    """The key of a run that was started in this session."""
    st.session_state.setdefault("keys", {})[run_id] = key


def key_of(run_id: str) -> str | None:
    """The key of a run, if this session started it."""
    keys: dict[str, str] = st.session_state.get("keys", {})
    return keys.get(run_id)


def shown() -> Shown:
    """What is on the stage now, after looking at the address and at what there is."""
    _read_address()
    wanted: str | None = st.session_state["run"]
    message: str | None = st.session_state.get("message")
    known = server.current().recordings()
    found = _find(wanted, known)
    if wanted is not None and found is None:
        st.session_state["run"] = None
        st.query_params.pop("run", None)
        message = message or server.current().status().problem or NOT_HERE
    if found is not None and found.run_id is not None:
        beside = _beside(found.run_id, known)
        _write_address(found.run_id, beside)
        t = st.session_state.get("t")
        return Shown(found.run_id, found.title, found.live, key_of(found.run_id), t, message, beside)
    opening = _find(OPENING, known) or (_of(known[0]) if known else None)
    if opening is None:
        return Shown(None, message=message or NOTHING_SHIPPED)
    return Shown(opening.run_id, opening.title, opening.live, t=st.session_state.get("t"), message=message)


def _find(run_id: str | None, known: tuple[Recording, ...]) -> Shown | None:
    """The run among the recordings, or the one that is on the machine and has not said its first line yet."""
    recording = next((one for one in known if one.id == run_id), None)
    if recording is not None:
        return _of(recording)
    if run_id is not None and run_id == server.current().status().busy_run_id:
        return Shown(run_id, "Starting on this machine", live=True)
    return None


def _beside(run_id: str, known: tuple[Recording, ...]) -> Beside | None:
    """The second run, if it is still there and not the first one."""
    wanted = st.session_state.get("beside")
    second = _find(wanted, known) if wanted != run_id else None
    if second is None or second.run_id is None:
        put_beside(None)
        return None
    return Beside(second.run_id, second.title, second.live)


def _of(recording: Recording) -> Shown:
    return Shown(recording.id, recording.title, recording.live)


def _read_address() -> None:
    """Only a new session listens to the address; later it is we who write it."""
    if "run" not in st.session_state:
        st.session_state["run"] = st.query_params.get("run")
        st.session_state["beside"] = st.query_params.get("beside")
        asked_t = st.query_params.get("t")
        st.session_state["t"] = seconds(asked_t)
        if asked_t is not None and st.session_state["t"] is None:
            _not_understood("t")


def _write_address(run_id: str, beside: Beside | None) -> None:
    if st.query_params.get("run") != run_id:
        st.query_params["run"] = run_id
    if beside is not None and st.query_params.get("beside") != beside.run_id:
        st.query_params["beside"] = beside.run_id
    stood_run, t = st.session_state.get("stood_at", (None, 0.0))
    if stood_run == run_id and st.query_params.get("t") != f"{t:.3f}":
        st.query_params["t"] = f"{t:.3f}"


def seconds(text: str | None) -> float | None:
    """A place on the clock from an address; None for what is no finite number from 0 on."""
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
