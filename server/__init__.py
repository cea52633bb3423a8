"""The server's public face: what the page's script may ask, and the place where the one running server is kept.

``app.py`` (and any test) builds a ``Server`` and installs it; Streamlit's script threads then find it with
``current()``. It is kept here, in an imported module, because Streamlit re-executes only the script itself: a module
level value of an imported package is one per process.
"""

from __future__ import annotations

from server.access import is_loopback
from server.desk import Server
from server.files import plotly_digest, stage_digest
from server.status import Busy, InstallReport, Recording, Started, Status, Worker

__all__ = [
    "Busy",
    "InstallReport",
    "Recording",
    "Server",
    "Started",
    "Status",
    "Worker",
    "current",
    "install",
    "is_loopback",
    "plotly_digest",
    "stage_digest",
]

_installed: Server | None = None


def install(server: Server | None) -> None:
    """Make ``server`` the one that ``current`` gives; None takes it away at the end."""
    global _installed
    _installed = server


def current() -> Server:
    """The installed server. Raises LookupError where the page was started without it."""
    if _installed is None:
        raise LookupError("The page runs without its server: start it with `streamlit run app.py`.")
    return _installed
