"""Shared by all rooms: a small, whole trace to work on, made by hand so that no test depends on another's code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from telemetry.events import (
    Ceilings,
    Device,
    End,
    Event,
    Header,
    Peak,
    Phase,
    Request,
    Row,
    Step,
    StepBytes,
    Token,
    encode_event,
    encode_header,
)

ROOT = Path(__file__).resolve().parent
GFLOP = 1e9
TraceText = Callable[..., str]


def _header(run_id: str) -> Header:
    compute = Peak("flops", 470e9, "measured", "measured here, fp32 matrix product", "fp32")
    memory = Peak("bytes_per_s", 55e9, "measured", "measured here, read of 1 GiB", working_set_bytes=2**30)
    return Header(
        id=run_id,
        created="2026-01-02T03:04:05+00:00",
        source="live",
        model={"name": "hand-made model", "revision": None, "spec": None},
        precision="fp32",
        devices=(Device("hand-made machine", "cpu", peaks=(compute, memory)),),
        ceilings=Ceilings(prefill_compute=compute, decode_compute=compute, memory=memory),
        engine={"name": "test"},
        kv_bytes_per_token=46080,
        kv_capacity_tokens=512,
    )


def _bodies(prompt: list[str], written: list[str], step_s: float) -> list[tuple[float, object]]:
    n, t = len(prompt), 2 * step_s
    weights = StepBytes(weights=538_000_000, kv_read=46_080 * n, kv_write=46_080, activations=0)
    prefill = Step(0, 0.0, t, "target", (Row(0, n, 0, "prefill"),), 27e6 * n, weights, "host")
    bodies: list[tuple[float, object]] = [
        (0.0, Request(0, n, len(written), tuple(prompt))),
        (0.0, Phase(0, "prefill")),
        (t, prefill),
        (t, Phase(0, "decode")),
    ]
    for i, text in enumerate(written):
        step = 0
        if i:
            row = Row(0, 1, n + i - 1, "decode")
            bodies.append((t + step_s, Step(i, t, t + step_s, "target", (row,), 27e6, weights, "host")))
            t, step = t + step_s, i
        bodies.append((t, Token(0, step, n + i, text, id=i)))
    bodies += [(t, Phase(0, "done")), (t, End(0, "length")), (t, End(None, "length"))]
    return bodies


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser comes last: quick failures first, and its driver keeps an event loop that nobody else must see."""
    items.sort(key=lambda item: item.path.is_relative_to(ROOT / "browser"))


@pytest.fixture
def trace_text() -> TraceText:
    """Makes the text of a trace: ``trace_text(written=["a", "b"], step_s=0.01, run_id="x")``."""

    def make(
        written: list[str] | None = None,
        prompt: list[str] | None = None,
        step_s: float = 0.02,
        run_id: str = "hand-made",
    ) -> str:
        words = written if written is not None else [f" word{i}" for i in range(20)]
        asked = prompt if prompt is not None else ["<|im_start|>", "user", " Tell", " me", "."]
        lines = [encode_header(_header(run_id))]
        bodies = _bodies(asked, words, step_s)
        lines += [encode_event(Event(n, t, body)) for n, (t, body) in enumerate(bodies)]  # type: ignore[arg-type]
        return "\n".join(lines) + "\n"

    return make
