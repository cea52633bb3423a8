"""Predictions for one very machine: its own ceilings in, the calibrated model's figures out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sim.here import Basis
from sim.models import find_model
from sim.scenario import find_scenario

HERE = Basis(
    spec=find_model("smollm2-135m"),
    machine="AMD EPYC",
    kind="cpu",
    memory_bytes=24 << 30,
    native=True,
    graphs=False,
    prefill_weights="fp32",
    decode_weights="fp32",
    prefill_flops_per_s=519e9,
    decode_flops_per_s=519e9,
    bytes_per_s=48.4e9,
    chunk_tokens=256,
    kv_bytes_per_element=4.0,
)


@pytest.mark.parametrize("name", ["smollm2-135m", "mixtral-8x7b", "deepseek-v3"])
def test_it_survives_a_line_of_json(name: str) -> None:
    basis = replace(HERE, spec=find_model(name))
    assert Basis.from_json(json.loads(json.dumps(basis.to_json()))) == basis


@pytest.mark.parametrize("lacking", ["spec", "machine", "bytes_per_s"])
def test_a_basis_that_lacks_a_field_is_refused(lacking: str) -> None:
    payload = {name: value for name, value in HERE.to_json().items() if name != lacking}
    with pytest.raises(ValueError, match="lacks a field"):
        Basis.from_json(payload)
    with pytest.raises(ValueError, match="lacks a field"):
        Basis.from_json(HERE.to_json() | {"spec": {}})


def test_it_never_promises_more_than_the_ceilings() -> None:
    found = HERE.predict(500, 64)
    # 134.5 M weights of 4 bytes at 48.4 GB/s; 2 operations a weight at 519 GFLOP/s, the tied table of 28.3 M but once
    assert found.tpot_s and found.tpot_s > 134.5e6 * 4 / 48.4e9
    assert found.ttft_s and found.ttft_s > 500 * 2 * (134.5e6 - 28.3e6) / 519e9
    assert found.mbu and found.mbu < 1
    assert found.tpot_interval_s and found.tpot_interval_s[0] < found.tpot_s < found.tpot_interval_s[1]


def test_a_faster_memory_writes_faster_and_faster_products_read_faster() -> None:
    before = HERE.predict(500, 64)
    memory = replace(HERE, bytes_per_s=2 * HERE.bytes_per_s).predict(500, 64)
    products = replace(HERE, prefill_flops_per_s=2 * HERE.prefill_flops_per_s).predict(500, 64)
    assert memory.tpot_s and before.tpot_s and memory.tpot_s < 0.8 * before.tpot_s
    assert products.ttft_s and before.ttft_s and products.ttft_s < 0.8 * before.ttft_s
    assert products.tpot_s == before.tpot_s


def test_each_phase_is_predicted_with_its_own_weights() -> None:
    mixed = replace(HERE, decode_weights="int4")
    assert mixed.predict(500, 64).ttft_s == HERE.predict(500, 64).ttft_s
    assert mixed.predict(500, 64).bytes_per_token.weights < HERE.predict(500, 64).bytes_per_token.weights / 3


def test_a_gpu_of_the_catalog_keeps_its_other_rates() -> None:
    scenario = find_scenario("llama-3-8b", "h100-sxm", "bf16", 2667, 67)
    device = scenario.setting.hardware
    assert device.bf16_flops and device.bandwidth_bytes_per_s
    gpu = replace(
        HERE,
        spec=scenario.spec,
        machine="NVIDIA H100 80GB HBM3",
        kind="cuda",
        memory_bytes=device.memory_bytes,
        graphs=True,
        prefill_weights="bf16",
        decode_weights="bf16",
        prefill_flops_per_s=device.bf16_flops,
        decode_flops_per_s=device.bf16_flops,
        bytes_per_s=device.bandwidth_bytes_per_s,
        chunk_tokens=8192,
        kv_bytes_per_element=2.0,
    )
    found, published = gpu.predict(2667, 67), scenario.predict()
    assert found.tpot_s == pytest.approx(published.tpot_s, rel=0.5)
    assert found.memory.available_bytes == device.memory_bytes


@pytest.mark.parametrize(("prompt", "new"), [(0, 1), (1, 0), (-5, 3), (10**12, 1)])
def test_impossible_counts_are_one_sentence(prompt: int, new: int) -> None:
    with pytest.raises(ValueError, match="whole number"):
        HERE.predict(prompt, new)
