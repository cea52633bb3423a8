"""Which limit is named, and which ceiling may stand under a percentage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sim.roofline import CeilingChoice, Regime, choose_ceilings, regime
from telemetry.events import Peak

GIB = 1 << 30
SHEET_BF16 = Peak("flops", 989e12, "datasheet", "datasheet", "bf16")
SHEET_READ = Peak("bytes_per_s", 3350e9, "datasheet", "datasheet")
DRIVER_READ = Peak("bytes_per_s", 3352e9, "driver", "memory clock x bus width")
BF16 = Peak("flops", 700e12, "measured", "measured here", "bf16")
FP32 = Peak("flops", 50e12, "measured", "measured here", "fp32")
READ = Peak("bytes_per_s", 2900e9, "measured", "measured here", None, GIB)
CACHED = Peak("bytes_per_s", 9000e9, "measured", "measured here, from cache", None, 40 << 20)


@pytest.mark.parametrize(
    ("compute", "memory", "expected"),
    [
        (0.79, 0.10, Regime("compute", 0.79)),
        (0.03, 0.68, Regime("memory", 0.68)),
        (0.5, 0.1, Regime("compute", 0.5)),
        (0.1, 0.25, Regime("overhead", 0.75)),
        (0.0, 0.0, Regime("overhead", 1.0)),
        (1.04, 0.9, Regime("compute", 1.04)),
        (None, 0.9, Regime(None, None)),
        (0.9, None, Regime(None, None)),
    ],
)
def test_regime(compute: float | None, memory: float | None, expected: Regime) -> None:
    assert regime(compute, memory) == expected


def choose(*peaks: Peak, **changes: Any) -> CeilingChoice[Peak]:
    options: dict[str, Any] = {
        "prefill_dtype": "bf16",
        "decode_dtype": "bf16",
        "decode_weights_bytes": 16 * GIB,
        "last_level_cache_bytes": 50 << 20,
    }
    return choose_ceilings(peaks, **(options | changes))


def test_measured_beats_driver_beats_datasheet() -> None:
    assert choose(SHEET_BF16, SHEET_READ, DRIVER_READ, BF16, READ).memory == READ
    assert choose(SHEET_BF16, SHEET_READ, DRIVER_READ).memory == DRIVER_READ
    assert choose(SHEET_BF16, SHEET_READ).memory == SHEET_READ
    assert choose(SHEET_BF16, BF16).prefill_compute == BF16


def test_the_greatest_of_several_measurements_counts() -> None:
    better = replace(BF16, value=750e12)
    assert choose(BF16, better).prefill_compute == better


def test_each_phase_is_held_against_its_own_dtype() -> None:
    choice = choose(FP32, BF16, READ, prefill_dtype="fp32")
    assert (choice.prefill_compute, choice.decode_compute) == (FP32, BF16)


def test_no_peak_of_the_dtype_means_no_percentage() -> None:
    assert choose(FP32, READ).prefill_compute is None


def test_a_small_measured_read_never_speaks_for_dram() -> None:
    assert choose(CACHED).memory is None
    assert choose(CACHED, SHEET_READ).memory == SHEET_READ


def test_weights_in_the_cache_are_held_against_the_cache() -> None:
    choice = choose(READ, CACHED, SHEET_READ, decode_weights_bytes=45 << 20)
    assert choice.from_cache
    assert choice.memory == CACHED


def test_weights_in_the_cache_without_such_a_measurement_get_no_percentage() -> None:
    choice = choose(READ, SHEET_READ, decode_weights_bytes=45 << 20)
    assert choice.from_cache
    assert choice.memory is None


def test_unknown_cache_or_weights_claim_no_cache() -> None:
    assert not choose(READ, last_level_cache_bytes=None).from_cache
    assert not choose(READ, decode_weights_bytes=None).from_cache
