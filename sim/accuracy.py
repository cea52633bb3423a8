"""The tables of docs/accuracy.md: how far predictions of the unseen are off, and what each mechanism is worth.

Everything here is the error of a prediction by constants that were fitted without the thing predicted: without its
device (the figure that intervals and targets are about), without its engine's family and API, or without its class of
devices. An ablation fits everything again with one mechanism's work set to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sim.calibrate import device_kind, engine_kind, leave_out, unseen_ratio
from sim.efficiency import Calibration, Metric
from sim.observations import Observation
from sim.rounds import Speedup
from sim.work import MECHANISMS

METRICS: tuple[Metric, ...] = ("decode", "prefill", "batching")
WHOLE = 1.0  # weight of a row that is a single phase: those that targets are about


@dataclass(frozen=True, slots=True)
class Error:
    """Measured over predicted time less 1, of a row and of the plain roofline."""

    observation: Observation
    model: float
    roofline: float


def accuracy_tables(observations: Sequence[Observation], speedups: Sequence[Speedup], constants: Calibration) -> str:
    """All tables as Markdown."""
    errors = unseen_errors(observations, constants)
    parts = [
        "### Without the device\n\n" + _head("metric"),
        *(_line(name, found) for name, found in _targets(errors)),
        _speedup_line(speedups, constants),
        "\n### By engine and API\n\n" + _head("metric, engine"),
        *_grouped(errors, engine_kind),
        "\n### By class of device\n\n" + _head("metric, class"),
        *_grouped(errors, device_kind),
        "\n### Without the whole engine, and without the whole class\n\n| metric | n | without engine: median | p90 "
        "| without class: median | p90 |\n|---|---|---|---|---|---|",
        *_harder(observations),
        "\n### Without a mechanism\n\n"
        "| left out | decode: median | p90 | prefill: median | p90 | batching: median | p90 |\n"
        "|---|---|---|---|---|---|---|",
        *ablations(observations),
    ]
    return "\n".join(parts)


def unseen_errors(observations: Sequence[Observation], constants: Calibration) -> list[Error]:
    """The error of each row by constants that had not seen its device; kernel rows left out."""
    return [
        Error(
            o,
            unseen_ratio(o, constants.without) - 1,
            o.seconds / (o.roofline_s * constants.roofline[o.metric].get(o.device, 1.0)) - 1,
        )
        for o in observations
        if o.fingerprint
    ]


def ablations(observations: Sequence[Observation]) -> Iterable[str]:
    """A line a mechanism: the errors of a model without it."""
    yield _ablation("nothing", observations)
    for name in ("unpack", "launches", "steps", "epilogue", "scores", "attention", "cache", "all_reduce"):
        index = MECHANISMS.index(name)
        yield _ablation(name, [_without(o, index) for o in observations])


def _without(o: Observation, mechanism: int) -> Observation:
    asked, alone = o.asked.copy(), o.asked_alone.copy()
    asked[mechanism] = alone[mechanism] = 0.0
    return replace(o, asked=asked, asked_alone=alone)


def _ablation(name: str, observations: Sequence[Observation]) -> str:
    without = leave_out(observations, [o.device for o in observations])
    cells = []
    for metric in METRICS:
        found = [abs(unseen_ratio(o, without) - 1) for o in observations if _counts(o, metric)]
        cells += [_percent(np.median(found)), _percent(np.quantile(found, 0.9))]
    return f"| {name} | " + " | ".join(cells) + " |"


def _counts(o: Observation, metric: Metric) -> bool:
    return o.metric == metric and bool(o.fingerprint) and o.weight == WHOLE


def _targets(errors: Sequence[Error]) -> Iterable[tuple[str, list[Error]]]:
    whole = [e for e in errors if e.observation.weight == WHOLE]
    for metric in METRICS:
        yield metric, [e for e in whole if e.observation.metric == metric]
        yield (
            f"{metric}, one device",
            [e for e in whole if e.observation.metric == metric and e.observation.devices == 1],
        )


def _speedup_line(speedups: Sequence[Speedup], constants: Calibration) -> str:
    model = [abs(s.predicted(constants.rounds[s.device]) / s.speedup - 1) for s in speedups]
    one = constants.roofline["speculation"]
    plain = [abs(s.tokens / one[s.device] / s.speedup - 1) for s in speedups]
    cells = (np.median(model), np.quantile(model, 0.9), np.median(plain))
    return f"| speculation | {len(model)} | " + " | ".join(_percent(c) for c in cells) + " |"


def _grouped(errors: Sequence[Error], key: Callable[[Observation], str]) -> Iterable[str]:
    for metric in METRICS:
        mine = [e for e in errors if e.observation.metric == metric]
        for group in sorted({key(e.observation) for e in mine}):
            yield _line(f"{metric}, {group}", [e for e in mine if key(e.observation) == group])


def _harder(observations: Sequence[Observation]) -> Iterable[str]:
    keys: tuple[Callable[[Observation], str], ...] = (engine_kind, device_kind)
    fits = [(key, leave_out(observations, [key(o) for o in observations])) for key in keys]
    for metric in METRICS:
        mine = [o for o in observations if _counts(o, metric)]
        cells = []
        for key, without in fits:
            found = [abs(o.seconds / o.predicted_s(without[key(o)]) - 1) for o in mine]
            cells += [_percent(np.median(found)), _percent(np.quantile(found, 0.9))]
        yield f"| {metric} | {len(mine)} | " + " | ".join(cells) + " |"


def _head(first: str) -> str:
    return f"| {first} | n | median | p90 | one constant |\n|---|---|---|---|---|"


def _line(name: str, errors: Sequence[Error]) -> str:
    model, roofline = np.abs([e.model for e in errors]), np.abs([e.roofline for e in errors])
    cells = (np.median(model), np.quantile(model, 0.9), np.median(roofline))
    return f"| {name} | {len(errors)} | " + " | ".join(_percent(c) for c in cells) + " |"


def _percent(share: float | np.floating) -> str:
    return f"{100 * float(share):.1f} %"
