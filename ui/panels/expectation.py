"""Predict, then measure: what this machine should take before a run, and how far off that was after it.

Before: the engine tells what a prediction rests on (its ceilings, the weights that it built), and the simulator does
the rest. After: the prediction in the run's header against the run's own summary. Nothing is fitted between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import streamlit as st

from server import Worker
from sim.here import Basis
from sim.predict import Prediction
from sim.words import INTERVAL, duration
from telemetry.protocol import RunRequest
from telemetry.summary import Summary, summarise
from telemetry.trace import Trace
from ui.figures import UNKNOWN

COMPARED = {"ttft_s": "Time to first token", "tpot_s": "Time per token"}


def before(worker: Worker, request: RunRequest) -> None:
    """What the next run should take here, in one sentence; nothing while the engine has not said what it rests on."""
    sentence = expected(worker, request)
    if sentence:
        st.text(sentence)


def expected(worker: Worker, request: RunRequest) -> str | None:
    """The sentence of ``before``; None where nothing can be predicted."""
    if worker.basis is None:
        return None
    try:
        basis = Basis.from_json(worker.basis)
        found = basis.predict(request.prompt_tokens or 1, max(1, request.max_new_tokens))
    except (ValueError, LookupError):
        return None
    ceilings = f"{basis.prefill_flops_per_s / 1e9:,.0f} GFLOP/s and {basis.bytes_per_s / 1e9:,.1f} GB/s, measured here"
    return f"Predicted for {worker.model} in {basis.decode_weights}, from {ceilings}: {_times(found, request)}"


def _times(found: Prediction, request: RunRequest) -> str:
    writing = f"a token every {_span(found.tpot_s, found.tpot_interval_s)}."
    if request.prompt_tokens is None:
        return f"{writing} The prompt's tokens are counted when the run begins."
    return f"the first token after {_span(found.ttft_s, found.ttft_interval_s)}, then {writing}"


def _span(seconds: float | None, interval: tuple[float, float] | None) -> str:
    if seconds is None or interval is None:
        return UNKNOWN
    return f"{duration(seconds)} ({duration(interval[0])} to {duration(interval[1])})"


def after(trace: Trace) -> None:
    """Predicted against measured, for a run that was predicted."""
    rows = compared(trace)
    if rows:
        st.subheader("Predicted, then measured")
        st.dataframe(rows, hide_index=True, height="content")
        st.caption(f"The range is {INTERVAL}; the error is predicted over measured, less one.")


def compared(trace: Trace) -> list[dict[str, str]]:
    """One row a figure; none for a simulation, or where nothing was predicted or measured."""
    prediction = trace.header.prediction
    if prediction is None or trace.header.source == "simulated":
        return []
    summary = summarise(trace)
    rows = [_row(name, label, prediction, summary) for name, label in COMPARED.items()]
    return [row for row in rows if row is not None]


def _row(name: str, label: str, prediction: Mapping[str, Any], summary: Summary) -> dict[str, str] | None:
    predicted: object = prediction.get(name)
    measured: object = getattr(summary, name)
    if not _is_time(predicted) or not _is_time(measured):
        return None
    interval = _interval(prediction, name)
    return {
        "figure": label,
        "predicted": duration(predicted),
        "range": f"{duration(interval[0])} to {duration(interval[1])}" if interval else UNKNOWN,
        "measured": duration(measured),
        "error": f"{predicted / measured - 1:+.0%}",
        "within the range": ("yes" if interval[0] <= measured <= interval[1] else "no") if interval else UNKNOWN,
    }


def _interval(prediction: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    intervals = prediction.get("interval")
    span = intervals.get(name) if isinstance(intervals, Mapping) else None
    return (
        (span[0], span[1]) if isinstance(span, list | tuple) and len(span) == 2 and all(map(_is_time, span)) else None
    )


def _is_time(value: object) -> TypeGuard[float]:
    """A trace may be a stranger's: whatever it says, only a positive number is a time."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9
