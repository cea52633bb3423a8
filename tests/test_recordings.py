"""The recordings that ship: whole, labelled, and the one that opens the page shows what the page is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from telemetry.summary import summarise
from telemetry.trace import read_trace
from ui.selection import OPENING

TRACES = Path(__file__).resolve().parent.parent / "assets" / "traces"


def test_the_opening_recording_shows_the_contrast() -> None:
    trace = read_trace(TRACES / f"{OPENING}.jsonl")
    summary = summarise(trace)
    assert (trace.header.source, trace.header.precision) == ("live", "fp32")
    assert summary.n_prompt_tokens == 500
    assert (summary.n_new_tokens or 0) >= 60
    assert summary.mbu.decode is not None
    assert summary.mfu.decode is not None
    assert summary.mbu.decode >= 10 * summary.mfu.decode


def test_three_recordings_ship() -> None:
    assert len(list(TRACES.glob("*.jsonl"))) >= 3


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_shipped_recording_is_whole_and_names_its_machine(path: Path) -> None:
    trace = read_trace(path)
    assert not trace.ended_early
    assert trace.n_damaged_lines == 0
    assert trace.header.devices
    assert trace.header.devices[0].name
    ceilings = trace.header.ceilings
    assert ceilings.prefill_compute
    assert ceilings.decode_compute
    assert ceilings.memory
