"""Measured ceilings: the greatest counts, a torn cache is measured anew, and no run passes 100 %."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.ceilings import Rates, best_time, choose, full_plan, measure, measured, own_shapes, published, raised
from telemetry.events import Ceilings, Device, Peak
from tests.engine.fakes import MACHINE, QUICK, SPEC

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("one_thread")]
CPU = torch.device("cpu")


def test_measuring_gives_one_peak_for_each_dtype_and_working_set() -> None:
    peaks = measure(CPU, own_shapes(SPEC), replace(QUICK, read_bytes=(1 << 20, 1 << 18)))
    assert [(p.quantity, p.dtype, p.working_set_bytes) for p in peaks] == [
        ("flops", "fp32", None),
        ("flops", "bf16", None),
        ("bytes_per_s", None, 1 << 20),
        ("bytes_per_s", None, 1 << 18),
    ]
    assert all(p.value > 1e5 and p.provenance == "measured" and p.label.startswith("measured, ") for p in peaks)


def test_the_full_plan_reads_a_gibibyte_and_the_models_own_smaller_sizes() -> None:
    spec = replace(SPEC, n_layers=30, hidden=576, n_heads=9, n_kv_heads=3, head_dim=64, intermediate=1536, vocab=49152)
    plan = full_plan(CPU, spec)
    assert plan.read_bytes[0] == 1 << 30
    assert plan.read_bytes[1] == 134_515_008 * 4  # SmolLM2-135M's published parameter count, in fp32
    assert list(plan.read_bytes) == sorted(plan.read_bytes, reverse=True)
    huge = replace(SPEC, n_layers=80, hidden=8192, n_heads=64, head_dim=128, intermediate=28672)
    assert full_plan(CPU, huge).read_bytes == (1 << 30,)
    assert plan.compute_budget_s + plan.dram_budget_s + 4 * plan.own_size_budget_s < 10


def test_a_kernel_that_does_not_run_is_left_out() -> None:
    def broken() -> object:
        raise RuntimeError("not implemented for this dtype")

    assert best_time(broken, CPU, 0.001) is None


def test_peaks_are_kept_and_a_torn_or_foreign_file_is_measured_anew(tmp_path: Path) -> None:
    calls: list[int] = []

    def peaks(machine: object = MACHINE) -> tuple[Peak, ...]:
        return measured(machine, own_shapes(SPEC), QUICK, tmp_path, lambda: calls.append(1))  # type: ignore[arg-type]

    first = peaks()
    assert peaks() == first
    assert len(calls) == 1
    (file,) = tmp_path.glob("ceilings-*.json")
    whole = file.read_text()
    for damaged in (whole[: len(whole) // 2], "", "[]", whole.replace('"value"', '"valve"'), '{"version": 99}'):
        file.write_text(damaged)
        calls.clear()
        assert len(peaks()) == len(first)
        assert len(calls) == 1
    calls.clear()
    peaks(replace(MACHINE, threads=7))
    assert len(calls) == 1
    assert not list(tmp_path.glob("*.part"))


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert measured(MACHINE, own_shapes(SPEC), QUICK, blocked / "cache")


def test_a_known_device_has_its_datasheet_and_the_drivers_figure() -> None:
    peaks = published(replace(MACHINE, name="NVIDIA H100 80GB HBM3", driver_bytes_per_s=3.352e12))
    assert {(p.quantity, p.provenance) for p in peaks} >= {("flops", "datasheet"), ("bytes_per_s", "driver")}
    assert published(replace(MACHINE, name="Some unheard-of processor")) == ()


def test_no_ceiling_stays_below_what_the_run_reached() -> None:
    low = Peak("flops", 100.0, "measured", "measured here", "fp32")
    memory = Peak("bytes_per_s", 50.0, "datasheet", "datasheet")
    before = Ceilings(low, low, memory)
    after = raised(before, Rates(120.0, 10.0), Rates(5.0, 60.0))
    assert after.prefill_compute is not None and after.memory is not None
    assert (after.prefill_compute.value, after.memory.value) == (120.0, 60.0)
    assert (after.memory.provenance, after.memory.label) == ("measured", "reached here by this run")
    assert after.decode_compute == low
    assert raised(before, Rates(1.0, 1.0), None) == before
    assert raised(Ceilings(), Rates(1.0, 1.0), Rates(1.0, 1.0)) == Ceilings()


def test_weights_that_fit_the_cache_are_held_against_a_read_of_their_size() -> None:
    peaks = (
        Peak("bytes_per_s", 40e9, "measured", "1 GiB", working_set_bytes=1 << 30),
        Peak("bytes_per_s", 90e9, "measured", "100 MB", working_set_bytes=100_000_000),
    )
    device = Device("cpu", "cpu", last_level_cache_bytes=300 << 20, peaks=peaks)
    assert (
        choose(device, "fp32", "fp32", 98_000_000).memory,
        choose(device, "fp32", "fp32", 98_000_000).from_cache,
    ) == (
        peaks[1],
        True,
    )
    assert choose(device, "fp32", "fp32", 538 << 20).memory == peaks[0]
