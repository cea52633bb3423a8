"""Where each figure on the stage comes from: this run's denominators, sensors and sums, and what the words mean.

Figures are computed from the trace on the stage; the definitions are those of docs/trace.md, shown in full below. What
a trace says of itself (names, labels) may be a stranger's text: it stands in data frames, which show characters as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from telemetry.events import Header, Peak
from telemetry.summary import Summary, summarise
from ui import figures, selection
from ui.figures import UNKNOWN

DEFINITIONS = Path(__file__).resolve().parent.parent.parent / "docs" / "trace.md"

PROVENANCE = {
    "counter": "A counter in the hardware. The closest thing to the truth, where the device has one.",
    "derived": "Our arithmetic of the model (operations, bytes) divided by a measured time.",
    "driver busy-time": "The share of time in which something ran, as the driver sees it. It says nothing of how much.",
    "simulated": "Computed from a description of a device; nothing ran.",
    "measured": "A ceiling that was measured on this machine, by the kernel and over the data that its label names.",
    "datasheet": "A ceiling that the maker publishes, for dense arithmetic.",
    "driver": "A ceiling that follows from what the driver reports, such as clock times bus width.",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the sums: what it is, where it stands in a summary, and how it is made."""

    name: str
    value: Callable[[Summary], float | None]
    unit: str
    scale: float
    how: str


SUMS = (
    Figure("Time to first token", lambda s: s.ttft_s, "ms", 1e3, "first token - arrival of the request"),
    Figure("Time per output token", lambda s: s.tpot_s, "ms", 1e3, "(last token - first token) / (tokens - 1)"),
    Figure("Inter-token latency, median", lambda s: s.itl_p50_s, "ms", 1e3, "over the gaps between neighbours"),
    Figure("Inter-token latency, 95th percentile", lambda s: s.itl_p95_s, "ms", 1e3, "over the same gaps"),
    Figure("Prefill", lambda s: s.prefill_tok_s, "tok/s", 1.0, "prompt tokens / time of their steps"),
    Figure("Decode", lambda s: s.decode_tok_s, "tok/s", 1.0, "1 / time per output token"),
    Figure("Intensity, prefill", lambda s: s.intensity.prefill, "FLOP/B", 1.0, "operations / bytes moved"),
    Figure("Intensity, decode", lambda s: s.intensity.decode, "FLOP/B", 1.0, "operations / bytes moved"),
    Figure("Compute used, prefill (MFU)", lambda s: s.mfu.prefill, "%", 1e2, "operations per second / ceiling"),
    Figure("Compute used, decode (MFU)", lambda s: s.mfu.decode, "%", 1e2, "operations per second / ceiling"),
    Figure("Memory traffic used, prefill (MBU)", lambda s: s.mbu.prefill, "%", 1e2, "bytes per second / ceiling"),
    Figure("Memory traffic used, decode (MBU)", lambda s: s.mbu.decode, "%", 1e2, "bytes per second / ceiling"),
    Figure("Energy", lambda s: s.energy_j, "J", 1.0, "the energy counter, end - start"),
)


def page() -> None:
    """Draws the sums, denominators and sensors of the run on the stage, then the words and the definitions."""
    shown = selection.shown()
    trace = figures.trace(shown.run_id) if shown.run_id is not None and not shown.live else None
    if trace is None:
        st.info("Put a finished run on the stage, and its figures stand here with what they were made of.")
    else:
        st.subheader("The sums of the run on the stage")
        _table(sums(summarise(trace)))
        st.subheader("What a percentage is a percentage of")
        _table(ceilings(trace.header))
        st.subheader("What was read while it ran")
        _table(sensors(trace.header))
    st.subheader("What the words mean")
    _table([{"word": word, "meaning": meaning} for word, meaning in PROVENANCE.items()])
    with st.expander("The trace format and every definition, in full"):
        st.markdown(DEFINITIONS.read_text(encoding="utf-8"))


def sums(summary: Summary) -> list[dict[str, str]]:
    """The summary as rows; a dash where there is nothing to measure over."""
    return [
        {"figure": row.name, "value": _number(row.value(summary), row.scale), "unit": row.unit, "how": row.how}
        for row in SUMS
    ]


def ceilings(header: Header) -> list[dict[str, str]]:
    """The denominators that this run's writer chose, as rows."""
    chosen = header.ceilings
    memory = "memory traffic, from cache" if chosen.from_cache else "memory traffic"
    named = {
        "compute, prefill": chosen.prefill_compute,
        "compute, decode": chosen.decode_compute,
        memory: chosen.memory,
    }
    return [_ceiling(name, peak) for name, peak in named.items()]


def sensors(header: Header) -> list[dict[str, str]]:
    """The sensors of this run as rows, those that found nothing among them, with the reason."""
    columns = ("label", "metric", "unit", "provenance", "reason")
    return [{column: _text(sensor, column) for column in columns} for sensor in header.sensors]


def _ceiling(name: str, peak: Peak | None) -> dict[str, str]:
    if peak is None:
        return {"of": name, "ceiling": UNKNOWN, "unit": "", "from": UNKNOWN, "label": "no ceiling is known for it"}
    scale, unit = (1e-9, "GFLOP/s") if peak.quantity == "flops" else (1e-9, "GB/s")
    return {
        "of": name,
        "ceiling": _number(peak.value, scale),
        "unit": unit,
        "from": peak.provenance,
        "label": peak.label,
    }


def _table(rows: list[dict[str, str]]) -> None:
    if rows:
        st.dataframe(rows, hide_index=True, height="content")
    else:
        st.caption("Nothing.")


def _number(value: float | None, scale: float) -> str:
    if value is None:
        return UNKNOWN
    scaled = value * scale
    return f"{scaled:,.0f}" if abs(scaled) >= 1000 else f"{scaled:.3g}"


def _text(sensor: Mapping[str, Any], column: str) -> str:
    value = sensor.get(column)
    return UNKNOWN if value is None else str(value)
