"""A stranger's upload with wrong types in every field: a sentence each, and never a crash in what reads it later."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telemetry.summary import summarise
from telemetry.trace import TraceError, read_trace
from tests.telemetry.traces import record

LINES = record()
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    10**400,
    2**63,
    1e300,
    "5",
    "<script>",
    "\ud83d",
    [],
    {},
    [["a"]],
    {"a": {"b": []}},
)


def line_with(kind: str) -> int:
    return next(i for i, line in enumerate(LINES) if f'"k":"{kind}"' in line)


def read_with(kind: str, **changes: Any) -> tuple[str, ...]:
    lines = list(LINES)
    at = line_with(kind)
    lines[at] = json.dumps(json.loads(lines[at]) | changes)
    trace = read_trace(io.BytesIO("\n".join(lines).encode()))
    json.dumps(summarise(trace).to_json(), allow_nan=False).encode()
    return trace.notes


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("request", {"n_prompt_tokens": "512"}, "n_prompt_tokens should be a whole number"),
        ("request", {"n_prompt_tokens": -1}, "n_prompt_tokens should be"),
        ("request", {"n_prompt_tokens": 10**30}, "n_prompt_tokens should be"),
        ("request", {"pieces": "abc"}, "pieces should be a list of texts"),
        ("request", {"pieces": ["a", 2]}, "pieces should be a list of texts"),
        ("request", {"pieces": ["a", "b"]}, "pieces are not one for each prompt token"),
        ("phase", {"phase": "lunch"}, "phase should be one of"),
        ("phase", {"seq": "0"}, "seq should be"),
        ("step", {"rows": [[0, 256, 0]]}, "garbles a field"),
        ("step", {"rows": [[0, 256, 0, "prefill", 1]]}, "garbles a field"),
        ("step", {"rows": [["0", 256, 0, "prefill"]]}, "not a whole number"),
        ("step", {"rows": [[0, -5, 0, "prefill"]]}, "n_tokens should be"),
        ("step", {"rows": [[0, 5, 0, "dessert"]]}, "kind should be"),
        ("step", {"rows": 5}, "garbles a field"),
        ("step", {"flops": "1e9"}, "flops should be"),
        ("step", {"flops": -1}, "flops should be"),
        ("step", {"bytes": [1, 2, 3, 4]}, "garbles a field"),
        ("step", {"bytes": {"weights": "9", "kv_read": 1, "kv_write": 1, "activations": 1}}, "weights should be"),
        ("step", {"t0": 0.9, "t1": 0.2}, "ends before it begins"),
        ("step", {"t0": 10**400}, "garbles a field"),
        ("step", {"repeat": "no"}, "repeat should be true or false"),
        ("token", {"text": 5}, "text should be text"),
        ("token", {"text": "\ud83d"}, "text should be text"),
        ("token", {"count": -3}, "count should be"),
        ("token", {"prob": 1.5}, "prob should be a probability"),
        ("token", {"verdict": "guilty"}, "verdict should be"),
        ("token", {"n": -1}, "no usable place on the clock"),
        ("token", {"t": "0.5"}, "not a number"),
        ("sample", {"value": "97 %"}, "value should be a number or null"),
        ("sample", {"value": True}, "value should be a number or null"),
        ("sample", {"metric": None}, "metric should be text"),
        ("end", {"reason": "boredom"}, "reason should be one of"),
        ("end", {"totals": [1]}, "totals should be an object"),
        ("note", {"text": ["a"]}, "text should be text"),
    ],
)
def test_a_field_of_the_wrong_type_costs_its_line_and_names_the_field(
    kind: str, changes: dict[str, Any], why: str
) -> None:
    notes = read_with(kind, **changes)
    assert notes[0].startswith(f"Line {line_with(kind) + 1} could not be read: ")
    assert why in notes[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "tiny"},
        {"model": {"name": 5}},
        {"model": {"name": "m", "spec": "x"}},
        {"source": "hearsay"},
        {"precision": 16},
        {"devices": [{"name": "x"}]},
        {"devices": "mine"},
        {"devices": [{"name": "x", "kind": "cpu", "memory_bytes": "lots"}]},
        {"devices": [{"name": "x", "kind": "cpu", "peaks": [{"quantity": "flops"}]}]},
        {"ceilings": {"memory": {"quantity": "flops", "value": 0, "provenance": "measured", "label": ""}}},
        {"ceilings": {"memory": {"quantity": "flops", "value": "1e12", "provenance": "measured", "label": ""}}},
        {"ceilings": [1]},
        {"sensors": ["x"]},
        {"tensor_parallel": 0},
        {"kv_bytes_per_token": -1},
        {"text_withheld": "no"},
        {"engine": [1]},
        {"id": None},
    ],
)
def test_a_broken_first_line_is_one_sentence(changes: dict[str, Any]) -> None:
    first = json.dumps(json.loads(LINES[0]) | changes)
    with pytest.raises(TraceError) as caught:
        read_trace(io.BytesIO("\n".join([first, *LINES[1:]]).encode()))
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("depth", [50, 900, 100_000])
def test_nesting_never_exhausts_the_stack(depth: int) -> None:
    nest = "[" * depth + "]" * depth
    first = LINES[0].replace('"engine":{}', f'"engine":{{"a":{nest}}}')
    with pytest.raises(TraceError):
        read_trace(io.BytesIO("\n".join([first, *LINES[1:]]).encode()))
    meta = f'{{"n":1,"t":0.1,"k":"meta","fields":{{"engine":{{"a":{nest}}}}}}}'
    assert read_trace(io.BytesIO("\n".join([LINES[0], meta, *LINES[1:]]).encode())).n_damaged_lines == 1


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_field_may_hold_anything(data: st.DataObject) -> None:
    """Whatever one field of one line holds, the file reads and sums up, or is refused as a trace."""
    lines = list(LINES)
    at = data.draw(st.integers(0, len(lines) - 1))
    payload = json.loads(lines[at])
    key = data.draw(st.sampled_from(sorted(payload)))
    payload[key] = data.draw(st.sampled_from(HOSTILE) | st.recursive(st.none() | st.floats() | st.text(), st.lists))
    lines[at] = json.dumps(payload)
    try:
        trace = read_trace(io.BytesIO("\n".join(lines).encode()))
    except TraceError:
        return
    json.dumps(summarise(trace).to_json(), allow_nan=False)
