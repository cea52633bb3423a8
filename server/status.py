"""What the server tells the page: the frozen values at the seam between server and ui, and the status line.

Everything here is a snapshot; nothing holds a lock or a file. The status goes to Python callers as ``Status`` and to
the browser as one JSON object (``encode_status``), so both always say the same. How a run is started, watched and
stored is the business of ``runs.py`` and ``store.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from telemetry.protocol import Hello, ModelOffer, PrecisionOffer, Progress, State, WorkerState

SourceReport = tuple[State, Hello | None, Progress | None]
"""What a source says of itself, in the worker protocol's own words: its state, its greeting, what it is busy with."""


class Busy(ValueError):
    """The machine runs somebody's run already; ``run_id`` is the one to watch meanwhile."""

    def __init__(self, run_id: str) -> None:
        super().__init__("Somebody's run is on the machine; you can watch it.")
        self.run_id = run_id


class InstallReport(Protocol):
    """How far the background installation of the live engine is. Implemented by the installer that app.py hands over.

    ``state`` is off, absent, running, done or failed; ``share`` is 0..1 or None where unknown.
    """

    @property
    def state(self) -> str: ...
    @property
    def doing(self) -> str: ...
    @property
    def share(self) -> float | None: ...
    @property
    def bytes_done(self) -> int | None: ...
    @property
    def bytes_total(self) -> int | None: ...
    @property
    def message(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Worker:
    """The engine as the page shows it. ``message`` is the sentence that goes with failed, refused or not installed."""

    state: WorkerState
    message: str | None = None
    doing: str | None = None
    share: float | None = None
    model: str | None = None
    precision: str | None = None
    device: str | None = None
    device_kind: str | None = None
    default_precision: str | None = None
    max_context_tokens: int | None = None
    precisions: tuple[PrecisionOffer, ...] = ()
    models: tuple[ModelOffer, ...] = ()
    basis: Mapping[str, Any] | None = None  # for predictions, by the page's script

    @classmethod
    def of(cls, report: SourceReport) -> Worker:
        state, hello, progress = report
        return cls(
            state=state.state,
            message=state.message,
            doing=progress.doing if progress else None,
            share=progress.share if progress else None,
            model=state.model,
            precision=state.precision,
            device=state.device,
            device_kind=state.device_kind,
            default_precision=state.default_precision,
            max_context_tokens=state.max_context_tokens,
            precisions=state.precisions,
            models=hello.models if hello else (),
            basis=state.basis,
        )


@dataclass(frozen=True, slots=True)
class Status:
    """One instant: the installation (None where nobody installs), the engine, and who is on the machine."""

    worker: Worker
    install: InstallReport | None = None
    busy_run_id: str | None = None
    problem: str | None = None  # with the last run's file, until the next run starts

    @property
    def message(self) -> str | None:
        """The one sentence worth showing, or None when all is well."""
        if self.problem is not None:
            return self.problem
        if self.install is not None and self.install.state == "failed":
            return self.install.message
        return self.worker.message


@dataclass(frozen=True, slots=True)
class Started:
    """A run that began. ``key`` stays in the starter's browser; stopping and deleting ask for it."""

    run_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One line of the list of recordings. Counts are None where the file does not say.

    ``end_reason`` is eos, length, stop, cancelled, error or "ended early" (the file stops in mid-run), and None while
    ``live``.
    """

    id: str
    title: str
    shipped: bool
    live: bool
    model: str
    precision: str
    machine: str
    n_prompt_tokens: int | None
    n_new_tokens: int | None
    created: str  # ISO 8601, as the trace's header has it
    size_bytes: int
    end_reason: str | None
    source: str = "live"  # the header's: live, remote or simulated


def encode_status(status: Status) -> str:
    """The status as the one JSON object that ``api/status`` sends."""
    install = status.install
    names = ("state", "doing", "share", "bytes_done", "bytes_total", "message")
    payload = {
        "k": "status",
        "install": None if install is None else {name: getattr(install, name) for name in names},
        "worker": asdict(status.worker),
        "busy": None if status.busy_run_id is None else {"run": status.busy_run_id},
        "message": status.message,
    }
    return json.dumps(payload, ensure_ascii=False, allow_nan=False)
