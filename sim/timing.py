"""How long a step takes, and what holds it up.

    time = sum over mechanisms of (what the step asks) x (what the device publishes) x (a calibrated rate)

The mechanisms are those of ``work.py``, the rates those of ``rates.py``. The terms are added, not overlapped: measured
steps of 1 to 32 rows on one model take the time of streaming the weights *plus* that of the arithmetic, to within some
percent, because kernels of one stream run one after the other and none overlaps all of its loads with its products.

The bound of a predicted step is the largest group of terms: memory (weights, KV, unfused scores), compute (products,
attention, unpacking) or overhead (launches, all-reduces, handing over). A measured step has no terms; there
``roofline.regime`` decides by the shares of the ceilings. The roofline itself: Williams, Waterman, Patterson 2009.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.efficiency import calibration, seconds_per_unit
from sim.engines import Setting
from sim.roofline import RegimeName
from sim.work import COMPUTE, MECHANISMS, MEMORY, Work

FloatArray = NDArray[np.float64]

_GROUPS: tuple[tuple[RegimeName, tuple[str, ...]], ...] = (
    ("compute", COMPUTE),
    ("memory", MEMORY),
    ("overhead", tuple(m for m in MECHANISMS if m not in COMPUTE + MEMORY)),
)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """``terms_s``: (mechanisms, steps) seconds that each mechanism takes."""

    terms_s: FloatArray

    @property
    def total_s(self) -> FloatArray:
        """(steps,) seconds."""
        total: FloatArray = self.terms_s.sum(axis=0)
        return total

    def group_s(self, name: RegimeName) -> FloatArray:
        """(steps,) seconds of one group of mechanisms."""
        members = next(group for found, group in _GROUPS if found == name)
        total: FloatArray = self.terms_s[[MECHANISMS.index(m) for m in members]].sum(axis=0)
        return total

    def bound(self, step: int = 0) -> RegimeName:
        """What takes the most of a step's time."""
        return max((name for name, _ in _GROUPS), key=lambda name: float(self.group_s(name)[step]))


def step_times(work: Work, setting: Setting, constants: Mapping[str, float] | None = None) -> StepTimes:
    """Times of the steps of ``work`` (made for the setting's ranks) on a setting. Raises ValueError without rates."""
    values = calibration().values if constants is None else constants
    return StepTimes(work.asked * seconds_per_unit(setting, values)[:, None])


def many_times(work: Work, settings: Sequence[Setting], constants: Mapping[str, float] | None = None) -> FloatArray:
    """(settings, steps) seconds: every step on every setting, in one matrix product."""
    values = calibration().values if constants is None else constants
    units = np.stack([seconds_per_unit(setting, values) for setting in settings])
    return units @ work.asked
