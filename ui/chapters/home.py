"""The page that opens: below the stage stand the settings of the next run, what it should take, and how it went."""

from __future__ import annotations

import streamlit as st

import server
from server import Status
from ui import actions, figures, selection
from ui.panels import expectation, settings

# While something is being prepared the settings are looked at again; afterwards nothing runs until a person acts.
LOOK_AGAIN_S = 2.0
UNSETTLED = {"starting", "idle", "loading", "measuring"}


def page() -> None:
    """Draws the settings; they refresh themselves while the engine is being prepared."""
    waiting = unsettled(server.current().status())
    st.fragment(_settings, run_every=LOOK_AGAIN_S if waiting else None)(waiting)
    shown = selection.shown()
    st.fragment(_outcome, run_every=LOOK_AGAIN_S if shown.live else None)(shown)


def unsettled(status: Status) -> bool:
    """Whether what can be chosen may still change without anybody's doing."""
    if status.install is not None and status.install.state != "done":
        return status.install.state == "running"
    return status.worker.state in UNSETTLED


def _settings(waiting: bool) -> None:
    status = server.current().status()
    if waiting and not unsettled(status):
        st.rerun()
    with st.expander("Settings of the next run", icon=":material/tune:"):
        settings.draw(status.worker)
    expectation.before(status.worker, settings.request({str(k): value for k, value in st.session_state.items()}))
    if status.install is not None and status.install.state in ("failed", "absent"):
        st.button("Install what a live run needs", on_click=actions.install_live_set)


def _outcome(shown: selection.Shown) -> None:
    """How the run on the stage went, once it is over."""
    if shown.run_id is None:
        return
    if shown.live:
        if server.current().status().busy_run_id != shown.run_id:
            st.rerun()
        return
    trace = figures.trace(shown.run_id)
    if trace is not None:
        expectation.after(trace)
