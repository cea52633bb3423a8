"""The button that keeps a finished run as one HTML file. The file is made when the button is pressed, not before."""

from __future__ import annotations

import streamlit as st

import server
from server import Recording
from ui import figures, report
from ui.selection import Shown

# The file holds the whole trace, and a browser has to open it; a longer run is downloaded as its trace.
LARGEST_BYTES = 16_000_000
ONE_FILE = "One HTML file with the figures, where they come from, and the playable stage. It opens without a network."
TOO_LONG = "This run is too long for one file; download its trace."


def report_button(recording: Recording, key: str) -> None:
    """Offers the report of a finished run."""
    fits = recording.size_bytes <= LARGEST_BYTES
    st.download_button(
        "Report",
        lambda: made(recording),
        report.file_name(recording.id),
        "text/html",
        key=key,
        icon=":material/description:",
        disabled=not fits,
        help=ONE_FILE if fits else TOO_LONG,
        on_click="ignore",
    )


def of_shown(shown: Shown) -> None:
    """The same for what is on the stage, once it is a recording."""
    found = next((one for one in server.current().recordings() if one.id == shown.run_id), None)
    if found is not None and not found.live:
        report_button(found, "report_shown")


def made(recording: Recording) -> str:
    """The report. Raises LookupError with a sentence when the recording has gone meanwhile."""
    trace = figures.trace(recording.id)
    if trace is None:
        raise LookupError("This recording is not here any more.")
    lines = server.current().runs.store.lines(recording.id)
    return report.page(recording.id, recording.title, lines, trace)
