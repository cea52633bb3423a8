"""A step's time: what is asked, what a unit takes, and how the two add up."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.allreduce import bus_bytes_per_s, link_of, small_latencies_s
from sim.costs import step_costs
from sim.efficiency import Calibration, calibration, from_json, prior_value, seconds_per_unit, to_json
from sim.engines import Engine, Setting
from sim.formats import find_format
from sim.hardware import all_hardware, find_hardware
from sim.models import all_models, find_model
from sim.rates import RATES, factors, rates_of, unit_seconds
from sim.specs import ModelSpec
from sim.timing import many_times, step_times
from sim.weights import weight_bytes
from sim.work import COMPUTE, MECHANISMS, MEMORY, Work, work_of

LLAMA_2_7B = find_model("Llama-2-7b-hf")
SERVER = Engine("server", "cuda")
A100 = Setting(find_hardware("A100 SXM4 80GB"), SERVER, find_format("fp16"))


def decode(spec: ModelSpec, setting: Setting, batch: float = 1, context: float = 100) -> Work:
    weights = weight_bytes(spec, setting.weights, setting.tensor_parallel)
    return work_of(spec, batch, 1, context, weights, 2.0, tensor_parallel=setting.tensor_parallel)


def asked(work: Work, mechanism: str) -> float:
    return float(work.asked[MECHANISMS.index(mechanism), 0])


def test_a_decode_step_of_llama_2_7b_worked_by_hand() -> None:
    """6.607e9 weights are read (all but the embedding), 32 layers launched, 4 x 32 x 4096 FLOPs a cached position."""
    work = decode(LLAMA_2_7B, A100, context=99)
    assert asked(work, "weights") == pytest.approx(6.607e9 * 2, rel=0.001)
    assert asked(work, "unpack") == pytest.approx(6.607e9, rel=0.001)
    assert asked(work, "products") == pytest.approx(2 * 6.607e9, rel=0.001)
    assert asked(work, "cache") == 100 * 524288
    assert asked(work, "launches") == 32
    assert asked(work, "attention") == 0  # one row reads the cache; that is the cost
    assert [asked(work, m) for m in ("all_reduce", "wire", "handover", "experts")] == [0, 0, 0, 0]


def test_products_and_attention_are_the_flops_that_costs_count() -> None:
    weights = weight_bytes(LLAMA_2_7B, A100.weights)
    work = work_of(LLAMA_2_7B, 1, 512, 1000, weights, 2.0)
    costs = step_costs(LLAMA_2_7B, 1, 512, 1000, weights, 2.0, 2.0)
    assert asked(work, "products") + asked(work, "attention") == pytest.approx(float(costs.flops))
    pairs = 32 * (512 * 1000 + 512 * 513 / 2)  # layers x (new x cached + triangle)
    assert asked(work, "scores") == pytest.approx(32 * pairs)  # one score a head and pair


def test_experts_are_padded_to_tiles_only_where_tiles_are_used() -> None:
    mixtral = find_model("Mixtral-8x7B")
    weights = weight_bytes(mixtral, find_format("bf16"))
    one = work_of(mixtral, 1, 1, 0, weights, 2.0)
    many = work_of(mixtral, 1, 256, 0, weights, 2.0)  # 64 rows an expert, and half a tile of 16
    assert asked(many, "experts") == pytest.approx(256 * asked(one, "experts") * (1 + 8 / 64))


def test_ranks_share_the_work_and_pay_for_adding_up() -> None:
    two = replace(A100, tensor_parallel=2)
    work = decode(LLAMA_2_7B, two)
    assert asked(work, "weights") == pytest.approx(asked(decode(LLAMA_2_7B, A100), "weights") / 2, rel=0.001)
    assert asked(work, "all_reduce") == 64
    assert asked(work, "wire") == 64 * 4096 * 2  # 2 (n - 1) / n is 1 for two ranks


def test_every_mechanism_has_a_rate_or_none_and_belongs_to_one_group() -> None:
    assert set(MEMORY).isdisjoint(COMPUTE)
    for mechanism in MECHANISMS:
        for rate, sign in rates_of(mechanism):
            assert rate in RATES and sign in (-1, 1)


def test_what_was_never_seen_gets_what_its_class_and_kind_say() -> None:
    """No constant belongs to a device, and an unseen family falls back on the base and its prior."""
    devices = {h.name for h in all_hardware()}
    assert not any(device in name for name in calibration().values for device in devices)
    future = Setting(find_hardware("TPU v6e"), Engine("mlx", "xla"), find_format("NVFP4"))
    unseen = [name for rate in RATES for name, _ in factors(future, rate) if name not in calibration().values]
    assert unseen and all(prior_value(name) == 1.0 for name in unseen)
    assert np.isfinite(seconds_per_unit(future, calibration().values)).all()


@pytest.mark.parametrize("engine", [SERVER, Engine("llama.cpp", "cuda"), Engine("eager", "cuda", graphs=False)])
def test_every_device_prices_every_model(engine: Engine) -> None:
    form = find_format("Q4_0" if engine.family == "llama.cpp" else "bf16")
    rated = [h for h in all_hardware() if h.bandwidth_bytes_per_s and (h.fp32_flops or h.fp16_flops)]
    settings_ = [Setting(h, engine, form) for h in rated]
    for spec in all_models():
        seconds = many_times(decode(spec, settings_[0], batch=4, context=1000), settings_)
        assert np.isfinite(seconds).all() and (seconds > 0).all()


def test_ten_thousand_predictions_are_one_product_and_equal_single_ones() -> None:
    devices = [Setting(h, SERVER, A100.weights) for h in all_hardware() if h.vendor == "NVIDIA"][:20]
    batch, context = np.meshgrid(np.arange(1, 26), np.arange(0, 20_000, 1000))
    weights = weight_bytes(LLAMA_2_7B, A100.weights)
    seconds = many_times(work_of(LLAMA_2_7B, batch, 1, context, weights, 2.0), devices)
    assert seconds.shape == (20, 500)
    alone = work_of(LLAMA_2_7B, batch.ravel()[321], 1, context.ravel()[321], weights, 2.0)
    assert seconds[7, 321] == pytest.approx(float(step_times(alone, devices[7]).total_s[0]))


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 256),
    context=st.integers(0, 100_000),
    more=st.floats(1.01, 8),
    weights=st.sampled_from(["bf16", "Q4_K_M", "fp8"]),
)
def test_a_better_device_is_never_slower_and_more_work_never_faster(
    batch: int, context: int, more: float, weights: str
) -> None:
    setting = Setting(find_hardware("RTX 4090"), Engine("llama.cpp", "cuda"), find_format(weights))
    base = float(step_times(decode(LLAMA_2_7B, setting, batch, context), setting).total_s[0])
    rates = ("bandwidth_bytes_per_s", "fp16_accumulate_flops", "int8_ops", "fp16_flops")
    better = {name: getattr(setting.hardware, name) * more for name in rates}
    faster = replace(setting, hardware=replace(setting.hardware, **better))
    assert float(step_times(decode(LLAMA_2_7B, faster, batch, context), faster).total_s[0]) < base
    longer = step_times(decode(LLAMA_2_7B, setting, batch + 1, context + 1), setting)
    assert float(longer.total_s[0]) > base


def test_decode_is_memory_bound_prefill_compute_bound_and_a_tiny_model_overhead_bound() -> None:
    weights = weight_bytes(LLAMA_2_7B, A100.weights)
    work = work_of(LLAMA_2_7B, 1, [1, 2048], 0, weights, 2.0)
    times = step_times(work, A100)
    assert (times.bound(0), times.bound(1)) == ("memory", "compute")
    tiny = find_model("SmolLM2-135M")
    assert step_times(decode(tiny, A100), A100).bound() == "overhead"


def test_terms_add_up_to_the_time() -> None:
    times = step_times(decode(LLAMA_2_7B, A100, batch=8), A100)
    groups = sum(times.group_s(name) for name in ("memory", "compute", "overhead"))
    assert groups == pytest.approx(times.total_s)


def test_unit_seconds_are_the_published_figures() -> None:
    """A100 SXM: 2039 GB/s, 312 TFLOP/s dense, 19.5 TFLOP/s fp32 (NVIDIA's data sheet)."""
    unit = dict(zip(MECHANISMS, unit_seconds(A100), strict=True))
    assert 1 / unit["weights"] == pytest.approx(2039e9)
    assert 1 / unit["products"] == pytest.approx(312e12)
    assert 1 / unit["unpack"] == pytest.approx(19.5e12)
    assert unit["epilogue"] == unit["scores"] == 0  # no int8 sums to scale, no scores in memory


def test_links_are_as_fast_as_measured_and_pcie_is_slow() -> None:
    """NCCL bus bandwidth of large messages: about 150 GB/s on NVLink 3, 280 on NVLink 4, 23 over PCIe."""
    measured = {"A100 SXM4 80GB": 150e9, "H100 SXM5 80GB": 280e9, "RTX 4090": 23e9}
    for name, bandwidth in measured.items():
        assert bus_bytes_per_s(find_hardware(name)) == pytest.approx(bandwidth, rel=0.1)
    assert link_of(find_hardware("B200 SXM")) == "NVLink 4"
    assert min(small_latencies_s()) < RATES["all_reduce"].prior < median(small_latencies_s())


def test_the_constants_survive_their_file() -> None:
    found = calibration()
    again = from_json(to_json(found))
    assert again == found
    with pytest.raises(ValueError, match="another version"):
        from_json(to_json(found) | {"format": 99})


def test_the_less_is_known_the_wider_is_the_interval() -> None:
    found: Calibration = calibration()
    device, form = find_hardware("RTX 4090"), find_format("bf16")
    known = found.spread("decode", Setting(device, Engine("llama.cpp", "cuda"), form))
    few = found.spread("decode", Setting(device, SERVER, form))
    never = found.spread("decode", Setting(find_hardware("TPU v5e"), Engine("server", "xla"), form))
    assert known == found.residuals["decode"]["llama.cpp"]
    assert few == found.residuals["decode"][""]
    assert never == found.residuals["decode"]["unseen kind"]
    assert never.p90 - never.p10 > few.p90 - few.p10
