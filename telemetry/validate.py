"""Holds a decoded header or event against the schema's types, so that nothing later has to.

``events.py`` builds the dataclasses; a file from a stranger may have put a string where a number belongs, a negative
count, or text that no UTF-8 writer can write. Each field has one rule here. A value that breaks its rule raises
ValueError with the field's name and what it should be; the reader turns that into a note with the line number.

Not covered: whether the figures make sense together. A trace may well say that it read 3 tokens in 0 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from telemetry import events as ev

MAX_COUNT = 2**53  # above it a browser's numbers lose their last digits
MAX_NUMBER = 1e30  # far above any FLOP count; sums over two million steps stay finite
MAX_TIME_S = 1e9
MAX_DEPTH = 12  # of free-form header fields
MAX_PROBABILITY = 1.000001  # softmax in float32 rounds


@dataclass(frozen=True, slots=True)
class Rule:
    holds: Callable[[Any], bool]
    should_be: str


def check_header(header: ev.Header) -> ev.Header:
    """The header itself, if every field has its type. Raises ValueError with a sentence."""
    _hold(header, _HEADER)
    for device in header.devices:
        _hold(device, _DEVICE)
        for peak in device.peaks:
            _hold(peak, _PEAK)
    for peak_or_none in (header.ceilings.prefill_compute, header.ceilings.decode_compute, header.ceilings.memory):
        if peak_or_none is not None:
            _hold(peak_or_none, _PEAK)
    return header


def check_event(event: ev.Event) -> ev.Event:
    """The event itself, if every field has its type and range. Raises ValueError with a sentence."""
    _hold(event, _EVENT)
    body = event.body
    _hold(body, _BODIES[type(body)])
    if isinstance(body, ev.Step):
        for row in body.rows:
            _hold(row, _ROW)
        if body.bytes is not None:
            _hold(body.bytes, _BYTES)
    if isinstance(body, ev.Step | ev.Sample) and body.t1 < body.t0:
        raise ValueError("it ends before it begins")
    if isinstance(body, ev.Request) and body.pieces is not None and len(body.pieces) != body.n_prompt_tokens:
        raise ValueError("its pieces are not one for each prompt token")
    return event


def _hold(thing: Any, rules: Mapping[str, Rule]) -> None:
    for name, rule in rules.items():
        if not rule.holds(getattr(thing, name)):
            raise ValueError(f"its {name} should be {rule.should_be}")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_COUNT


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= MAX_NUMBER  # NaN compares false


def _is_text(value: Any) -> bool:
    """A string that UTF-8 can hold: JSON's escapes may smuggle in half a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plain(value: Any, depth: int = 0) -> bool:
    """JSON's own values, not nested too deeply."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, Mapping):
        return all(_is_text(k) and _is_plain(v, depth + 1) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(v, depth + 1) for v in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int) or _is_text(value)


def _or_none(rule: Rule) -> Rule:
    return Rule(lambda value: value is None or rule.holds(value), f"{rule.should_be} or null")


def _one_of(literal: Any) -> Rule:
    names = get_args(literal)
    return Rule(lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}")


_COUNT = Rule(_is_count, "a whole number, 0 or more")
_POSITIVE_COUNT = Rule(lambda v: _is_count(v) and v > 0, "a whole number, 1 or more")
_NUMBER = Rule(_is_number, "a number")
_QUANTITY = Rule(lambda v: _is_number(v) and v >= 0, "a number, 0 or more")
_TIME = Rule(lambda v: _is_number(v) and abs(v) <= MAX_TIME_S, "a time in seconds")
_PROBABILITY = Rule(lambda v: _is_number(v) and 0 <= v <= MAX_PROBABILITY, "a probability")
_TEXT = Rule(_is_text, "text")
_TEXTS = Rule(lambda v: isinstance(v, tuple) and all(map(_is_text, v)), "a list of texts")
_FLAG = Rule(lambda v: isinstance(v, bool), "true or false")
_MAPPING = Rule(lambda v: isinstance(v, Mapping) and _is_plain(v), "an object, not nested too deeply")
_MAPPINGS = Rule(lambda v: isinstance(v, tuple) and all(map(_MAPPING.holds, v)), "a list of objects")
_MODEL = Rule(
    lambda v: (
        _MAPPING.holds(v)
        and all(v.get(k) is None or _is_text(v[k]) for k in ("name", "revision"))
        and (v.get("spec") is None or isinstance(v["spec"], Mapping))
    ),
    "an object with name, revision and spec",
)

_HEADER = {
    "id": _TEXT,
    "created": _TEXT,
    "source": _one_of(ev.Source),
    "model": _MODEL,
    "precision": _TEXT,
    "tensor_parallel": _POSITIVE_COUNT,
    "engine": _MAPPING,
    "kv_bytes_per_token": _or_none(_COUNT),
    "kv_capacity_tokens": _or_none(_COUNT),
    "sampling": _MAPPING,
    "sensors": _MAPPINGS,
    "clock": _MAPPING,
    "load_s": _or_none(_QUANTITY),
    "warmup_s": _or_none(_QUANTITY),
    "prediction": _or_none(_MAPPING),
    "group": _or_none(_TEXT),
    "text_withheld": _FLAG,
    "title": _or_none(_TEXT),
}
_DEVICE = {
    "name": _TEXT,
    "kind": _TEXT,
    "uuid": _or_none(_TEXT),
    "memory_bytes": _or_none(_COUNT),
    "last_level_cache_bytes": _or_none(_COUNT),
}
_PEAK = {
    "quantity": Rule(lambda v: v in ("flops", "bytes_per_s"), "flops or bytes_per_s"),
    "value": Rule(lambda v: _is_number(v) and v >= 1, "a number, 1 or more"),
    "provenance": _one_of(ev.PeakProvenance),
    "label": _TEXT,
    "dtype": _or_none(_TEXT),
    "working_set_bytes": _or_none(_COUNT),
}
_EVENT = {"n": _COUNT, "t": _TIME}
_ROW = {"seq": _COUNT, "n_tokens": _COUNT, "context": _COUNT, "kind": _one_of(ev.RowKind)}
_BYTES = {"weights": _COUNT, "kv_read": _COUNT, "kv_write": _COUNT, "activations": _COUNT}
_BODIES: dict[type, dict[str, Rule]] = {
    ev.Request: {
        "seq": _COUNT,
        "n_prompt_tokens": _or_none(_COUNT),
        "max_new_tokens": _or_none(_COUNT),
        "pieces": _or_none(_TEXTS),
    },
    ev.Phase: {"seq": _or_none(_COUNT), "phase": _one_of(ev.PhaseName)},
    ev.Step: {
        "i": _COUNT,
        "t0": _TIME,
        "t1": _TIME,
        "role": Rule(lambda v: v in ("target", "draft"), "target or draft"),
        "flops": _or_none(_QUANTITY),
        "timing": Rule(lambda v: v in ("device", "host"), "device or host"),
        "repeat": _FLAG,
    },
    ev.Token: {
        "seq": _COUNT,
        "step": _or_none(_COUNT),
        "position": _or_none(_COUNT),
        "text": _TEXT,
        "count": _or_none(_COUNT),
        "id": _or_none(_COUNT),
        "prob": _or_none(_PROBABILITY),
        "verdict": _or_none(_one_of(ev.Verdict)),
    },
    ev.Sample: {
        "sensor": _TEXT,
        "metric": _TEXT,
        "device": _or_none(_COUNT),
        "value": _or_none(_NUMBER),
        "t0": _TIME,
        "t1": _TIME,
        "reason": _or_none(_TEXT),
    },
    ev.Meta: {"fields": _MAPPING},
    ev.Note: {"text": _TEXT},
    ev.End: {
        "seq": _or_none(_COUNT),
        "reason": _one_of(ev.EndReason),
        "message": _or_none(_TEXT),
        "totals": _MAPPING,
    },
}
