"""Made-up traces for the stage's tests, written by the product's own codec."""

from __future__ import annotations

from dataclasses import replace

from telemetry.events import (
    Body,
    Ceilings,
    Device,
    End,
    Event,
    Header,
    Note,
    Peak,
    Phase,
    Request,
    Row,
    Sample,
    Step,
    StepBytes,
    Token,
    encode_event,
    encode_header,
)

FLOPS = Peak("flops", 400e9, "measured", "measured here, fp32 matrix product", "fp32")
READ = Peak("bytes_per_s", 50e9, "measured", "measured here, reading 1 GiB", None, 1 << 30)
HEADER = Header(
    id="made-up",
    created="2026-01-01T00:00:00+00:00",
    source="live",
    model={"name": "tiny"},
    precision="fp32",
    devices=(Device("a CPU, 2 cores", "cpu"),),
    ceilings=Ceilings(FLOPS, FLOPS, READ),
    kv_bytes_per_token=1000,
    kv_capacity_tokens=1000,
    sensors=(
        {"sensor": "cpu", "metric": "cpu_busy", "device": 0, "unit": "fraction", "provenance": "driver_time_fraction",
         "label": "CPU busy time", "reason": None},
        {"sensor": "nvml", "metric": "power_w", "device": 0, "unit": "W", "provenance": "unavailable",
         "label": "power", "reason": "This machine has no NVIDIA GPU."},
    ),
)  # fmt: skip


def text_of(header: Header, bodies: list[tuple[float, Body]]) -> str:
    """The trace's text. Ordinals follow the given order."""
    lines = [encode_header(header)]
    lines += [encode_event(Event(n, t, body)) for n, (t, body) in enumerate(bodies)]
    return "".join(line + "\n" for line in lines)


def step(i: int, t0: float, t1: float, *rows: Row, flops: float | None = 1e9, repeat: bool = False) -> Step:
    """A pass that reads 500 MB of weights."""
    n_tokens = sum(row.n_tokens for row in rows)
    parts = StepBytes(500_000_000, 1000 * sum(row.context for row in rows), 1000 * n_tokens, 5000 * n_tokens)
    return Step(i, t0, t1, "target", rows, flops, parts, "host", repeat)


def plain_run(texts: list[str], n_prompt: int = 512, chunk: int = 256, **header: object) -> str:
    """A prompt read in chunks of 0.2 s, then one token a text, 0.02 s each; ends by length."""
    bodies: list[tuple[float, Body]] = [
        (0.0, Request(0, n_prompt, len(texts))),
        (0.001, Phase(0, "prefill")),
    ]
    t = 0.001
    for i, start in enumerate(range(0, n_prompt, chunk)):
        n_tokens = min(chunk, n_prompt - start)
        bodies.append((t + 0.2, step(i, t, t + 0.2, Row(0, n_tokens, start, "prefill"), flops=n_tokens * 2.4e8)))
        t += 0.2
    bodies += [(t, Sample("cpu", "cpu_busy", 0, 0.97, 0.0, t)), (t, Phase(0, "decode"))]
    for i, text in enumerate(texts):
        bodies.append((t, Token(0, None, n_prompt + i, text, id=i, prob=0.5)))
        bodies.append((t + 0.02, step(100 + i, t, t + 0.02, Row(0, 1, n_prompt + i, "decode"), flops=3e8)))
        t += 0.02
    bodies += [(t, Phase(0, "done")), (t, End(0, "length")), (t, End(None, "length"))]
    return text_of(replace(HEADER, **header), bodies)  # type: ignore[arg-type]


def awkward_run() -> str:
    """What a summary has to get right: repeats, rejected drafts, chunks of tokens, an unknown step, a second sequence,
    late samples, energy."""
    prefill = Row(7, 64, 0, "prefill")
    bodies: list[tuple[float, Body]] = [
        (0.01, Request(7, 64, 20)),
        (0.02, Request(8, 32, 20)),
        (0.02, Phase(7, "prefill")),
        (0.12, step(0, 0.02, 0.12, prefill, flops=3e10)),
        (0.22, step(1, 0.12, 0.22, prefill, flops=3e10, repeat=True)),
        (0.35, step(2, 0.22, 0.35, prefill, flops=3e10, repeat=True)),
        (0.35, Note("prefill repeated 2 times so that counters can see it")),
        (0.36, Phase(7, "decode")),
        (0.36, Token(7, 2, 64, "a")),
        (0.40, step(3, 0.36, 0.40, Row(7, 1, 64, "decode"), Row(8, 32, 0, "prefill"), flops=None)),
        (0.40, Token(7, 3, 65, "b")),
        (0.39, Token(8, 3, 32, "other")),
        (0.45, step(4, 0.40, 0.45, Row(7, 5, 65, "verify"), Row(8, 1, 33, "decode"))),
        (0.45, Token(7, 4, 66, " cc", count=3, verdict="accepted")),
        (0.45, Token(7, 4, None, "no", verdict="rejected")),
        (0.47, step(5, 0.45, 0.47, Row(8, 1, 34, "decode"))),
        (0.50, step(6, 0.47, 0.50, Row(7, 1, 69, "decode"))),
        (0.50, Token(7, 6, 69, "", count=0)),
        (0.51, Token(7, 6, 69, "d")),
        (0.30, Sample("nvml", "energy_j", 0, 6.0, 0.0, 0.30)),
        (0.55, Sample("nvml", "energy_j", 0, 5.0, 0.30, 0.55)),
        (0.56, End(8, "cancelled")),
        (0.57, End(7, "eos")),
        (0.58, End(None, "stop")),
    ]
    return text_of(HEADER, bodies)
