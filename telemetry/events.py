"""The schema of a trace, version 1: a header, then timed events on one clock.

A trace is what the screen shows, whether it was recorded, is still growing or was simulated. Each event body is a
frozen dataclass; ``Event`` puts it on the clock. Dicts live only in the codec at the foot of this file.
``docs/trace.md`` says in words why it is so. Unknown is None, never 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

FORMAT = "siliconscope-trace"
VERSION = 1

Source = Literal["live", "remote", "simulated"]
PhaseName = Literal["waiting", "prefill", "decode", "evicted", "done"]
RowKind = Literal["prefill", "decode", "verify"]
Verdict = Literal["accepted", "rejected", "bonus"]
EndReason = Literal["eos", "length", "stop", "cancelled", "error"]
Provenance = Literal["counter", "derived", "driver_time_fraction", "simulated", "unavailable"]
PeakProvenance = Literal["datasheet", "driver", "measured"]


@dataclass(frozen=True, slots=True)
class Peak:
    """One ceiling of a device: ``flops`` (FLOP/s) or ``bytes_per_s``, and where the figure comes from."""

    quantity: Literal["flops", "bytes_per_s"]
    value: float
    provenance: PeakProvenance
    label: str  # as shown, true wherever the trace is read: "measured, fp32 matrix product"
    dtype: str | None = None
    working_set_bytes: int | None = None  # bytes_per_s, measured: what the read was over


@dataclass(frozen=True, slots=True)
class Device:
    name: str
    kind: str  # cpu | cuda | mps | simulated
    uuid: str | None = None
    memory_bytes: int | None = None
    last_level_cache_bytes: int | None = None
    peaks: tuple[Peak, ...] = ()


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The denominators of this run's percentages, chosen once by the writer from ``Device.peaks``.

    Readers never choose again, so page, file check and recording agree. ``from_cache``: the step's weights fit the
    last-level cache, ``memory`` was measured at that working set, and nothing is claimed about DRAM.
    """

    prefill_compute: Peak | None = None
    decode_compute: Peak | None = None
    memory: Peak | None = None
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """Line 1. What is learnt later comes as ``Meta`` and merges in by ``merge_meta``."""

    id: str
    created: str  # ISO 8601 with offset; the only wall-clock time in a trace
    source: Source
    model: Mapping[str, Any]  # name, revision, spec (the fields of sim.specs.ModelSpec, or null)
    precision: str  # fp32 | bf16 | int8 | int4 | …
    devices: tuple[Device, ...] = ()
    ceilings: Ceilings = field(default_factory=Ceilings)
    tensor_parallel: int = 1
    engine: Mapping[str, Any] = field(default_factory=dict)  # name, version, options
    kv_bytes_per_token: int | None = None
    kv_capacity_tokens: int | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    sensors: tuple[Mapping[str, Any], ...] = ()  # {metric, device, unit, provenance, label, reason}
    clock: Mapping[str, Any] = field(default_factory=dict)  # name, residual_s (CUDA tie)
    load_s: float | None = None
    warmup_s: float | None = None
    prediction: Mapping[str, Any] | None = None
    group: str | None = None
    title: str | None = None  # what a list of recordings calls it
    text_withheld: bool = False  # random weights or private text: tokens are drawn as blocks
    format: str = FORMAT
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Request:
    """Arrives at ``Event.t``. ``pieces``: one text per prompt token (empty where the token ends no character)."""

    seq: int
    n_prompt_tokens: int | None
    max_new_tokens: int | None
    pieces: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    seq: int | None
    phase: PhaseName


@dataclass(frozen=True, slots=True)
class Row:
    """What one sequence contributed to a step: ``n_tokens`` new positions on top of ``context`` cached ones."""

    seq: int
    n_tokens: int
    context: int
    kind: RowKind


@dataclass(frozen=True, slots=True)
class StepBytes:
    """Bytes moved between memory and cores by one step, by part (sim/costs.py, or None where unknown)."""

    weights: int
    kv_read: int
    kv_write: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.kv_read + self.kv_write + self.activations


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass from ``t0`` to ``t1``. ``repeat`` steps move gauges and enter no TTFT and no prefill rate."""

    i: int
    t0: float
    t1: float
    role: Literal["target", "draft"]
    rows: tuple[Row, ...]
    flops: float | None
    bytes: StepBytes | None
    timing: Literal["device", "host"]
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """``count`` tokens became known at ``Event.t``. ``text`` is what became final, whole characters only."""

    seq: int
    step: int | None
    position: int | None
    text: str
    count: int | None = 1
    id: int | None = None
    prob: float | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One sensor reading over ``t0..t1``. None carries its ``reason``."""

    sensor: str
    metric: str
    device: int | None  # index into Header.devices
    value: float | None
    t0: float
    t1: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Meta:
    """Header fields learnt late; merged over the header by name."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """``seq`` None ends the trace. ``message`` is the sentence that goes with ``error``."""

    seq: int | None
    reason: EndReason
    message: str | None = None
    totals: Mapping[str, Any] = field(default_factory=dict)


Body = Request | Phase | Step | Token | Sample | Meta | Note | End


@dataclass(frozen=True, slots=True)
class Event:
    """``n`` counts from 0 in order of arrival; ``t`` is when the fact was complete (a step's and a sample's t1)."""

    n: int
    t: float
    body: Body


KINDS: dict[str, type] = {
    "request": Request,
    "phase": Phase,
    "step": Step,
    "token": Token,
    "sample": Sample,
    "meta": Meta,
    "note": Note,
    "end": End,
}
KIND_OF = {cls: kind for kind, cls in KINDS.items()}


def encode_header(header: Header) -> str:
    """The header as one JSON line without its line end. Raises ValueError on NaN or Infinity."""
    payload = {"format": FORMAT, "version": VERSION} | asdict(header)
    return _dump(payload)


def encode_event(event: Event) -> str:
    """The event as one JSON line without its line end. Raises ValueError on NaN or Infinity."""
    body = event.body
    line: dict[str, Any] = {"n": event.n, "t": _round(event.t), "k": KIND_OF[type(body)]}
    if isinstance(body, Meta):
        line["fields"] = dict(body.fields)
        return _dump(line)
    for f in fields(body):
        line[f.name] = getattr(body, f.name)
    if isinstance(body, Step):
        line["t0"], line["t1"] = _round(body.t0), _round(body.t1)
        line["rows"] = [[r.seq, r.n_tokens, r.context, r.kind] for r in body.rows]
        line["bytes"] = None if body.bytes is None else asdict(body.bytes)
    if isinstance(body, Sample):
        line["t0"], line["t1"] = _round(body.t0), _round(body.t1)
    return _dump(line)


def decode_header(payload: Mapping[str, Any]) -> Header:
    """A header from a parsed line. Raises ValueError with a sentence if it is foreign, newer or broken."""
    if not isinstance(payload, Mapping) or payload.get("format") != FORMAT:
        raise ValueError("This is not a trace file: its first line does not say so.")
    version = payload.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("This trace does not say which version it is.")
    if version > VERSION:
        raise ValueError(f"This trace was made by a newer version ({version}); this app reads {VERSION}.")
    known = {f.name for f in fields(Header)}
    values = {k: v for k, v in payload.items() if k in known}
    missing = sorted({"id", "created", "source", "model", "precision"} - values.keys())
    if missing:
        raise ValueError(f"The trace's first line lacks {', '.join(missing)}.")
    try:
        values["devices"] = tuple(_device(d) for d in values.get("devices") or ())
        values["ceilings"] = _ceilings(values.get("ceilings") or {})
        values["sensors"] = tuple(dict(s) for s in values.get("sensors") or ())
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError("The trace's first line describes its devices in a way that this app cannot read.") from error
    return Header(**values)


def decode_event(payload: Mapping[str, Any]) -> Event | None:
    """An event from a parsed line; None for a kind that this version does not know. Raises ValueError."""
    kind = payload.get("k")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return None
    try:
        n, t = _whole(payload["n"]), _number(payload["t"])
        body = _body(cls, payload)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a {kind} event lacks or garbles a field ({error})") from error
    if n < 0 or not math.isfinite(t):
        raise ValueError(f"a {kind} event has no usable place on the clock")
    return Event(n, t, body)


def merge_meta(header: Header, meta: Meta) -> Header:
    """The header with late facts merged in; fields unknown to this version are dropped."""
    payload = asdict(header) | {k: v for k, v in meta.fields.items() if k not in ("format", "version", "id")}
    return decode_header(payload)


def parse_json(line: str) -> Any:
    """One JSON value, strictly: NaN, Infinity and overflowing numbers become None, doubled keys are refused.

    Raises ValueError. RecursionError of hostile nesting is turned into ValueError as well.
    """
    try:
        return json.loads(line, parse_constant=lambda _: None, parse_float=_finite, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _body(cls: type, payload: Mapping[str, Any]) -> Any:
    if cls is Meta:
        return Meta(dict(payload["fields"]))
    known = {f.name for f in fields(cls)}
    values = {k: v for k, v in payload.items() if k in known}
    if cls is Step:
        values["rows"] = tuple(Row(_whole(s), _whole(c), _whole(x), k) for s, c, x, k in values["rows"])
        values["bytes"] = None if values.get("bytes") is None else StepBytes(**values["bytes"])
    if cls in (Step, Sample):
        values["t0"], values["t1"] = _number(values["t0"]), _number(values["t1"])
    if cls is Request and isinstance(values.get("pieces"), list):
        values["pieces"] = tuple(values["pieces"])
    return cls(**values)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("not a whole number")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError("not a number")
    return float(value)


def _device(payload: Mapping[str, Any]) -> Device:
    known = {f.name for f in fields(Device)}
    values = {k: v for k, v in payload.items() if k in known}
    values["peaks"] = tuple(_peak(p) for p in values.get("peaks") or ())
    return Device(**values)


def _peak(payload: Mapping[str, Any]) -> Peak:
    known = {f.name for f in fields(Peak)}
    return Peak(**{k: v for k, v in payload.items() if k in known})


def _ceilings(payload: Mapping[str, Any]) -> Ceilings:
    peaks = {k: _peak(payload[k]) for k in ("prefill_compute", "decode_compute", "memory") if payload.get(k)}
    return Ceilings(from_cache=bool(payload.get("from_cache")), **peaks)


def _dump(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _round(t: float) -> float:
    return round(t, 7)


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice")
    return out
