"""Which shipped recording a benchmark plays."""

from __future__ import annotations

from pathlib import Path

TRACES = Path(__file__).resolve().parent.parent / "assets" / "traces"


def opening_recording() -> Path:
    """The recording that opens the page. Raises SystemExit with a sentence where none is shipped."""
    found = sorted(TRACES.glob("*fp32*.jsonl"))
    if not found:
        raise SystemExit("No recording ships in assets/traces.")
    return found[0]
