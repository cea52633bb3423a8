"""The live source against a real process that dies, hangs, babbles or refuses (scripted_worker.py)."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sources.live import LiveSource
from sources.watch import Limits
from telemetry.protocol import RunRequest

SCRIPT = str(Path(__file__).with_name("scripted_worker.py"))
QUICK = Limits(beat_s=1.0, step_s=1.0, hello_s=10.0, loading_s=10.0)
Open = Callable[..., LiveSource]


class Lines:
    """A sink that keeps what it is given and can be waited for."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.problem: str | None = None
        self.closed = threading.Event()

    def line(self, text: str) -> None:
        assert not self.closed.is_set()
        self.got.append(json.loads(text))

    def close(self, problem: str | None = None) -> None:
        self.problem = problem
        self.closed.set()

    @property
    def end(self) -> dict[str, Any]:
        assert self.closed.wait(20)
        return self.got[-1]

    def n_tokens(self) -> int:
        return sum(line.get("k") == "token" for line in self.got)


@pytest.fixture
def open_source() -> Iterator[Open]:
    opened: list[LiveSource] = []

    def make(part: str = "", **options: Any) -> LiveSource:
        defaults = {"missing": lambda: None, "limits": QUICK, "tick_s": 0.02, "pauses_s": (0.0, 0.05, 0.1)}
        source = LiveSource([sys.executable, SCRIPT, part], **(defaults | options))
        opened.append(source)
        source.open()
        return source

    yield make
    for source in opened:
        source.close()


def _wait(until: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def _ready(source: LiveSource) -> LiveSource:
    _wait(lambda: source.status()[0].state == "ready")
    return source


def _run(source: LiveSource, prompt: str, n_tokens: int = 10) -> Lines:
    sink = Lines()
    source.start("run-1", RunRequest(prompt=prompt, max_new_tokens=n_tokens), sink)
    return sink


def _ordinals(sink: Lines) -> list[int]:
    return [line["n"] for line in sink.got[1:]]


def test_the_default_model_loads_at_once_and_runs_follow_each_other(open_source: Open) -> None:
    source = _ready(open_source())
    state, hello, _ = source.status()
    assert state.model == "scripted" and hello is not None and hello.models[0].name == "scripted"
    for _ in range(3):
        sink = _run(source, "say")
        assert sink.end["reason"] == "length"
        assert sink.n_tokens() == 10 and _ordinals(sink) == list(range(len(sink.got) - 1))


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("die", "exit code 9"),
        ("killed", "memory ran out"),
        ("silent", "no sign of life"),
        ("hang", "hung"),
        ("lose", "lost or came out of order"),
    ],
)
def test_a_run_that_fails_ends_with_a_sentence_and_the_next_one_works(
    open_source: Open, part: str, sentence: str
) -> None:
    source = _ready(open_source())
    sink = _run(source, part)
    end = sink.end
    assert (end["k"], end["seq"], end["reason"]) == ("end", None, "error")
    assert sentence in end["message"]
    assert sink.n_tokens() == 5  # nothing that had come was lost
    assert _ordinals(sink) == list(range(len(sink.got) - 1))
    assert end["t"] == sink.got[-2]["t"]
    failed_s = time.monotonic()
    assert _run(_ready(source), "say").end["reason"] == "length"
    assert time.monotonic() - failed_s < 5.0


@pytest.mark.parametrize("part", ["garbage", "huge"])
def test_lines_that_are_none_of_the_protocols_are_passed_over(open_source: Open, part: str) -> None:
    sink = _run(_ready(open_source()), part)
    assert sink.end["reason"] == "length" and sink.n_tokens() == 10


def test_a_refused_run_has_a_reason_and_no_trace(open_source: Open) -> None:
    source = _ready(open_source())
    sink = _run(source, "refuse")
    assert sink.closed.wait(5) and sink.problem == "The prompt is empty." and not sink.got
    assert source.status()[0].message == "The prompt is empty."
    assert _run(_ready(source), "say").end["reason"] == "length"
    assert source.status()[0].message is None


def test_a_worker_that_dies_before_the_first_line_gives_the_reason(open_source: Open) -> None:
    sink = _run(_ready(open_source()), "die-early")
    assert sink.closed.wait(5) and "exit code 3" in (sink.problem or "") and not sink.got


def test_a_run_that_the_worker_leaves_open_is_closed(open_source: Open) -> None:
    source = _ready(open_source())
    sink = _run(source, "unclosed")
    assert (sink.end["reason"], sink.end["n"]) == ("error", 2)
    assert _run(_ready(source), "say").end["reason"] == "length"


def test_a_workers_last_word_is_not_lost(open_source: Open) -> None:
    source = open_source("no-device", pauses_s=(0.0, 0.0, 60.0))
    _wait(lambda: "There is no such device. It is started again" in (source.status()[0].message or ""))


def test_cancel_ends_the_run_and_a_second_run_waits_its_turn(open_source: Open) -> None:
    source = _ready(open_source())
    sink = _run(source, "say 0.01", 10_000)
    _wait(lambda: sink.n_tokens() > 3)
    with pytest.raises(ValueError, match="busy"):
        _run(source, "say")
    source.cancel()
    assert sink.end["reason"] == "cancelled"
    assert _run(source, "say").end["reason"] == "length"


def test_a_worker_that_ignores_cancel_is_ended(open_source: Open) -> None:
    source = _ready(open_source())
    sink = _run(source, "deaf-to-cancel")
    _wait(lambda: sink.n_tokens() == 5)
    source.cancel()
    assert "did not stop" in sink.end["message"]


def test_a_flood_of_lines_comes_through_whole(open_source: Open) -> None:
    sink = _run(_ready(open_source()), "say", 5_000)
    assert sink.end["reason"] == "length" and sink.n_tokens() == 5_000


def test_without_packages_it_says_what_is_missing_until_they_come(open_source: Open) -> None:
    sentence: list[str | None] = ["PyTorch is not installed here."]
    source = open_source(missing=lambda: sentence[0])
    _wait(lambda: source.status()[0].state == "failed")
    assert source.status()[0].message == sentence[0]
    with pytest.raises(ValueError, match="PyTorch is not installed"):
        _run(source, "say")
    sentence[0] = None
    source.look_again()
    assert _run(_ready(source), "say").end["reason"] == "length"


def test_a_worker_with_a_problem_is_started_anew_when_packages_have_come(open_source: Open) -> None:
    source = open_source("broken")
    _wait(lambda: source.status()[1] is not None)
    first = source.status()[1]
    source.look_again()
    _wait(lambda: source.status()[1] not in (None, first))
    assert first is not None and not psutil.pid_exists(first.pid)


def test_the_worker_ends_by_itself_when_this_process_is_killed() -> None:
    code = f"""
import sys, time
from sources.live import LiveSource
source = LiveSource([sys.executable, {SCRIPT!r}, ""], missing=lambda: None)
source.open()
while source.status()[1] is None:
    time.sleep(0.01)
print(source.status()[1].pid, flush=True)
time.sleep(60)
"""
    root = Path(__file__).parent.parent.parent
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        worker = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
    psutil.wait_procs([worker], timeout=8)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE  # nobody may be there to reap it


def test_a_stillborn_worker_is_not_started_in_a_spin(open_source: Open) -> None:
    source = open_source("stillborn", pauses_s=(0.0, 0.0, 60.0))
    _wait(lambda: source.status()[0].state == "failed")
    message = source.status()[0].message or ""
    assert "exit code 1" in message and "60 s" in message


def test_a_command_that_cannot_be_started_is_a_sentence() -> None:
    source = LiveSource(["/nowhere/worker"], missing=lambda: None, pauses_s=(0.0, 0.0, 60.0), tick_s=0.02)
    source.open()
    _wait(lambda: source.status()[0].state == "failed")
    assert "could not be started" in (source.status()[0].message or "")
    source.close()


def test_a_worker_that_never_says_hello_is_replaced(open_source: Open) -> None:
    source = open_source("deaf", limits=Limits(hello_s=0.2), pauses_s=(0.0, 0.0, 60.0))
    _wait(lambda: "no progress" in (source.status()[0].message or ""))


def test_a_problem_named_in_hello_is_shown(open_source: Open) -> None:
    source = open_source("broken")
    _wait(lambda: source.status()[0].state == "failed")
    with pytest.raises(ValueError, match="does not work here"):
        _run(source, "say")


@pytest.mark.parametrize("part", ["", "clinging"])
def test_close_leaves_no_process_and_no_thread_and_ends_the_run(open_source: Open, part: str) -> None:
    before = set(threading.enumerate())
    source = open_source(part, close_patience_s=0.3)
    sink = _run(_ready(source), "say 0.01", 10_000)
    _wait(lambda: sink.n_tokens() > 0)
    hello = source.status()[1]
    assert hello is not None
    source.close()
    assert sink.end["message"] == "The server was stopped while this run went on."
    assert not psutil.pid_exists(hello.pid)
    assert set(threading.enumerate()) == before
