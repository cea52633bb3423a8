"""A small, whole trace that the tests of this room build on, made by the product's own writer."""

from __future__ import annotations

from telemetry.events import (
    Body,
    Ceilings,
    Device,
    End,
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
)
from telemetry.recorder import Recorder

COMPUTE = Peak("flops", 1e12, "measured", "measured here, fp32 matrix product", "fp32")
MEMORY = Peak("bytes_per_s", 1e11, "measured", "measured here, read over 1 GiB", None, 1 << 30)

HEADER = Header(
    id="r1",
    created="2026-03-01T10:00:00+00:00",
    source="live",
    model={"name": "tiny", "revision": None, "spec": None},
    precision="fp32",
    devices=(Device("a chip", "cpu", peaks=(COMPUTE, MEMORY)),),
    ceilings=Ceilings(COMPUTE, COMPUTE, MEMORY),
)

# A 512-token prompt in two chunks, then three tokens at 0.1 s each.
BODIES: tuple[tuple[float, Body], ...] = (
    (0.0, Request(0, 512, 3, None)),
    (0.0, Phase(0, "prefill")),
    (0.2, Step(0, 0.0, 0.2, "target", (Row(0, 256, 0, "prefill"),), 1e11, StepBytes(900, 50, 30, 20), "host")),
    (0.5, Step(1, 0.2, 0.5, "target", (Row(0, 256, 256, "prefill"),), 2e11, StepBytes(900, 60, 20, 20), "host")),
    (0.5, Token(0, 1, 512, "😊", id=7, prob=0.5)),
    (0.5, Phase(0, "decode")),
    (0.6, Step(2, 0.5, 0.6, "target", (Row(0, 1, 512, "decode"),), 1e9, StepBytes(4000, 900, 60, 40), "host")),
    (0.6, Token(0, 2, 513, " “quoted”")),
    (0.65, Sample("cpu", "cpu_busy", 0, 0.97, 0.54, 0.65)),
    (0.65, Sample("nvml", "power_w", 0, None, 0.54, 0.65, "Not supported")),
    (0.7, Step(3, 0.6, 0.7, "target", (Row(0, 1, 513, "decode"),), 1e9, StepBytes(4000, 1100, 60, 40), "host")),
    (0.7, Token(0, 3, 514, " 你好")),
    (0.7, Note("A note.")),
    (0.7, End(0, "length")),
    (0.7, End(None, "length")),
)


def record(bodies: tuple[tuple[float, Body], ...] = BODIES, header: Header = HEADER) -> list[str]:
    """The lines a recorder writes for these bodies."""
    lines: list[str] = []
    recorder = Recorder(header, lines.append, clock=lambda: 0.0, origin=0.0)
    for t, body in bodies:
        recorder.emit(body, t)
    return lines
