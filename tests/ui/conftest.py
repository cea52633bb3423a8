"""The page's script without a browser: Streamlit's own test harness, a real server, a source that plays a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import server
from server import Server
from server.hub import Bell, Hub
from server.runs import Runs, Sink
from server.store import Store
from sources.simulated import SimulatedSource
from telemetry.protocol import Hello, ModelOffer, PrecisionOffer, Progress, RunRequest, State
from ui.selection import OPENING

ROOT = Path(__file__).resolve().parent.parent.parent
READY = State(
    "ready",
    model="small",
    precision="fp32",
    device="AMD EPYC",
    device_kind="cpu",
    precisions=(
        PrecisionOffer("fp32", True, "fp32: full"),
        PrecisionOffer("int4", True, "int4: bf16 prefill, 4-bit decode"),
        PrecisionOffer("int8", False, "int8", reason="A decode step is slower than in bf16 here."),
    ),
    default_precision="fp32",
)


@dataclass
class ScriptedSource:
    """A source that says what the test wants and keeps what it was asked."""

    state: State = READY
    requests: list[RunRequest] = field(default_factory=list)
    cancelled: int = 0
    refusal: str | None = None
    header_line: str = ""
    sink: Sink | None = None

    def status(self) -> tuple[State, Hello | None, Progress | None]:
        return self.state, Hello(1, ("cpu",), (ModelOffer("small", "A small model", 1, "embedded"),), "2"), None

    def start(self, run_id: str, request: RunRequest, sink: Sink) -> None:
        if self.refusal:
            raise ValueError(self.refusal)
        self.requests.append(request)
        self.sink = sink
        sink.line(self.header_line)

    def cancel(self) -> None:
        self.cancelled += 1

    def on_change(self, callback: Callable[[], None]) -> None:
        pass

    def close(self) -> None:
        if self.sink is not None:
            self.sink.close()


@pytest.fixture
def source(trace_text: Callable[..., str]) -> ScriptedSource:
    return ScriptedSource(header_line=trace_text().splitlines()[0])


@pytest.fixture
def desk(tmp_path: Path, source: ScriptedSource, trace_text: Callable[..., str]) -> Iterator[Server]:
    """An installed server with one shipped recording, named as the opening one is."""
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / f"{OPENING}.jsonl").write_text(trace_text())
    loop = asyncio.new_event_loop()  # nobody watches over a websocket here, so it never has to turn
    bell = Bell(loop)
    runs = Runs(Store(tmp_path / "runs", shipped), Hub(loop), bell.ring)
    desk = Server(runs, {"live": source}, bell, simulator=SimulatedSource())
    server.install(desk)
    yield desk
    source.close()
    server.install(None)
    loop.close()


@pytest.fixture
def app(desk: Server) -> AppTest:
    return AppTest.from_file(str(ROOT / "ui" / "main.py"), default_timeout=20)
