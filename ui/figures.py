"""Figures of a finished recording, read from its file and remembered until the file changes.

Everything shown of a run is computed here from its trace; no figure is typed into a page. A file too large to be read
in passing has no figures in the list: a dash, like everything unknown.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import server
from telemetry.summary import Summary, summarise
from telemetry.trace import Trace, read_trace

UNKNOWN = "\u2013"
LARGEST_IN_PASSING_BYTES = 8_000_000
REMEMBERED = 128


def decode_tok_s(run_id: str) -> float | None:
    """Tokens per second of decode (1/TPOT), or None where the trace does not tell or is too large for a list."""
    path = _path(run_id)
    if path is None or path.stat().st_size > LARGEST_IN_PASSING_BYTES:
        return None
    summary = _summary(path, path.stat().st_mtime_ns)
    return summary.decode_tok_s if summary else None


def trace(run_id: str) -> Trace | None:
    """The whole trace, or None where there is no readable file any more."""
    path = _path(run_id)
    return _trace(path, path.stat().st_mtime_ns) if path is not None else None


def _path(run_id: str) -> Path | None:
    try:
        return server.current().runs.store.path(run_id)
    except LookupError:
        return None


# Streamlit re-executes only its script, so these caches are one per process.
@lru_cache(maxsize=REMEMBERED)
def _summary(path: Path, changed_ns: int) -> Summary | None:
    whole = _read(path)
    return summarise(whole) if whole else None


@lru_cache(maxsize=2)
def _trace(path: Path, changed_ns: int) -> Trace | None:
    return _read(path)


def _read(path: Path) -> Trace | None:
    try:
        return read_trace(path)
    except (ValueError, OSError):
        return None
