"""How far predictions are from measurements: ``python -m sim score FILE.csv``.

Four metrics: decode and prefill of one sequence, batching (curves over the batch, and whole static batches), and
speculation. Rows of reliability C are not scored. A row that is one of those the constants were fitted on is predicted
by the constants fitted *without its device*, so that nothing is predicted that was seen; every other row by all.

The baseline beside it is a plain roofline (published bandwidth and 16-bit rate, the longer time of the two) times one
constant, fitted and left out in the same way; for speculation, one cost of a round for all methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sim.calibrate import MEASURED, load_speedups
from sim.efficiency import Calibration, Metric, calibration
from sim.engines import device_class
from sim.observations import RawRow, Skipped, fingerprint, observe, read_rows
from sim.rounds import observe_speedup, speedup_fingerprint

KEYS: tuple[tuple[str, Metric], ...] = (
    ("decode_tok_s", "decode"),
    ("prefill_tok_s", "prefill"),
    ("batching", "batching"),
    ("speculation", "speculation"),
)
NOT_SCORED = {"ttft_ms": "a time to the first token, not a rate", "tpot_ms": "a time a token, not a rate"}


@dataclass(frozen=True, slots=True)
class Scored:
    """One predicted row. Errors are relative: predicted over measured rate, less 1."""

    metric: Metric
    family: str
    device_class: str
    devices: int
    reliability: str
    error: float
    baseline_error: float


@dataclass(frozen=True, slots=True)
class Score:
    """All scored rows, and how many were skipped by metric and reason."""

    rows: tuple[Scored, ...]
    skipped: Mapping[Metric, Mapping[str, int]]

    def of(self, metric: Metric) -> list[Scored]:
        return [row for row in self.rows if row.metric == metric]

    def to_json(self) -> dict[str, Any]:
        """The four metrics; figures are None where nothing was scored."""
        return {key: _summary(self.of(metric), self.skipped.get(metric, {})) for key, metric in KEYS}


def score_file(path: Path, constants: Calibration | None = None) -> Score:
    """Scores a CSV file with the columns of the measured, batching or speculation files.

    Raises OSError, or ValueError with a sentence where the file has none of these columns.
    """
    return score_rows(read_rows(path), path.name, constants)


def score_rows(rows: Sequence[RawRow], name: str, constants: Calibration | None = None) -> Score:
    """Scores rows; ``name`` is for the sentence of the error. Raises ValueError as ``score_file``."""
    columns = set(rows[0])
    if not columns >= {"hardware", "engine", "reliability"} or not columns & {"metric", "speedup"}:
        raise ValueError(
            f"{name} cannot be scored: it needs the columns hardware, engine, model, weight_format, batch, prompt_len, "
            "gen_len, metric, value and reliability, or those of the speculation file."
        )
    found = constants or calibration()
    scored: list[Scored] = []
    skipped: dict[Metric, Counter[str]] = {}
    for row in rows:
        try:
            scored.append(_speedup(row, found) if "speedup" in columns else _rate(row, found))
        except ValueError as reason:  # Skipped, or a count that no step can have
            skipped.setdefault(_metric_of(row), Counter())[str(reason)] += 1
    return Score(tuple(scored), skipped)


def table(score: Score) -> str:
    """The score as lines of text for a person."""
    lines = [f"{'':<34}{'n':>5}  {'median':>7}  {'p90':>7}  {'one constant':>12}"]
    for key, metric in KEYS:
        rows = score.of(metric)
        lines.append(_line(key, rows))
        only_a = [r for r in rows if r.reliability == "A"]
        if len(only_a) < len(rows):
            lines.append(_line("  reliability A", only_a))
        alone = [r for r in only_a if r.devices == 1]
        if metric != "speculation" and len(alone) < len(only_a):
            lines.append(_line("  reliability A, one device", alone))
        for reason, count in sorted(score.skipped.get(metric, {}).items(), key=lambda item: -item[1]):
            lines.append(f"  {count} skipped: {reason}")
    return "\n".join(lines)


def _rate(row: RawRow, constants: Calibration) -> Scored:
    _refuse_unreliable(row)
    if row.get("metric") in NOT_SCORED:
        raise Skipped(NOT_SCORED[row["metric"]])
    seen = observe(row)
    known = fingerprint(row) in _fitted_rows()
    values = constants.unseen(seen.device) if known else constants.values
    roofline = constants.roofline[seen.metric]
    baseline = roofline.get(seen.device, roofline[""]) if known else roofline[""]
    return Scored(
        seen.metric,
        f"{seen.setting.engine.family} {seen.setting.engine.backend}",
        device_class(seen.setting.hardware),
        seen.devices,
        seen.reliability,
        seen.seconds / seen.predicted_s(values) - 1,
        seen.seconds / (seen.roofline_s * baseline) - 1,
    )


def _speedup(row: RawRow, constants: Calibration) -> Scored:
    _refuse_unreliable(row)
    seen = observe_speedup(row)
    device = seen.device if speedup_fingerprint(row) in _fitted_speedups() else ""
    rounds = constants.rounds.get(device, constants.rounds[""])
    one = constants.roofline["speculation"]
    return Scored(
        "speculation",
        "tree" if seen.method.tree else "chain",
        seen.device,
        1,
        seen.reliability,
        seen.predicted(rounds) / seen.speedup - 1,
        seen.tokens / one.get(device, one[""]) / seen.speedup - 1,
    )


def _refuse_unreliable(row: RawRow) -> None:
    if row.get("reliability", "").strip().upper() == "C":
        raise Skipped("reliability C")


def _metric_of(row: RawRow) -> Metric:
    if "speedup" in row:
        return "speculation"
    name = row.get("metric", "")
    if not row.get("curve_id") and name in ("decode_tok_s", "tpot_ms"):
        return "decode"
    if not row.get("curve_id") and name in ("prefill_tok_s", "ttft_ms"):
        return "prefill"
    return "batching"


def _summary(rows: Sequence[Scored], skipped: Mapping[str, int]) -> dict[str, Any]:
    errors = np.abs([r.error for r in rows])
    return {
        "n": len(rows),
        "skipped": dict(skipped),
        "median_abs_rel_err": float(np.median(errors)) if rows else None,
        "p90_abs_rel_err": float(np.quantile(errors, 0.9)) if rows else None,
        "one_constant_median": float(np.median(np.abs([r.baseline_error for r in rows]))) if rows else None,
    }


def _line(name: str, rows: Sequence[Scored]) -> str:
    if not rows:
        return f"{name:<34}{0:>5}"
    found = _summary(rows, {})
    shown = (found[k] for k in ("median_abs_rel_err", "p90_abs_rel_err", "one_constant_median"))
    median, p90, baseline = (f"{100 * x:.1f} %" for x in shown)
    return f"{name:<34}{len(rows):>5}  {median:>7}  {p90:>7}  {baseline:>12}"


@cache
def _fitted_rows() -> frozenset[tuple[str, ...]]:
    rows = (row for name in ("measured.csv", "batching.csv") for row in read_rows(MEASURED / name))
    return frozenset(fingerprint(row) for row in rows if row["reliability"] == "A")


@cache
def _fitted_speedups() -> frozenset[tuple[str, ...]]:
    return frozenset(s.fingerprint for s in load_speedups())
