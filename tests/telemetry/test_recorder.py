"""One clock, one order, whoever emits."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path

import pytest

from telemetry.events import Header, Meta, Note, Row, Sample, Step, Token
from telemetry.recorder import Recorder

CASES = Path(__file__).parents[1] / "cases"
HEADER = Header(id="r", created="2023-11-14T22:13:20+00:00", source="live", model={"name": "m"}, precision="fp32")


def test_header_line_is_written_at_once() -> None:
    lines: list[str] = []
    Recorder(HEADER, lines.append, clock=lambda: 5.0)
    assert [json.loads(line)["format"] for line in lines] == ["siliconscope-trace"]


def test_wall_clock_set_back_leaves_every_interval_alone() -> None:
    """Guards against time.time() in intervals: the wall clock steps back 5 s, the monotonic one does not."""
    samples = json.loads((CASES / "c_clock_jump.json").read_text())["samples"]
    clock = iter([samples[0]["perf"], *(s["perf"] for s in samples)])
    lines: list[str] = []
    recorder = Recorder(HEADER, lines.append, clock=lambda: next(clock))
    times = [recorder.emit(Token(0, s["i"], s["i"], "x")).t for s in samples]
    assert [b - a for a, b in itertools.pairwise(times)] == pytest.approx([0.05] * 7)
    assert "17000000" not in "".join(lines[1:])
    assert json.loads(lines[0])["created"] == HEADER.created


def test_steps_and_samples_stand_at_their_end() -> None:
    recorder = Recorder(HEADER, lambda _: None, clock=lambda: 100.0, origin=90.0)
    assert recorder.emit(Step(0, 1.0, 2.5, "target", (Row(0, 1, 0, "decode"),), None, None, "host")).t == 2.5
    assert recorder.emit(Sample("cpu", "cpu_busy", 0, 0.5, 3.0, 3.1)).t == 3.1
    assert recorder.emit(Note("now")).t == 10.0
    assert recorder.emit(Note("then"), 4.0).t == 4.0


def test_late_facts_merge_into_the_header() -> None:
    recorder = Recorder(HEADER, lambda _: None)
    recorder.emit(Meta({"load_s": 1.5, "clock": {"name": "perf_counter"}, "id": "other", "unheard_of": 1}))
    assert (recorder.header.load_s, recorder.header.clock, recorder.header.id) == (1.5, {"name": "perf_counter"}, "r")


def test_nan_is_refused_and_uses_up_no_ordinal() -> None:
    lines: list[str] = []
    recorder = Recorder(HEADER, lines.append)
    with pytest.raises(ValueError, match="JSON"):
        recorder.emit(Sample("nvml", "power_w", 0, float("nan"), 0.0, 0.1))
    assert recorder.emit(Note("next")).n == 0
    assert len(lines) == 2


def test_threads_share_one_order() -> None:
    lines: list[str] = []
    recorder = Recorder(HEADER, lines.append)

    def emit_many() -> None:
        for _ in range(200):
            recorder.emit(Note("x"))

    threads = [threading.Thread(target=emit_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [json.loads(line) for line in lines[1:]]
    assert [e["n"] for e in events] == list(range(800))
    assert all(a["t"] <= b["t"] for a, b in itertools.pairwise(events))
