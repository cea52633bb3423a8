"""Runs on this machine: owns the worker process, gives its lines to the run's sink, and starts it anew when it fails.

The engine lives in a process of its own, so that it can be killed: a run that dies, runs out of memory or hangs ends
with a sentence, and the next one finds a fresh worker. Two threads do it. ``live-engine`` starts the worker, reads its
lines until the end, closes the run that was under way and begins again; it alone calls the sink. ``live-watch`` looks
at the clock (``watch.py``) and only ever kills. A worker that dies soon after its start is started again after growing
pauses, so a broken installation does not spin. Which model runs in which way is the worker's own business.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sources.growing import GrowingTrace, Sink
from sources.process import WorkerProcess
from sources.watch import Limits, Watch
from telemetry.events import parse_json
from telemetry.protocol import (
    Beat,
    Cancel,
    Command,
    Hello,
    Load,
    Message,
    Progress,
    Refused,
    Run,
    RunRequest,
    State,
    WorkerState,
    decode_message,
    encode_command,
)

WORKER = (sys.executable, "-P", "-m", "engine.worker")
SETTLED: frozenset[WorkerState] = frozenset({"idle", "ready", "failed"})  # no run goes on in these
SETTLED_S = 5.0  # a worker that lived this long was not stillborn
PAUSES_S = (0.0, 1.0, 5.0, 30.0)  # before the next start, by how many in a row were stillborn
TURNOVER_WAIT_S = 2.0  # between a run's last line and the worker's word that it is ready again
STOPPED = "The server was stopped while this run went on."

_log = logging.getLogger(__name__)


def missing_packages() -> str | None:
    """What this Python lacks for live runs, in one sentence; None when it can run them. Imports nothing."""
    importlib.invalidate_caches()
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed here, so recordings play but nothing can run on this machine yet."
    return None


class LiveSource:
    """The source for this machine. ``open`` starts it, ``close`` ends its process and threads for certain."""

    def __init__(
        self,
        command: Sequence[str] = WORKER,
        *,
        missing: Callable[[], str | None] = missing_packages,
        limits: Limits | None = None,
        pauses_s: Sequence[float] = PAUSES_S,
        tick_s: float = 0.25,
        close_patience_s: float = 3.0,
    ) -> None:
        self._command = tuple(command)
        self._missing = missing
        self._limits = limits or Limits()
        self._pauses_s = tuple(pauses_s)
        self._tick_s = tick_s
        self._close_patience_s = close_patience_s
        self._changed = threading.Condition()
        self._callbacks: list[Callable[[], None]] = []
        self._state = State("starting")
        self._hello: Hello | None = None
        self._progress: Progress | None = None
        self._refusal: str | None = None
        self._wanted = Load()
        self._run: GrowingTrace | None = None
        self._process: WorkerProcess | None = None
        self._watch = Watch(self._limits, time.monotonic())
        self._verdict: str | None = None
        self._stillborn = 0
        self._closing = threading.Event()
        self._look = threading.Event()
        self._threads = [
            threading.Thread(target=self._supervise, name="live-engine", daemon=True),
            threading.Thread(target=self._keep_watch, name="live-watch", daemon=True),
        ]

    def open(self) -> None:
        """Start the worker in the background; its default model loads at once."""
        for thread in self._threads:
            thread.start()

    def look_again(self) -> None:
        """Packages may have come: start the worker if it could not be started or could not run before."""
        with self._changed:
            process = self._process if self._hello is not None and self._hello.problem else None
        if process is not None:
            self._condemn("The engine is being started anew, since packages have come.", process)
        self._look.set()

    def status(self) -> tuple[State, Hello | None, Progress | None]:
        """The engine's state with the sentence that goes with it, its greeting, and what it is busy with."""
        with self._changed:
            state = self._state
            if state.message is None and self._refusal is not None:
                state = replace(state, message=self._refusal)
            return state, self._hello, self._progress

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def start(self, run_id: str, request: RunRequest, sink: Sink) -> None:
        """Hand the run to the worker. Raises ValueError with a sentence when it is not ready; waits 2 s at most."""
        run = GrowingTrace(sink)
        with self._changed:
            if self._run is None:
                self._changed.wait_for(lambda: self._state.state != "running", TURNOVER_WAIT_S)
            process = self._process
            if process is None or self._run is not None or not self._can_take():
                raise ValueError(self._not_ready())
            self._run = run
            self._refusal = None
            self._set_state(replace(self._state, state="running", message=None))
        self._tell_changed()
        if not self._send(process, Run(run_id, request)):
            with self._changed:
                mine = self._run is run
                self._run = None if mine else self._run
            if mine:  # else the sink was closed meanwhile, with the reason
                raise ValueError("The engine has just ended; it is being started anew. Try again in a moment.")

    def cancel(self) -> None:
        """Ask the run under way to stop; a worker that does not is ended by the watch."""
        with self._changed:
            process = self._process if self._run is not None else None
            if process is not None:
                self._watch.cancelled(time.monotonic())
        if process is not None:
            self._send(process, Cancel())

    def close(self) -> None:
        """End the worker (asked first, then killed), the run under way and both threads. Returns when all are gone."""
        self._closing.set()
        self._look.set()
        with self._changed:
            process = self._process
        if process is not None:
            process.close(self._close_patience_s)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    # live-engine: one worker after the other

    def _supervise(self) -> None:
        while not self._closing.is_set():
            self._look.clear()
            if self._closing.is_set():  # set before the clear: nobody would wake the wait below
                return
            sentence = self._missing()
            if sentence is not None:
                self._fail(sentence)
                self._look.wait()
                continue
            born_s = time.monotonic()
            try:
                self._live_once()
            except OSError as error:
                self._after_end(f"The engine could not be started: {error.strerror or error}.")
            except Exception:  # the thread's edge: whatever it was, the run ends and the next worker starts
                _log.exception("the live source failed")
                self._after_end("The engine's output could not be handled; the terminal has the details.")
            self._pause(time.monotonic() - born_s)

    def _live_once(self) -> None:
        process = WorkerProcess(self._command)
        try:
            with self._changed:
                self._process = process
                self._verdict = None
                self._hello = self._progress = None
                self._watch = Watch(self._limits, time.monotonic())
                self._set_state(State("starting"))
            self._tell_changed()
            if self._closing.is_set():
                process.close(0)
            for line in process.lines():
                self._take(line, process)
        finally:
            with self._changed:
                self._process = None
            process.kill()
            code = process.finish()
        own = self._state.message if self._state.state == "failed" else None  # its last word, if it had one
        self._after_end(self._verdict or own or _ending(code))

    def _after_end(self, sentence: str) -> None:
        """The worker is gone: end its run, whose trace keeps all that came, and say what happened."""
        if self._closing.is_set():
            sentence = STOPPED
        with self._changed:
            run, self._run = self._run, None
            self._set_state(State("starting", message=sentence))
            self._progress = None
        if run is not None:
            run.break_off(sentence)
        self._tell_changed()

    def _pause(self, lived_s: float) -> None:
        self._stillborn = 0 if lived_s >= SETTLED_S else self._stillborn + 1
        pause_s = self._pauses_s[min(self._stillborn, len(self._pauses_s) - 1)]
        if self._stillborn >= 2 and not self._closing.is_set():
            self._fail(f"{self._state.message} It is started again in {pause_s:.0f} s.")
        if pause_s:
            self._look.wait(pause_s)

    # live-engine: one line after the other

    def _take(self, line: bytes, process: WorkerProcess) -> None:
        try:
            text = line.decode().rstrip("\r\n")
            payload = parse_json(text)
            message = decode_message(payload) if isinstance(payload, dict) else None
        except ValueError:
            _log.warning("the engine wrote a line that is none of the protocol's: %.200r", line)
            return
        if message is not None:
            self._hear(message, process)
        elif isinstance(payload, dict) and self._run is not None:
            self._extend(self._run, payload, text, process)

    def _extend(self, run: GrowingTrace, payload: dict[str, Any], text: str, process: WorkerProcess) -> None:
        if self._verdict:
            return
        try:
            over = run.take(payload, text)
        except ValueError as disorder:
            self._condemn(str(disorder), process)
            return
        if over:
            with self._changed:
                self._run = None
                self._changed.notify_all()
            run.close()

    def _hear(self, message: Message, process: WorkerProcess) -> None:
        left: GrowingTrace | None = None
        sentence: str | None = None
        with self._changed:
            self._watch.hear(message, time.monotonic())
            match message:
                case Hello(problem=problem):
                    self._hello = message
                    if problem:
                        self._set_state(State("failed", message=problem))
                case State():
                    left, sentence = self._enter(message), message.message
                case Progress():
                    self._progress = message
                case Refused():
                    self._refusal = sentence = message.message
                    left = self._drop_run(began=False)
        if left is not None:
            left.break_off(sentence or "The engine left the run without closing its trace.")
        if isinstance(message, Hello) and not message.problem:
            self._send(process, self._wanted)
        if not isinstance(message, Beat):
            self._tell_changed()

    def _enter(self, state: State) -> GrowingTrace | None:
        """The worker's new state; the run that it left open with it, if any."""
        self._set_state(state)
        self._progress = None
        if state.state == "ready" and state.model is not None:
            self._wanted = Load(state.model, state.precision)
        return self._drop_run(began=True) if state.state in SETTLED else None

    def _drop_run(self, began: bool) -> GrowingTrace | None:
        run = self._run
        if run is None or run.began is not began:
            return None
        self._run = None
        if self._state.state == "running":
            self._set_state(replace(self._state, state="ready"))
        return run

    # live-watch

    def _keep_watch(self) -> None:
        last_s = time.monotonic()
        while not self._closing.wait(self._tick_s):
            now_s = time.monotonic()
            with self._changed:
                if now_s - last_s > self._tick_s + 1.0:
                    self._watch.slept(now_s)
                process, sentence = self._process, self._watch.verdict(now_s)
            last_s = now_s
            if process is not None and sentence is not None:
                self._condemn(sentence, process)

    # shared

    def _condemn(self, sentence: str, process: WorkerProcess) -> None:
        with self._changed:
            if self._process is process and self._verdict is None:
                self._verdict = sentence
        process.kill()

    def _send(self, process: WorkerProcess, command: Command) -> bool:
        try:
            process.send(encode_command(command))
        except OSError:
            return False  # it has just ended; the reader notices and says so
        return True

    def _can_take(self) -> bool:
        if self._state.state == "ready":
            return True
        # A default model that failed to load must not bar the others: the worker knows what it can do.
        return self._state.state == "failed" and self._hello is not None and self._hello.problem is None

    def _not_ready(self) -> str:
        if self._state.message is not None:
            return self._state.message
        if self._run is not None or self._state.state == "running":
            return "The engine is still busy with the run before; try again in a moment."
        doing = f": {self._progress.doing}" if self._progress else ""
        return f"The engine is not ready yet ({self._state.state}{doing}); try again in a moment."

    def _fail(self, sentence: str) -> None:
        with self._changed:
            self._set_state(State("failed", message=sentence))
        self._tell_changed()

    def _set_state(self, state: State) -> None:
        self._state = state
        self._changed.notify_all()

    def _tell_changed(self) -> None:
        for callback in self._callbacks:
            callback()


def _ending(code: int) -> str:
    if code in (-signal.SIGKILL if hasattr(signal, "SIGKILL") else None, 137):
        return "The engine was ended by the system, most likely because memory ran out; it is being started anew."
    return f"The engine ended unexpectedly (exit code {code}); it is being started anew."
