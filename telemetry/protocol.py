"""What the worker and its caller say to each other: one JSON object a line, commands in, events out.

A run's own lines are the trace's lines (``events.py``): its header, then its events, closed by the ``end`` whose seq is
null. Between runs, and beside them, the worker says ``hello``, ``beat``, ``progress`` and ``state``: the messages here.
Commands go in on stdin. End of file on stdin ends the worker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

Precision = Literal["fp32", "bf16", "int8", "int4"]
WorkerState = Literal["starting", "idle", "loading", "measuring", "ready", "running", "failed"]

SYNTHETIC_TEXT_NOTE = "Synthetic prompt: plain English filler cut to the asked number of tokens."


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a person asks for. Exactly one of ``prompt`` and ``prompt_tokens`` is set.

    ``prompt_tokens`` asks for a filler prompt of exactly that many tokens, chat template included. ``precision`` None
    means the machine's default. ``ignore_eos`` runs to ``max_new_tokens``. ``text_withheld`` keeps text out of the
    trace.
    """

    model: str | None = None  # a name from Hello.models; None is the default model
    precision: str | None = None
    prompt: str | None = None
    prompt_tokens: int | None = None
    system: str | None = None
    chat: bool = True
    max_new_tokens: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    stretch_prefill: bool = False
    cuda_graph: bool = True
    text_withheld: bool = False


@dataclass(frozen=True, slots=True)
class PrecisionOffer:
    """One precision on this device and model: offered, or the reason why not. Times are None until measured."""

    precision: str
    offered: bool
    label: str  # "int4: bf16 prefill, 4-bit decode"
    reason: str | None = None
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model that the operator made available. ``name`` is what a RunRequest says; never a path."""

    name: str
    label: str
    size_bytes: int | None
    path_kind: str  # gguf | directory | hub | embedded


@dataclass(frozen=True, slots=True)
class Hello:
    """The worker's first line, before torch is imported where that is possible."""

    pid: int
    devices: tuple[str, ...]
    models: tuple[ModelOffer, ...]
    torch_version: str | None
    problem: str | None = None  # one sentence when nothing can run


@dataclass(frozen=True, slots=True)
class Beat:
    """Once a second from a thread: what the worker is doing, for how long, and how long such a step usually takes."""

    doing: str
    since_s: float
    median_s: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Loading, measuring, capturing: a sentence and a share, or None where no share is known."""

    doing: str
    share: float | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The worker's state changed. ``default_precision`` and ``precisions`` are known once a model is ready."""

    state: WorkerState
    model: str | None = None
    precision: str | None = None
    device: str | None = None  # its name, as shown
    precisions: tuple[PrecisionOffer, ...] = ()
    default_precision: str | None = None
    max_context_tokens: int | None = None
    load_s: float | None = None
    message: str | None = None
    basis: Mapping[str, Any] | None = None  # what a prediction for this machine rests on: sim.here.Basis as JSON
    device_kind: str | None = None  # cpu | cuda | mps


@dataclass(frozen=True, slots=True)
class Refused:
    """A command that was not carried out, in one sentence (empty prompt, over the context, unknown model, …)."""

    message: str


@dataclass(frozen=True, slots=True)
class Load:
    model: str | None = None
    precision: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    run_id: str
    request: RunRequest


@dataclass(frozen=True, slots=True)
class Cancel:
    pass


@dataclass(frozen=True, slots=True)
class Unload:
    pass


Message = Hello | Beat | Progress | State | Refused
Command = Load | Run | Cancel | Unload
MESSAGES: dict[str, type] = {"hello": Hello, "beat": Beat, "progress": Progress, "state": State, "refused": Refused}
COMMANDS: dict[str, type] = {"load": Load, "run": Run, "cancel": Cancel, "unload": Unload}
_NAME_OF = {cls: name for name, cls in (MESSAGES | COMMANDS).items()}


def encode_message(message: Message) -> str:
    """One JSON line without its line end, told from a trace's lines by its ``k``."""
    return json.dumps({"k": _NAME_OF[type(message)]} | asdict(message), ensure_ascii=False, allow_nan=False)


def encode_command(command: Command) -> str:
    """One JSON line without its line end."""
    return json.dumps({"cmd": _NAME_OF[type(command)]} | asdict(command), ensure_ascii=False, allow_nan=False)


def decode_message(payload: Mapping[str, Any]) -> Message | None:
    """A message, or None when the line is not one (then it belongs to a trace). Raises ValueError."""
    cls = MESSAGES.get(str(payload.get("k")))
    return None if cls is None else _build(cls, payload)


def decode_command(line: str) -> Command:
    """A command from its line. Raises ValueError with a sentence."""
    payload = json.loads(line)
    cls = COMMANDS.get(str(payload.get("cmd"))) if isinstance(payload, dict) else None
    if cls is None:
        raise ValueError("The worker does not know this command.")
    command: Command = _build(cls, payload)
    return command


def _build(cls: type, payload: Mapping[str, Any]) -> Any:
    known = {f.name for f in fields(cls)}
    values = {k: v for k, v in payload.items() if k in known}
    try:
        if cls is Run:
            values["request"] = _build(RunRequest, values["request"])
        if cls is RunRequest:
            values["stop"] = tuple(values.get("stop") or ())
        if cls is Hello:
            values["devices"] = tuple(values["devices"])
            values["models"] = tuple(ModelOffer(**m) for m in values["models"])
        if cls is State:
            values["precisions"] = tuple(PrecisionOffer(**p) for p in values.get("precisions") or ())
        return cls(**values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"A {_NAME_OF.get(cls, cls.__name__)} line lacks or garbles a field: {error}") from error
