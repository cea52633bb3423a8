"""The product's server with one source swapped: it repeats a recording's steps at a steady rate, for ever.

Started by bench/fanout.py as ``streamlit run bench/paced_app.py``. The lines are a shipped recording's own; only their
pace is set, so that what fan-out costs does not depend on how fast this machine runs a model.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st

import server
from server.hub import Bell, Hub
from server.routes import routes
from server.runs import Runs, Sink
from server.status import SourceReport
from server.store import Store
from telemetry.events import KIND_OF, Step
from telemetry.protocol import RunRequest, State

ROOT = Path(__file__).resolve().parent.parent
RATE_PER_S = float(os.environ.get("BENCH_EVENTS_PER_S", "50"))


class PacedSource:
    """Gives a recording's header, then its step lines over and over, ``RATE_PER_S`` of them a second."""

    def __init__(self, recording: Path) -> None:
        self._header, *events = recording.read_text(encoding="utf-8").splitlines()
        self._steps = [line for line in map(json.loads, events) if line["k"] == KIND_OF[Step]]
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def status(self) -> SourceReport:
        return State("ready"), None, None

    def start(self, run_id: str, request: RunRequest, sink: Sink) -> None:
        self._thread = threading.Thread(target=self._play, args=(run_id, sink), daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        self._stop.set()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Its state never changes."""

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _play(self, run_id: str, sink: Sink) -> None:
        sink.line(json.dumps(json.loads(self._header) | {"id": run_id}, ensure_ascii=False))
        due = time.perf_counter()
        for line in self._lines():
            due += 1 / RATE_PER_S
            if self._stop.wait(max(0.0, due - time.perf_counter())):
                break
            sink.line(line)
        sink.close()

    def _lines(self) -> Iterator[str]:
        for n, step in enumerate(itertools.cycle(self._steps)):
            yield json.dumps(step | {"n": n, "t": n / RATE_PER_S}, separators=(",", ":"))


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    bell = Bell(loop)
    store = Store(Path(os.environ["SILICONSCOPE_RUNS"]), ROOT / "assets" / "traces")
    source = PacedSource(Path(os.environ["BENCH_RECORDING"]))
    desk = server.Server(Runs(store, Hub(loop), bell.ring), {"live": source}, bell)
    server.install(desk)
    started = await asyncio.to_thread(desk.start, "live", RunRequest())
    Path(os.environ["SILICONSCOPE_RUNS"], "run-id").write_text(started.run_id, encoding="utf-8")
    try:
        yield
    finally:
        await asyncio.to_thread(source.close)
        server.install(None)


app = st.App(ROOT / "ui" / "main.py", routes=routes(), lifespan=lifespan)
