"""Predict, then measure: the sentence before a run, the table after it, and no trust in a stranger's header."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest

from server import Worker
from sim.scenario import find_scenario
from telemetry.protocol import RunRequest
from telemetry.trace import Trace, read_trace
from tests.sim.test_here import HERE
from ui.panels.expectation import compared, expected

WORKER = Worker("ready", model="small", basis=HERE.to_json())


def traced(text: str, prediction: Any) -> Trace:
    head, _, rest = text.partition("\n")
    return read_trace(BytesIO(f"{json.dumps(json.loads(head) | {'prediction': prediction})}\n{rest}".encode()))


def test_before_a_run_of_known_length_both_times_are_said_with_their_ranges() -> None:
    said = expected(WORKER, RunRequest(prompt_tokens=500, max_new_tokens=64))
    assert said is not None
    assert "519 GFLOP/s and 48.4 GB/s, measured here" in said
    assert "the first token after" in said and said.count(" to ") == 2


def test_of_a_text_only_the_writing_is_said() -> None:
    said = expected(WORKER, RunRequest(prompt="Hello"))
    assert said is not None and "counted when the run begins" in said and said.count(" to ") == 1


@pytest.mark.parametrize("basis", [None, {}, {"spec": 3}, HERE.to_json() | {"decode_weights": "?"}])
def test_without_a_basis_nothing_is_said(basis: Any) -> None:
    assert expected(replace(WORKER, basis=basis), RunRequest(prompt_tokens=500)) is None


def test_after_the_run_each_figure_has_its_error(trace_text: Callable[..., str]) -> None:
    # The hand-made run: first token after 2 passes of 20 ms, then one every 20 ms.
    prediction = {"ttft_s": 0.05, "tpot_s": 0.01, "interval": {"ttft_s": [0.03, 0.06], "tpot_s": [0.008, 0.012]}}
    first, each = compared(traced(trace_text(step_s=0.02), prediction))
    assert (first["predicted"], first["measured"], first["error"]) == ("50 ms", "40 ms", "+25%")
    assert first["within the range"] == "yes"
    assert (each["measured"], each["error"], each["within the range"]) == ("20 ms", "-50%", "no")


@pytest.mark.parametrize(
    "prediction",
    [
        None,
        {},
        {"ttft_s": "soon", "tpot_s": None},
        {"ttft_s": 0, "tpot_s": -1},
        {"ttft_s": True, "tpot_s": 1e300},
    ],
)
def test_a_header_without_usable_times_gives_no_row(trace_text: Callable[..., str], prediction: Any) -> None:
    assert compared(traced(trace_text(), prediction)) == []


@pytest.mark.parametrize("interval", [None, 3, {}, {"ttft_s": [1]}, {"ttft_s": ["a", "b"]}, {"ttft_s": [None, 1]}])
def test_a_broken_range_is_a_dash(trace_text: Callable[..., str], interval: Any) -> None:
    (row,) = compared(traced(trace_text(), {"ttft_s": 0.05, "interval": interval}))
    assert (row["range"], row["within the range"]) == ("\u2013", "\u2013")


def test_a_simulation_is_not_compared_with_itself(trace_text: Callable[..., str]) -> None:
    prediction = find_scenario("llama-3-8b", "h100-sxm", "bf16", 10, 5).predict().to_json()
    head, _, rest = trace_text().partition("\n")
    simulated = json.dumps(json.loads(head) | {"prediction": prediction, "source": "simulated"})
    assert compared(read_trace(BytesIO(f"{simulated}\n{rest}".encode()))) == []
