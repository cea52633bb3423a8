"""The life of a run: one at a time on the machine, started by one person, watched by all, kept as a file.

A source (``sources/``, handed over by app.py) makes a run's lines in a thread of its own and gives them to the run's
sink. Each line goes to the file first and to the viewers second, so whatever a viewer has seen can be replayed, also
after a crash. Nobody's presence keeps a run alive and nobody's leaving stops it: only its key, or a person at this
machine, does. There is no queue of waiting runs; who comes second is told whose run to watch. A simulation needs no
machine: it goes the same way, lines to the file and to the hub, but at once and whoever runs what.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from hmac import compare_digest
from typing import BinaryIO, Protocol

from server.hub import Hub
from server.status import Busy, Recording, SourceReport, Started
from server.store import SIMULATED, Store
from sim.scenario import Scenario
from telemetry.protocol import RunRequest
from telemetry.trace import TraceWriter

FIRST_LINE_WAIT_S = 2.0  # how long the starter waits to hear of a refusal; a run that loads first takes longer

_log = logging.getLogger(__name__)


class Sink(Protocol):
    """Where a source puts a run's lines, from one thread."""

    def line(self, text: str) -> None:
        """The trace's next whole line without its line end: the header, then events whose n counts 0, 1, 2, …"""

    def close(self, problem: str | None = None) -> None:
        """Nothing more comes. ``problem`` is the sentence when the run was refused and no line ever came."""


class Source(Protocol):
    """Something that makes a trace grow. All methods return at once and may be called from any thread."""

    def status(self) -> SourceReport: ...

    def start(self, run_id: str, request: RunRequest, sink: Sink) -> None:
        """Begin. Raises ValueError with a sentence when it is not ready; then the sink is never called."""

    def cancel(self) -> None:
        """Ask the present run to end soon; its end comes through the sink."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called, from any thread, whenever ``status`` has changed."""

    def close(self) -> None:
        """End everything that belongs to this source, a run in progress included."""


class Simulator(Protocol):
    """Something that computes a run instead of measuring one."""

    def start(self, run_id: str, scenario: Scenario, sink: Sink) -> None:
        """Write the whole run before returning. Raises ValueError with a sentence; then the sink is never called."""


class _GrowingRun:
    """The sink of a run that goes on now."""

    def __init__(self, runs: Runs, run_id: str, cancel: Callable[[], None]) -> None:
        self.id = run_id
        self.cancel = cancel
        self.problem: str | None = None
        self.lost: str | None = None  # why the file could not be written
        self.began = threading.Event()  # the first line or a refusal has come
        self._runs = runs
        self._channel = runs.hub.open(run_id)
        self._file: TraceWriter | None = None
        self._recording = True

    def line(self, text: str) -> None:
        if self._recording:
            self._record(text)
        self._channel.append(text)
        self.began.set()

    def close(self, problem: str | None = None) -> None:
        self.problem = problem
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:  # a full disk refuses the rest once more; the run is over all the same
                self._lose(error)
        self._runs.over(self)
        self._channel.end(problem)
        self.began.set()

    def _record(self, text: str) -> None:
        try:
            if self._file is None:
                self._file = self._runs.store.create(self.id)
            self._file.write_line(text)
        except OSError as error:
            self._recording = False
            self._lose(error)
            self.cancel()

    def _lose(self, error: OSError) -> None:
        self.lost = self._runs.problem = (
            f"The run's recording could not be written, so it ends early: {error.strerror}."
        )
        _log.error("run %s: %s", self.id, self.lost)


class Runs:
    """All runs of this server: the one that goes on and those kept in ``store``. Used from any thread."""

    def __init__(self, store: Store, hub: Hub, changed: Callable[[], None]) -> None:
        self.store = store
        self.hub = hub
        self.problem: str | None = None  # a sentence about the last run's file, until the next run starts
        self._changed = changed
        self._lock = threading.Lock()
        self._live: _GrowingRun | None = None
        self._keys: dict[str, str] = {}

    @property
    def busy_run_id(self) -> str | None:
        live = self._live
        return live.id if live else None

    def start(self, source: Source, request: RunRequest) -> Started:
        """Begin a run on ``source``. Raises Busy, or ValueError with the sentence of a refusal."""
        run = self._claim(source)
        try:
            source.start(run.id, request, run)
        except ValueError as refusal:
            run.close(str(refusal))
            raise
        run.began.wait(FIRST_LINE_WAIT_S)
        if run.problem is not None:
            raise ValueError(run.problem)
        return Started(run.id, self._keys[run.id])

    def simulate(self, simulator: Simulator, scenario: Scenario) -> Started:
        """Make a simulated run; it is over when this returns. Raises ValueError with the sentence of a refusal."""
        run = _GrowingRun(self, _new_run_id(SIMULATED), cancel=lambda: None)
        kept = self.store.prune(self.busy_run_id)
        try:
            simulator.start(run.id, scenario, run)
        except ValueError as refusal:
            run.close(str(refusal))
            raise
        if run.lost is not None:
            raise ValueError(run.lost)
        return Started(run.id, self._new_key(run.id, kept))

    def cancel(self, run_id: str, key: str | None, loopback: bool = False) -> None:
        """Ask the run to end. Raises ValueError without its key, LookupError when it does not go on any more."""
        self._demand_key(run_id, key, loopback, "stop")
        live = self._live
        if live is None or live.id != run_id:
            raise LookupError("This run is over already.")
        live.cancel()

    def delete(self, run_id: str, key: str | None, loopback: bool = False) -> None:
        """Remove a run's file. Raises ValueError without its key or while it goes on, LookupError if unknown."""
        self._demand_key(run_id, key, loopback, "delete")
        if run_id == self.busy_run_id:
            raise ValueError("This run still goes on; stop it before deleting it.")
        self.store.delete(run_id)
        self._keys.pop(run_id, None)
        self._changed()

    def recordings(self) -> tuple[Recording, ...]:
        """Shipped recordings first, then those of this machine, newest first."""
        return self.store.recordings(self.busy_run_id)

    def add(self, shown_name: str, stream: BinaryIO) -> Recording:
        """Keep an uploaded trace. Raises ValueError with a sentence when it is not one."""
        recording = self.store.add(shown_name, stream)
        self.store.prune(self.busy_run_id)
        self._changed()
        return recording

    def over(self, run: _GrowingRun) -> None:
        """The run's sink says that nothing more comes."""
        with self._lock:
            if self._live is run:
                self._live = None
        self.hub.forget(run.id)
        self._changed()

    def _claim(self, source: Source) -> _GrowingRun:
        with self._lock:
            if self._live is not None:
                raise Busy(self._live.id)
            run = self._live = _GrowingRun(self, _new_run_id(), source.cancel)
            self.problem = None
            kept = self.store.prune()
        self._new_key(run.id, kept)
        self._changed()
        return run

    def _new_key(self, run_id: str, kept: frozenset[str]) -> str:
        """The key of a run that begins; keys of runs that are gone are forgotten."""
        with self._lock:
            live = self._live.id if self._live else None
            self._keys = {known: key for known, key in self._keys.items() if known in kept or known == live}
            return self._keys.setdefault(run_id, secrets.token_urlsafe(16))

    def _demand_key(self, run_id: str, key: str | None, loopback: bool, verb: str) -> None:
        known = self._keys.get(run_id)
        if not loopback and (known is None or key is None or not compare_digest(known.encode(), key.encode())):
            raise ValueError(f"Only the browser that started this run, or one on this machine, can {verb} it.")


def _new_run_id(ending: str = "") -> str:
    """Sorts by time, is a safe file name everywhere, and cannot be guessed into a collision."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}{ending}"
