"""The worker as a real process with the embedded model: what it says, what stops it, what cannot tear its stream."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.catalog import embedded_model
from telemetry.protocol import Cancel, Command, Load, Run, RunRequest, Unload, encode_command

pytestmark = pytest.mark.engine
ROOT = Path(__file__).parents[2]
WAIT_S = 60.0


class Worker:
    """One process; ``until`` reads lines as they come."""

    def __init__(self, cache: Path, *arguments: str, code: str | None = None) -> None:
        program = ["-c", code] if code else ["-m", "engine.worker"]
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "SILICONSCOPE_CACHE": str(cache), "SILICONSCOPE_THREADS": "1"},
        )
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.stderr = b""
        self._threads = [threading.Thread(target=t) for t in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.stderr = self.process.stderr.read()

    def send(self, command: Command) -> None:
        self.send_line(encode_command(command))

    def send_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def until(self, **wanted: Any) -> list[dict[str, Any]]:
        """All lines up to and with the first that has these values."""
        seen: list[dict[str, Any]] = []
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            line = self.lines.get(timeout=WAIT_S)
            assert line is not None, f"it ended after {seen[-3:]}: {self.stderr[-2000:]!r}"
            seen.append(line)
            if all(line.get(k, ...) == v for k, v in wanted.items()):
                return seen
        raise AssertionError(f"no {wanted} among {seen[-5:]}")

    def run(self, request: RunRequest, run_id: str = "r") -> list[dict[str, Any]]:
        """A run's own lines, header first."""
        self.send(Run(run_id, request))
        lines = self.until(k="end", seq=None)
        self.until(k="state", state="ready")
        return [x for x in lines if "format" in x or "n" in x]

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(WAIT_S)
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code


@pytest.fixture(scope="module")
def worker(cache: Path) -> Iterator[Worker]:
    """Loaded and ready; a test that ends it starts its own."""
    worker = Worker(cache, "--device", "cpu")
    worker.send(Load())
    worker.until(k="state", state="ready")
    yield worker
    assert worker.close() == 0


def text_of(lines: list[dict[str, Any]]) -> str:
    return "".join(x["text"] for x in lines if x.get("k") == "token")


def test_a_run_of_the_embedded_model(worker: Worker) -> None:
    lines = worker.run(RunRequest(prompt="What is the capital of France?", max_new_tokens=8))
    header, events = lines[0], lines[1:]
    assert header["precision"] == "fp32"
    assert header["ceilings"]["memory"]["label"] == "put here by a test"
    assert [x["n"] for x in events] == list(range(len(events)))
    assert "Paris" in text_of(lines)
    assert "<|im_end|>" not in text_of(lines)
    assert "<|im_start|>" in events[0]["pieces"]


def test_the_same_request_says_the_same_again(worker: Worker) -> None:
    request = RunRequest(prompt="Count to five.", max_new_tokens=6, temperature=0.8, top_p=0.9, seed=11)
    assert text_of(worker.run(request)) == text_of(worker.run(request)) != ""


def test_a_filler_prompt_has_exactly_its_tokens_and_says_so(worker: Worker) -> None:
    lines = worker.run(RunRequest(prompt_tokens=300, max_new_tokens=2))
    assert lines[1]["n_prompt_tokens"] == 300
    steps = [x["rows"][0] for x in lines if x.get("k") == "step"]
    assert [r[1] for r in steps if r[3] == "prefill"] == [256, 44]
    assert any("Synthetic prompt" in x["text"] for x in lines if x.get("k") == "note")


def test_cancel_takes_effect_within_one_step(worker: Worker) -> None:
    worker.send(Run("long", RunRequest(prompt="Tell me a long story.", max_new_tokens=2000, ignore_eos=True)))
    worker.until(k="token")
    worker.send(Cancel())
    lines = worker.until(k="end", seq=None)
    worker.until(k="state", state="ready")
    assert lines[-1]["reason"] == "cancelled"
    assert len([x for x in lines if x.get("k") == "token"]) < 500
    assert text_of(worker.run(RunRequest(prompt="Say hi.", max_new_tokens=3))) != ""


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (RunRequest(prompt="   "), "The prompt is empty"),
        (RunRequest(prompt="word " * 9000), "this model's context here holds 8,192"),
        (RunRequest(prompt="Hi", max_new_tokens=0), "At least one new token"),
        (RunRequest(prompt="Hi", model="../../etc/passwd"), "There is no model of that name"),
        (RunRequest(prompt="Hi", precision="bf16"), "bf16 is not offered here. Slower than fp32"),
    ],
)
def test_what_cannot_run_is_refused_in_a_sentence_and_the_worker_is_ready_again(
    worker: Worker, request_: RunRequest, says: str
) -> None:
    worker.send(Run("refused", request_))
    lines = worker.until(k="refused")
    assert says in lines[-1]["message"]
    after = worker.until(k="state")
    assert after[-1]["state"] == "ready"
    assert not any("format" in x for x in lines + after)


def test_a_line_that_is_no_command_is_refused_and_nothing_breaks(worker: Worker) -> None:
    for line in (
        "{",
        "[]",
        "3",
        '{"cmd": "format disk"}',
        '{"cmd": "run"}',
        "\udce4".encode("utf-8", "replace").decode(),
    ):
        worker.send_line(line)
        assert worker.until(k="refused")[-1]["message"]
    assert text_of(worker.run(RunRequest(prompt="Say hi.", max_new_tokens=3))) != ""


def test_it_beats_beside_its_work(worker: Worker) -> None:
    beat = worker.until(k="beat")[-1]
    assert beat["doing"] and beat["since_s"] >= 0


def test_unload_lets_go_and_a_run_loads_again(worker: Worker) -> None:
    worker.send(Unload())
    assert worker.until(k="state")[-1]["state"] == "idle"
    assert text_of(worker.run(RunRequest(prompt="Say hi.", max_new_tokens=2))) != ""


def test_a_model_that_cannot_be_loaded_is_told_and_bars_no_other(cache: Path, tmp_path: Path) -> None:
    whole = embedded_model()
    assert whole is not None
    with whole.open("rb") as file:
        (tmp_path / "torn.gguf").write_bytes(file.read(2_000_000))  # all of its header, not all of its tensors
    worker = Worker(cache, "--device", "cpu", "--model", str(tmp_path / "torn.gguf"))
    try:
        torn, other = (model["name"] for model in worker.until(k="hello")[-1]["models"])
        worker.send(Load())
        assert "torn.gguf is cut short" in worker.until(k="state", state="failed")[-1]["message"]
        assert text_of(worker.run(RunRequest(model=other, prompt="Say hi.", max_new_tokens=2))) != ""
        worker.send(Run("again", RunRequest(model=torn, prompt="Say hi.", max_new_tokens=2)))
        assert "torn.gguf is cut short" in worker.until(k="refused")[-1]["message"]
        assert "torn.gguf is cut short" in worker.until(k="state", state="failed")[-1]["message"]
    finally:
        assert worker.close() == 0


def test_hello_comes_first_without_torch_and_the_end_of_stdin_ends_it(cache: Path) -> None:
    worker = Worker(cache, "--model", "/nowhere/some.gguf")
    hello = worker.until(k="hello")
    assert len(hello) == 1
    assert hello[0]["torch_version"] and hello[0]["pid"] == worker.process.pid
    assert [m["path_kind"] for m in hello[0]["models"]] == ["embedded"]
    assert worker.close() == 0
    assert b"some.gguf is not a model" in worker.stderr


def test_the_end_of_stdin_ends_a_run_under_way(cache: Path) -> None:
    worker = Worker(cache, "--device", "cpu")
    worker.send(Run("long", RunRequest(prompt="Tell me a story.", max_new_tokens=4000, ignore_eos=True)))
    worker.until(k="token")
    begun = time.monotonic()
    assert worker.close() == 0
    assert time.monotonic() - begun < 20


NOISY = """
import os, sys
import engine.session as session
class Noisy(session.Session):
    def run(self, *given, **named):
        print("a library's print")
        os.write(1, b"a C library's print, without a line end")
        assert sys.stdin.read() == ""
        return super().run(*given, **named)
session.Session = Noisy
from engine.worker import main
sys.exit(main(["--device", "cpu"]))
"""


def test_no_print_can_tear_the_stream(cache: Path) -> None:
    worker = Worker(cache, code=NOISY)
    lines = worker.run(RunRequest(prompt="Say hi.", max_new_tokens=2))
    assert lines[-1]["reason"] == "length"
    worker.close()
    assert b"a library's print" in worker.stderr and b"a C library's print" in worker.stderr


def test_a_model_that_cannot_be_read_is_one_sentence_and_the_embedded_one_still_runs(
    cache: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\xff" * 64)
    worker = Worker(cache, "--device", "cpu", "--model", str(broken))
    name = worker.until(k="hello")[0]["models"][1]["name"]
    worker.send(Load())
    refused = worker.until(k="refused")[-1]["message"]
    assert str(tmp_path) not in refused and "\n" not in refused
    assert text_of(worker.run(RunRequest(model=name, prompt="Say hi.", max_new_tokens=2))) != ""
    assert worker.close() == 0
