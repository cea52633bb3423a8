"""The calibrated constants: read from their file, and looked up for a setting.

``assets/catalog/efficiency.json`` is written by ``python -m sim calibrate`` and holds, for each constant, its value and
how many measurements it rests on; the same constants fitted without each device in turn, so that a device's own
measurements can be predicted without having been seen; and how far such predictions were off, which makes intervals.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sim.engines import Setting
from sim.rates import PRIOR_FACTORS, RATES, factors, rates_of, unit_seconds
from sim.work import MECHANISMS

EFFICIENCY = Path(__file__).parents[1] / "assets" / "catalog" / "efficiency.json"
FORMAT = 1
UNSEEN_KIND = "unseen kind"

Metric = Literal["decode", "prefill", "batching", "speculation"]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Residuals:
    """How far predictions of unseen devices were off, as measured over predicted time: tenth, half, ninetieth."""

    n: int
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """``values``: constants by name, rates as such, factors as factors. ``without``: the same, fitted without a device.

    ``n``: measurements that each constant is fitted on. ``residuals``: by metric, then by engine family ("" for all,
    ``UNSEEN_KIND`` for predictions without the whole engine and without the whole class).
    ``roofline``: by metric, the one constant of a plain roofline, over all devices ("") and without each.
    ``rounds``: what a round of speculation costs beyond the closed form, over all devices ("") and without each.
    """

    values: Mapping[str, float]
    n: Mapping[str, int]
    without: Mapping[str, Mapping[str, float]]
    residuals: Mapping[str, Mapping[str, Residuals]]
    roofline: Mapping[str, Mapping[str, float]]
    rounds: Mapping[str, Mapping[str, float]]

    def unseen(self, device: str) -> Mapping[str, float]:
        """The constants fitted without a device's measurements; all of them where it has none."""
        return self.without.get(device, self.values)

    def spread(self, metric: Metric, setting: Setting) -> Residuals:
        """The residuals of the engine's family, of all families where it has too few; of predictions without any of
        their kind where nothing of the engine's family, its API or the device's class was ever measured."""
        of_metric = self.residuals[metric]
        kinds = {name for name, _ in factors(setting, "bandwidth")[1:]}
        if not all(self.n.get(name) for name in kinds) and UNSEEN_KIND in of_metric:
            return of_metric[UNSEEN_KIND]
        return of_metric.get(setting.engine.family, of_metric[""])


def seconds_per_unit(setting: Setting, constants: Mapping[str, float]) -> FloatArray:
    """(mechanisms,) seconds that a unit of each mechanism takes. Raises ValueError for a device without rates."""
    rate = {name: math.exp(_log_rate(setting, name, constants)) for name in RATES}
    factor = [math.prod(rate[name] ** sign for name, sign in rates_of(mechanism)) for mechanism in MECHANISMS]
    seconds: FloatArray = unit_seconds(setting) * np.array(factor)
    return seconds


def serial_share(setting: Setting, constants: Mapping[str, float]) -> float:
    """Share of a pipelined prefill that the devices of a layer split do not overlap, at most all of it."""
    return min(1.0, math.exp(_log_rate(setting, "serial", constants)))


def prior_value(name: str) -> float:
    """What a constant is before any measurement."""
    return RATES[name].prior if name in RATES else PRIOR_FACTORS.get(name, 1.0)


def _log_rate(setting: Setting, rate: str, constants: Mapping[str, float]) -> float:
    return sum(weight * math.log(constants.get(name, prior_value(name))) for name, weight in factors(setting, rate))


@cache
def calibration() -> Calibration:
    """The shipped constants. Raises OSError or ValueError where the file is missing or of another version."""
    return from_json(json.loads(EFFICIENCY.read_text(encoding="utf-8")))


def to_json(result: Calibration) -> dict[str, Any]:
    """The file's content: four significant digits of each constant."""
    names = list(result.values)
    return {
        "format": FORMAT,
        "constants": {name: {"value": _digits(result.values[name]), "n": result.n[name]} for name in names},
        "without": {
            device: [_digits(values[name]) for name in names] for device, values in sorted(result.without.items())
        },
        "residuals": {
            metric: {
                family: {"n": r.n, "p10": _digits(r.p10), "p50": _digits(r.p50), "p90": _digits(r.p90)}
                for family, r in by.items()
            }
            for metric, by in result.residuals.items()
        },
        "roofline": {m: {d: _digits(v) for d, v in by.items()} for m, by in result.roofline.items()},
        "rounds": {d: {k: _digits(v) for k, v in by.items()} for d, by in result.rounds.items()},
    }


def to_text(result: Calibration) -> str:
    """The file as text, an entry a line, so that a new fit shows as a readable difference."""
    sections = []
    for name, content in to_json(result).items():
        if not isinstance(content, dict):
            sections.append(f"{json.dumps(name)}: {json.dumps(content)}")
            continue
        lines = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in content.items())
        sections.append(f"{json.dumps(name)}: {{\n  {lines}\n }}")
    return "{\n " + ",\n ".join(sections) + "\n}\n"


def from_json(content: Mapping[str, Any]) -> Calibration:
    """``to_json`` read back. Raises ValueError for another version."""
    if content.get("format") != FORMAT:
        raise ValueError("The file of calibrated constants is of another version; run: python -m sim calibrate")
    constants = content["constants"]
    return Calibration(
        values={name: c["value"] for name, c in constants.items()},
        n={name: c["n"] for name, c in constants.items()},
        without={device: dict(zip(constants, values, strict=True)) for device, values in content["without"].items()},
        residuals={m: {f: Residuals(**r) for f, r in by.items()} for m, by in content["residuals"].items()},
        roofline=content["roofline"],
        rounds=content["rounds"],
    )


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
