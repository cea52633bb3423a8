"""The fit: it finds constants that are there, sees nothing it must not see, and the shipped file is what it gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sim.calibrate import calibrate, leave_out, load_observations, load_speedups, unseen_ratio
from sim.efficiency import calibration, prior_value, seconds_per_unit
from sim.observations import Observation
from sim.rounds import fit_rounds

OBSERVATIONS = load_observations()
DEVICES = ("RTX 4090", "RTX 3090", "A100 SXM4 80GB")


def some() -> list[Observation]:
    return [o for o in OBSERVATIONS if o.device in DEVICES and o.fingerprint]


def test_constants_that_made_the_times_are_found_again() -> None:
    """Times are made by the model itself with other constants; what was fitted must give those times back."""
    true = dict(calibration().values) | {"bandwidth": 0.8, "launch": 6e-5, "compute, path int8": 0.8}
    made = [replace(o, seconds=o.predicted_s(true)) for o in some()]
    found = calibrate(made, load_speedups()).values
    ratios = [o.predicted_s(found) / o.seconds for o in made]
    assert max(abs(r - 1) for r in ratios) < 0.05


def test_a_device_left_out_is_not_seen() -> None:
    """Its measurements may be anything: what is predicted for it stays the same, and for others does not."""
    kept = some()
    groups = [o.device for o in kept]
    before = leave_out(kept, groups)
    spoiled = [replace(o, seconds=o.seconds * 3) if o.device == "RTX 4090" else o for o in kept]
    after = leave_out(spoiled, groups)
    assert after["RTX 4090"] == before["RTX 4090"]
    assert after["RTX 3090"]["bandwidth"] != pytest.approx(before["RTX 3090"]["bandwidth"], rel=1e-3)


def test_a_constant_that_nothing_speaks_for_stays_at_its_prior() -> None:
    only_cuda = [o for o in some() if o.setting.engine.family == "llama.cpp"]
    found = calibrate(only_cuda, load_speedups()).values
    assert found["launch, engine eager"] == pytest.approx(prior_value("launch, engine eager"))


def test_one_row_far_off_moves_little() -> None:
    """Huber: a row that is off by a factor of ten counts like one that is off by an eighth."""
    kept = some()
    spoiled = [replace(kept[0], seconds=kept[0].seconds * 10), *kept[1:]]
    base, moved = (leave_out(rows, ["x"] * len(rows)) for rows in (kept, spoiled))
    assert base["x"] == moved["x"]  # everything left out: priors
    one, other = calibrate(kept, load_speedups()), calibrate(spoiled, load_speedups())
    unit = (seconds_per_unit(kept[1].setting, c.values) for c in (one, other))
    first, second = (float(u @ kept[1].asked) for u in unit)
    assert second == pytest.approx(first, rel=0.03)


def test_only_reliable_rows_are_fitted() -> None:
    assert {o.reliability for o in OBSERVATIONS} == {"A"}
    assert {s.reliability for s in load_speedups()} == {"A"}


def test_the_shipped_constants_are_what_the_shipped_measurements_give() -> None:
    found, shipped = calibrate(OBSERVATIONS, load_speedups()), calibration()
    assert set(found.values) == set(shipped.values)
    for name, value in found.values.items():
        assert value == pytest.approx(shipped.values[name], rel=2e-3), f"run python -m sim calibrate ({name})"
    ratios = np.array([unseen_ratio(o, shipped.without) for o in OBSERVATIONS if o.metric == "decode"])
    assert np.quantile(ratios, 0.1) == pytest.approx(shipped.residuals["decode"][""].p10, rel=2e-3)


def test_the_cost_of_a_round_is_pulled_to_its_prior_where_little_is_known() -> None:
    speedups = load_speedups()
    few = [s for s in speedups if s.method.tree][:1]
    assert fit_rounds(few)[few[0].device] == pytest.approx({"chain": 0.05, "tree": 0.10})
    assert 0 < fit_rounds(speedups)[""]["tree"] < 0.3


def test_nothing_to_fit_is_said() -> None:
    with pytest.raises(ValueError, match="nothing to calibrate"):
        calibrate([], [])
