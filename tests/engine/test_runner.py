"""One run's events: their order, their times, what ends it, and what is kept when it breaks."""

from __future__ import annotations

import io
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.backend import Backend
from engine.runner import Prompt, Runner
from engine.sampling import Sampler
from engine.text import StreamDecoder
from engine.timing import HostTimer
from sim.costs import step_cost, weight_bytes
from telemetry.events import End, Event, Header, Note, Phase, Request, Step, Token
from telemetry.protocol import RunRequest
from telemetry.recorder import Recorder
from telemetry.summary import summarise
from telemetry.trace import Trace, read_trace
from tests.engine.fakes import EOS, SPEC, ScriptedBackend, byte_tokenizer, ids_of

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("one_thread")]
CASES = Path(__file__).parent.parent / "cases"
PROMPT = Prompt(tuple(ids_of("twelve bytes")), tuple("twelve bytes"))


class Run:
    """Runs a backend to its end, or to its error, and reads its trace back."""

    def __init__(
        self,
        backend: Backend,
        request: RunRequest | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.lines: list[str] = []
        header = Header("r", "2026-01-01T00:00:00+00:00", "live", {"name": "toy"}, "fp32")
        request = request or RunRequest(prompt="twelve bytes", max_new_tokens=5)
        decoder = StreamDecoder(byte_tokenizer(), {EOS})
        self.recorder = Recorder(header, self.lines.append, clock)
        self.runner = Runner(
            backend,
            self.recorder,
            HostTimer(),
            request,
            PROMPT,
            decoder,
            frozenset({EOS}),
            Sampler(),
            cancelled,
        )
        self.runner.announce()

    def to_the_end(self) -> Run:
        self.recorder.emit(End(None, self.runner.run()))
        return self

    @property
    def trace(self) -> Trace:
        return read_trace(io.BytesIO("".join(f"{line}\n" for line in self.lines).encode()))

    def bodies(self, kind: type) -> list[Any]:
        return [e.body for e in self.trace.events if isinstance(e.body, kind)]

    @property
    def text(self) -> str:
        return "".join(t.text for t in self.bodies(Token))


def times(events: tuple[Event, ...], kind: type) -> list[float]:
    return [e.t for e in events if isinstance(e.body, kind)]


def test_a_run_tells_request_phases_steps_tokens_and_ends() -> None:
    run = Run(ScriptedBackend(ids_of("Hello"))).to_the_end()
    assert run.text == "Hello"
    assert [p.phase for p in run.bodies(Phase)] == ["prefill", "decode", "done"]
    assert run.bodies(Request) == [Request(0, 12, 5, tuple("twelve bytes"))]
    rows = [(r.n_tokens, r.context, r.kind) for s in run.bodies(Step) for r in s.rows]
    assert rows == [(8, 0, "prefill"), (4, 8, "prefill"), *((1, 12 + i, "decode") for i in range(4))]
    assert [t.position for t in run.bodies(Token)] == [12, 13, 14, 15, 16]
    assert [e.reason for e in run.bodies(End)] == ["length", "length"]
    assert all(0.9 < t.prob <= 1.0 for t in run.bodies(Token))


def test_steps_are_priced_by_the_shared_arithmetic() -> None:
    step = Run(ScriptedBackend(ids_of("Hello"))).to_the_end().bodies(Step)[-1]
    cost = step_cost(SPEC, [(1, 15)], weight_bytes(SPEC, 32.0), 4.0, 4.0)
    assert (step.flops, step.bytes.total) == (cost.flops, cost.total_bytes)


def test_a_tokens_time_is_after_its_step_and_every_token_has_its_own() -> None:
    trace = Run(ScriptedBackend(ids_of("🔥!")), RunRequest(prompt="x", max_new_tokens=5)).to_the_end().trace
    tokens = [e for e in trace.events if isinstance(e.body, Token)]
    steps = {e.body.i: e.body for e in trace.events if isinstance(e.body, Step)}
    assert [e.body.text for e in tokens] == ["", "", "", "🔥", "!"]
    assert all(e.t >= steps[e.body.step].t1 for e in tokens)
    assert all(a < b for a, b in itertools.pairwise(times(trace.events, Token)))


def test_the_end_of_text_ends_the_run_and_is_not_in_the_answer() -> None:
    run = Run(ScriptedBackend([*ids_of("Hi"), EOS, *ids_of("never")])).to_the_end()
    assert (run.text, run.bodies(End)[0].reason) == ("Hi", "eos")
    assert run.runner.totals()["n_new_tokens"] == 3


def test_ignoring_the_end_runs_on_without_showing_it() -> None:
    request = RunRequest(prompt="x", max_new_tokens=5, ignore_eos=True)
    run = Run(ScriptedBackend([*ids_of("Hi"), EOS, *ids_of("yo")]), request).to_the_end()
    assert (run.text, run.bodies(End)[0].reason) == ("Hiyo", "length")


@pytest.mark.parametrize(
    ("said", "stop", "shown", "reason"),
    [("ab\nUser: x", "\nUser:", "ab", "stop"), ("ab\nUs", "\nUser:", "ab\nUs", "length")],
)
def test_stops_are_held_and_flushed_with_the_last_token(said: str, stop: str, shown: str, reason: str) -> None:
    request = RunRequest(prompt="x", max_new_tokens=len(said), stop=(stop,))
    run = Run(ScriptedBackend(ids_of(said)), request).to_the_end()
    assert (run.text, run.bodies(End)[0].reason) == (shown, reason)


def test_cancel_takes_effect_before_the_next_step_and_keeps_held_text() -> None:
    backend = ScriptedBackend(ids_of("ab\nUser: x"))
    request = RunRequest(prompt="x", max_new_tokens=10, stop=("\nUser:",))
    run = Run(backend, request, cancelled=lambda: len(backend.calls) >= 5).to_the_end()
    assert len(backend.calls) == 5
    assert (run.text, run.bodies(End)[0].reason) == ("ab\nU"[:4], "cancelled")
    assert summarise(run.trace).n_new_tokens == 4


def test_cancel_during_a_long_prompt_stops_between_chunks() -> None:
    backend = ScriptedBackend(ids_of("a"))
    run = Run(backend, cancelled=lambda: len(backend.calls) >= 1).to_the_end()
    assert len(backend.calls) == 1
    assert run.bodies(End)[0].reason == "cancelled"
    assert summarise(run.trace).ttft_s is None


@pytest.mark.parametrize("said_before", [0, 5])
def test_a_failing_step_passes_through_with_the_text_so_far(said_before: int) -> None:
    backend = ScriptedBackend(ids_of("Hello world"))
    backend.break_after(said_before, RuntimeError("kernel failed"))
    run = Run(backend, RunRequest(prompt="x", max_new_tokens=50, stop=("orld!",)))
    with pytest.raises(RuntimeError, match="kernel failed"):
        run.runner.run()
    assert run.text == "Hello"[:said_before]


def test_a_stretched_prefill_repeats_for_a_second_and_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runner.STRETCH_S", 0.05)
    request = RunRequest(prompt="x", max_new_tokens=3, stretch_prefill=True)
    run = Run(ScriptedBackend(ids_of("abc")), request).to_the_end()
    steps = run.bodies(Step)
    repeats = [s for s in steps if s.repeat]
    assert repeats[-1].t1 - repeats[0].t0 >= 0.04
    assert [s.repeat for s in steps[-4:]] == [False] * 4
    assert any("counters can see it" in n.text for n in run.bodies(Note))
    assert summarise(run.trace).ttft_s < 0.05


def test_withheld_text_leaves_no_text_and_no_ids() -> None:
    request = RunRequest(prompt="x", max_new_tokens=5, text_withheld=True)
    run = Run(ScriptedBackend(ids_of("Hello")), request).to_the_end()
    assert run.text == ""
    assert run.bodies(Request)[0].pieces is None
    assert {t.id for t in run.bodies(Token)} == {None}


def test_a_run_of_one_token_has_no_decode_phase_and_no_rate() -> None:
    run = Run(ScriptedBackend(ids_of("a")), RunRequest(prompt="x", max_new_tokens=1)).to_the_end()
    assert [p.phase for p in run.bodies(Phase)] == ["prefill", "done"]
    assert summarise(run.trace).decode_tok_s is None


def test_intervals_do_not_follow_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The computer's clock is set back 5 s after the third reading; every gap stays 50 ms."""
    samples = json.loads((CASES / "c_clock_jump.json").read_text(encoding="utf-8"))["samples"]
    wall = itertools.cycle([s["wall"] for s in samples])
    monkeypatch.setattr(time, "time", lambda: next(wall))
    perf = iter([s["perf"] for s in samples])
    lines: list[str] = []
    header = Header("r", "2026-01-01T00:00:00+00:00", "live", {"name": "toy"}, "fp32")
    recorder = Recorder(header, lines.append, clock=lambda: next(perf))
    stamps = [recorder.emit(Token(0, None, i, "x")).t for i in range(len(samples) - 1)]
    assert [round(b - a, 6) for a, b in itertools.pairwise(stamps)] == [0.05] * (len(samples) - 2)
    trace = Run(ScriptedBackend(ids_of("Hello"))).to_the_end().trace
    assert all(0 <= b - a < 5 for a, b in itertools.pairwise(e.t for e in trace.events))
