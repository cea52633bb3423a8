"""Mounts the stage, the component in assets/stage that draws everything that moves.

It is registered with a two-line loader that imports the modules from our own route: this works from a plain checkout,
with relative imports and caching. The loader must hold a newline, or Streamlit takes a text with a "/" for a path. The
data names addresses, never events: those reach the browser over a websocket of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

import server
from ui import actions
from ui.panels import present
from ui.panels.present import Presented
from ui.selection import Shown


def stay() -> None:
    """There is no next page to turn to."""


def mount(shown: Shown, density: str, presented: Presented | None = None, on_step: Callable[[], None] = stay) -> None:
    """Draw the stage with the run it is to show. ``on_step`` is called when its keys ask for the next page."""
    loader = (
        f"const stage = await import(new URL('stage/{server.stage_digest()}/stage.js', document.baseURI));\n"
        "export default stage.default;\n"
    )
    component = st.components.v2.component("stage", html="<div class='mount'></div>", js=loader)
    component(
        key="stage",
        data=data(shown, density, presented),
        on_run_change=actions.start_run,
        on_stop_change=actions.stop_run,
        on_pos_change=actions.note_position,
        on_step_change=on_step,
        on_leave_change=present.leave,
    )


def data(shown: Shown, density: str, presented: Presented | None = None) -> dict[str, Any]:
    """What the stage is told: small, and equal from run to run of the script unless something changed."""
    run = shown.run_id and {
        "id": shown.run_id,
        "live": shown.live,
        "key": shown.key,
        "recorded": not shown.live,
        "title": shown.title,
    }
    beside = shown.beside and {"id": shown.beside.run_id, "live": shown.beside.live, "title": shown.beside.title}
    return {
        "density": density,
        "present": presented,
        "run": run or None,
        "compare": beside,
        "statusUrl": "api/status",
        "plotly": f"plotly/{server.plotly_digest()}/plotly.min.js",
        "t": shown.t,
        "message": shown.message,
    }
