"""A real server on a free port, in a thread of the test's process, with a source that the test plays by hand."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

import server
from server import Server
from server.access import Access, allowed_names
from server.hub import Bell, Hub
from server.routes import routes
from server.runs import Runs, Sink
from server.store import Store
from telemetry.events import Body, End, Event, Header, Request, Token, encode_event, encode_header
from telemetry.protocol import Hello, Progress, RunRequest, State


class HandPlayedSource:
    """A source whose lines come when the test says so."""

    def __init__(self) -> None:
        self.state = State("ready", "played", "fp32", "cpu")
        self.sink: Sink | None = None
        self.run_id = ""
        self.n = 0
        self.cancelled = False
        self.refusal: str | None = None
        self._callbacks: list[Callable[[], None]] = []

    def status(self) -> tuple[State, Hello | None, Progress | None]:
        return self.state, None, None

    def start(self, run_id: str, request: RunRequest, sink: Sink) -> None:
        if self.state.state != "ready":
            raise ValueError("The model is still being loaded.")
        if self.refusal:
            sink.close(self.refusal)
            return
        self.sink, self.run_id, self.n, self.cancelled = sink, run_id, 0, False
        header = Header(run_id, "2026-01-02T03:04:05+00:00", "live", {"name": "played"}, "fp32")
        sink.line(encode_header(header))
        self.say(Request(0, 3, request.max_new_tokens))

    def say(self, body: Body) -> None:
        assert self.sink is not None
        self.sink.line(encode_event(Event(self.n, self.n / 100, body)))
        self.n += 1

    def tokens(self, count: int) -> None:
        for _ in range(count):
            self.say(Token(0, self.n, self.n, f" w{self.n}"))

    def end(self) -> None:
        assert self.sink is not None
        self.say(End(None, "length", totals={"n_new_tokens": self.n}))
        self.sink.close()
        self.sink = None

    def cancel(self) -> None:
        self.cancelled = True

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def become(self, state: State) -> None:
        self.state = state
        for callback in self._callbacks:
            callback()

    def close(self) -> None:
        if self.sink is not None:
            self.sink.close()


class Site:
    """The running server and what a test wants to look at."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "runs", folder / "shipped")
        self.source = HandPlayedSource()
        self.loop: asyncio.AbstractEventLoop
        self.desk: Server
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ws = f"ws://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.loop = asyncio.get_running_loop()
        bell = Bell(self.loop)
        self.desk = Server(Runs(self.store, Hub(self.loop), bell.ring), {"live": self.source}, bell)
        server.install(self.desk)
        yield
        self.source.close()
        server.install(None)

    def start(self, prompt: str = "hello") -> server.Started:
        return self.desk.start("live", RunRequest(prompt=prompt))

    def tasks(self) -> int:
        async def count() -> int:
            return len(asyncio.all_tasks())

        return asyncio.run_coroutine_threadsafe(count(), self.loop).result(5)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _running(folder: Path) -> Iterator[Site]:
    site = Site(folder)
    app = Starlette(
        routes=routes(),
        lifespan=site.lifespan,
        middleware=[Middleware(Access, allowed_names("localhost", "lab.example"))],
    )
    config = uvicorn.Config(
        app, "127.0.0.1", site.port, log_level="warning", ws="websockets-sansio", timeout_graceful_shutdown=2
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, name="site")
    thread.start()
    wait_for(lambda: running.started)
    yield site
    running.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server of the test's own."""
    with _running(tmp_path) as site:
        yield site


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for a module's tests, which leave nothing on it."""
    with _running(tmp_path_factory.mktemp("site")) as site:
        yield site


def wait_for(until: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
