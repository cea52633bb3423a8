"""Fitting the constants on published measurements: ``python -m sim calibrate``.

One fit explains all rows at once: the logarithm of each measured time is to equal the logarithm of a sum of terms, and
each term is a known quantity times rates whose logarithms are linear in the constants. So the derivative is exact and
few Gauss-Newton steps suffice. Errors count quadratically up to 1.5 times ``NOISE`` and linearly beyond (Huber), since
some published rows are off by a factor that no mechanism explains. Each constant is pulled to its prior (``rates.py``):
that is what makes it possible to fit more constants than some families have devices, and to predict the others.

For the honest error of an unseen device, the whole fit is repeated without each device in turn; those fits are kept,
and their residuals become the intervals. Rows of reliability B and C are never fitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim.efficiency import UNSEEN_KIND, Calibration, Metric, Residuals, prior_value
from sim.engines import device_class
from sim.observations import Observation, Skipped, observe, observe_kernel, read_rows
from sim.rates import PRIOR_FACTORS, RATES, factors, rates_of, unit_seconds
from sim.rounds import Speedup, fit_rounds, observe_speedup
from sim.work import MECHANISMS

FloatArray = NDArray[np.float64]

MEASURED = Path(__file__).parents[1] / "assets" / "catalog" / "measured"
NOISE = 0.08  # relative, of a published row: what two runs of one benchmark differ by, model error included
HUBER = 1.5
SERVED_WEIGHT = 0.3  # whole requests, static batches: several phases in one figure
KERNEL_WEIGHT = 0.05  # 440 rows of two sources' profiles must not outvote whole models
MOST_ITERATIONS = 60
LEAST_GAIN = 0.02  # of the loss, which is about 400 at the end
ENOUGH = 20  # residuals for an interval of their own


@dataclass(frozen=True, slots=True)
class _Design:
    """``log_units``: (terms, rows) logarithm of asked times unit seconds, -inf where nothing is asked. ``signs``:
    (terms, rates) how a term's time goes with a rate. ``applies``: (rows, constants) weight of a constant in its rate,
    ``rate_of``: (constants,) the rate that it belongs to, of which each has one."""

    names: tuple[str, ...]
    log_units: FloatArray
    signs: FloatArray
    applies: FloatArray
    rate_of: NDArray[np.intp]
    log_seconds: FloatArray
    weights: FloatArray
    prior: FloatArray
    spread: FloatArray

    def of(self, rows: NDArray[np.bool_]) -> _Design:
        """The design of some of the rows."""
        return replace(
            self,
            log_units=self.log_units[:, rows],
            applies=self.applies[rows],
            log_seconds=self.log_seconds[rows],
            weights=self.weights[rows],
        )


def load_observations(folder: Path = MEASURED) -> list[Observation]:
    """All rows of reliability A that the model can read, with their weights. Raises OSError for a missing file."""
    found: list[Observation] = []
    for name in ("measured.csv", "batching.csv"):
        for row in read_rows(folder / name):
            whole = row["metric"] in ("throughput_tok_s", "ttft_ms", "tpot_ms") and not row.get("curve_id")
            with suppress(Skipped):
                found.append(replace(observe(row), weight=SERVED_WEIGHT if whole else 1.0))
    kernels = [replace(observe_kernel(row), weight=KERNEL_WEIGHT) for row in read_rows(folder / "kernels.csv")]
    return [o for o in found if o.reliability == "A"] + kernels


def load_speedups(folder: Path = MEASURED) -> list[Speedup]:
    """All speed-ups of reliability A that the closed form can read. Raises OSError for a missing file."""
    found: list[Speedup] = []
    for row in read_rows(folder / "speculation.csv"):
        with suppress(Skipped):
            found.append(observe_speedup(row))
    return [s for s in found if s.reliability == "A"]


def calibrate(observations: Sequence[Observation], speedups: Sequence[Speedup]) -> Calibration:
    """The constants of all observations, and those without each device. Raises ValueError without observations."""
    if not observations:
        raise ValueError("There is nothing to calibrate on.")
    design = _design(observations)
    values = _named(design, _fit(design))
    without = leave_out(observations, [o.device for o in observations])
    n = {name: int(count) for name, count in zip(design.names, _touching(design), strict=True)}
    rounds = fit_rounds(speedups)
    residuals = _residuals(observations, without) | {"speculation": {"": _round_residuals(speedups, rounds)}}
    for metric, unseen in _unseen_kinds(observations).items():
        residuals[metric][UNSEEN_KIND] = unseen
    rooflines = _rooflines(observations) | {"speculation": _round_baselines(speedups)}
    return Calibration(values, n, without, residuals, rooflines, rounds)


def leave_out(observations: Sequence[Observation], groups: Sequence[str]) -> dict[str, dict[str, float]]:
    """The constants fitted without each group in turn; ``groups``: the group of each observation."""
    design = _design(observations)
    return {
        group: _named(design, _fit(design.of(np.array([g != group for g in groups])))) for group in sorted(set(groups))
    }


def unseen_ratio(observation: Observation, without: Mapping[str, Mapping[str, float]]) -> float:
    """Measured over predicted time, by the constants fitted without the observation's device."""
    return observation.seconds / observation.predicted_s(without[observation.device])


def _design(observations: Sequence[Observation]) -> _Design:
    names = _constant_names(observations)
    index, rates, terms = {name: i for i, name in enumerate(names)}, list(RATES), len(MECHANISMS)
    log_units = np.full((2 * terms, len(observations)), -np.inf)
    applies = np.zeros((len(observations), len(names)))
    for row, o in enumerate(observations):
        seconds = unit_seconds(o.setting)
        with np.errstate(divide="ignore"):
            log_units[:, row] = np.log(np.concatenate([o.asked * seconds, o.asked_alone * seconds]))
        for rate in rates:
            for name, weight in factors(o.setting, rate):
                applies[row, index[name]] = weight
    signs = np.zeros((2 * terms, len(rates)))
    for t, mechanism in enumerate(MECHANISMS):
        for rate, sign in rates_of(mechanism):
            signs[[t, terms + t], rates.index(rate)] += sign
    signs[terms:, rates.index("serial")] = 1
    return _Design(
        names,
        log_units,
        signs,
        applies,
        np.array([rates.index(name.partition(", ")[0]) for name in names]),
        np.log([o.seconds for o in observations]),
        np.array([o.weight for o in observations]),
        np.log([prior_value(name) for name in names]),
        np.array([_spread(name) for name in names]),
    )


def _touching(design: _Design) -> NDArray[np.int_]:
    """(constants,) rows whose time a constant changes."""
    used = np.isfinite(design.log_units).T.astype(float) @ np.abs(design.signs)  # (rows, rates)
    counts: NDArray[np.int_] = ((design.applies != 0) & (used[:, design.rate_of] > 0)).sum(axis=0)
    return counts


def _constant_names(observations: Iterable[Observation]) -> tuple[str, ...]:
    names: Counter[str] = Counter(dict.fromkeys([*RATES, *PRIOR_FACTORS], 1))
    for o in observations:
        for rate in RATES:
            names.update(name for name, _ in factors(o.setting, rate))
    return tuple(sorted(names))


def _spread(name: str) -> float:
    rate, _, factor = name.partition(", ")
    if not factor:
        return RATES[rate].spread
    return next(spread for kind, spread in _longest_first(RATES[rate].by) if factor.startswith(kind))


def _longest_first(by: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(by.items(), key=lambda item: -len(item[0]))  # "engine on class" before "engine"


def _fit(design: _Design) -> FloatArray:
    """The logarithms of the constants: Gauss-Newton on the Huber loss with Gaussian priors."""
    theta = design.prior.copy()
    terms, error, loss = _evaluate(theta, design)
    for _ in range(MOST_ITERATIONS):
        per_rate = (terms / terms.sum(axis=0)).T @ design.signs  # (rows, rates): d log time / d log rate
        jacobian = design.applies * per_rate[:, design.rate_of] / NOISE
        robust = design.weights * np.minimum(1.0, HUBER / np.maximum(np.abs(error), 1e-12))
        gradient = jacobian.T @ (robust * error) + (theta - design.prior) / design.spread**2
        curvature = (jacobian.T * robust) @ jacobian + np.diag(1 / design.spread**2)
        step = np.linalg.solve(curvature, gradient)
        scale, better = 1.0, None
        while scale > 1e-3:
            tried = _evaluate(theta - scale * step, design)
            if tried[2] < loss:
                better = tried
                break
            scale /= 2
        if better is None:
            break
        gained = loss - better[2]
        theta, (terms, error, loss) = theta - scale * step, better
        if gained < LEAST_GAIN:
            break
    return theta


def _evaluate(theta: FloatArray, design: _Design) -> tuple[FloatArray, FloatArray, float]:
    """Terms in seconds, errors in units of ``NOISE``, and the loss."""
    membership = design.rate_of[:, None] == np.arange(design.signs.shape[1])
    log_rates = (design.applies * theta) @ membership  # (rows, rates)
    terms = np.exp(design.log_units + design.signs @ log_rates.T)
    error = (np.log(terms.sum(axis=0)) - design.log_seconds) / NOISE
    size = np.abs(error)
    huber = np.where(size < HUBER, error**2 / 2, HUBER * size - HUBER**2 / 2)
    prior = float((((theta - design.prior) / design.spread) ** 2).sum()) / 2
    return terms, error, float((design.weights * huber).sum()) + prior


def _named(design: _Design, theta: FloatArray) -> dict[str, float]:
    return {name: float(value) for name, value in zip(design.names, np.exp(theta), strict=True)}


def _residuals(
    observations: Sequence[Observation], without: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, Residuals]]:
    """By metric and engine family, kernels left out."""
    groups: dict[str, dict[str, list[float]]] = {}
    for o in observations:
        if not o.fingerprint:
            continue
        ratio = unseen_ratio(o, without)
        by = groups.setdefault(o.metric, {})
        for family in ("", o.setting.engine.family):
            by.setdefault(family, []).append(ratio)
    return {
        metric: {family: _spread_of(ratios) for family, ratios in by.items() if len(ratios) >= ENOUGH or not family}
        for metric, by in groups.items()
    }


def _unseen_kinds(observations: Sequence[Observation]) -> dict[Metric, Residuals]:
    """Residuals of predictions without the engine (family and API), and without the class of the device."""
    ratios: dict[Metric, list[float]] = {}
    for kind in (engine_kind, device_kind):
        without = leave_out(observations, [kind(o) for o in observations])
        for o in observations:
            if o.fingerprint:
                ratios.setdefault(o.metric, []).append(o.seconds / o.predicted_s(without[kind(o)]))
    return {metric: _spread_of(found) for metric, found in ratios.items()}


def engine_kind(observation: Observation) -> str:
    """Family and API."""
    engine = observation.setting.engine
    return f"{engine.family} {engine.backend}"


def device_kind(observation: Observation) -> str:
    """The class of the device."""
    return device_class(observation.setting.hardware)


def _spread_of(ratios: Sequence[float]) -> Residuals:
    tenth, half, ninetieth = np.quantile(ratios, (0.1, 0.5, 0.9))
    return Residuals(len(ratios), float(tenth), float(half), float(ninetieth))


def _rooflines(observations: Sequence[Observation]) -> dict[str, dict[str, float]]:
    """The baseline to beat: measured over roofline time, its median over all devices and over all but each."""
    found: dict[str, dict[str, float]] = {}
    metrics: tuple[Metric, ...] = ("decode", "prefill", "batching")
    for metric in metrics:
        mine = [o for o in observations if o.metric == metric and o.fingerprint]
        ratios = np.array([o.seconds / o.roofline_s for o in mine])
        devices = np.array([o.device for o in mine])
        found[metric] = {"": float(np.median(ratios))} | {
            str(d): float(np.median(ratios[devices != d])) for d in np.unique(devices) if (devices != d).any()
        }
    return found


def _round_residuals(speedups: Sequence[Speedup], rounds: Mapping[str, Mapping[str, float]]) -> Residuals:
    """Predicted over measured speed-up, which is measured over predicted time."""
    return _spread_of([s.predicted(rounds[s.device]) / s.speedup for s in speedups])


def _round_baselines(speedups: Sequence[Speedup]) -> dict[str, float]:
    """The baseline of speculation: passes a round costs, one figure for all methods."""
    costs = np.array([s.tokens / s.speedup for s in speedups])
    devices = np.array([s.device for s in speedups])
    return {"": float(np.median(costs))} | {str(d): float(np.median(costs[devices != d])) for d in np.unique(devices)}
