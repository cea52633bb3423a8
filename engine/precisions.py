"""The four precisions, what they are called, and whether each can be built on a device."""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("fp32", "bf16", "int8", "int4")  # in order of falling bytes a weight
LABELS = {
    "fp32": "fp32: 4 bytes a weight",
    "bf16": "bf16: 2 bytes a weight",
    "int8": "int8: bf16 prefill, 8-bit decode",
    "int4": "int4: bf16 prefill, 4-bit decode",
}


@dataclass(frozen=True, slots=True)
class PrecisionSupport:
    """Whether a precision can be built on a device; ``reason`` is one sentence where it cannot."""

    precision: str
    label: str
    available: bool
    reason: str | None = None
