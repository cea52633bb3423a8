"""What must hold for any model, batch, context and format, however odd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.costs import step_cost, step_costs, weight_bytes
from sim.formats import FORMATS, find_format
from sim.models import all_models
from sim.specs import ModelSpec
from sim.weights import expert_share_read, stored_bytes

models = st.sampled_from(all_models())
mixtures = st.sampled_from([spec for spec in all_models() if spec.experts])
counts = st.integers(1, 512)
contexts = st.integers(0, 200_000)
quick = settings(max_examples=60, deadline=None)


@quick
@given(models, counts, contexts, st.integers(1, 64))
def test_more_context_never_costs_less(spec: ModelSpec, n: int, context: int, more: int) -> None:
    weights = weight_bytes(spec, 16)
    short = step_cost(spec, [(n, context)], weights, 2, 2)
    long = step_cost(spec, [(n, context + more)], weights, 2, 2)
    assert long.flops >= short.flops
    assert long.kv_read_bytes >= short.kv_read_bytes
    assert (long.weights_bytes, long.kv_write_bytes) == (short.weights_bytes, short.kv_write_bytes)


@quick
@given(models, st.integers(1, 256), contexts)
def test_one_more_sequence_costs_more_and_less_than_a_step_of_its_own(spec: ModelSpec, batch: int, c: int) -> None:
    weights = weight_bytes(spec, 16)
    some, one = (step_cost(spec, [(1, c)] * b, weights, 2, 2) for b in (batch, 1))
    more = step_cost(spec, [(1, c)] * (batch + 1), weights, 2, 2)
    assert more.flops == some.flops + one.flops
    assert some.weights_bytes < more.weights_bytes < some.weights_bytes + one.weights_bytes
    assert more.kv_read_bytes == some.kv_read_bytes + one.kv_read_bytes


@quick
@given(models, st.floats(1, 32), st.floats(1, 32))
def test_more_bits_never_weigh_less(spec: ModelSpec, a: float, b: float) -> None:
    light, heavy = sorted((a, b))
    assert stored_bytes(spec, weight_bytes(spec, light)) <= stored_bytes(spec, weight_bytes(spec, heavy))


@quick
@given(models, st.sampled_from(sorted(FORMATS)))
def test_a_format_stores_what_a_step_may_read_and_more(spec: ModelSpec, name: str) -> None:
    weights = weight_bytes(spec, find_format(name))
    read = step_cost(spec, [(1, 0)], weights, 2, 2).weights_bytes
    assert 0 < read <= stored_bytes(spec, weights) + weights.embedding_row
    assert weights.attention is not None and 0 < weights.attention < weights.layers + weights.experts


@quick
@given(mixtures, st.integers(1, 4096))
def test_experts_read_lie_between_k_and_all(spec: ModelSpec, n_tokens: int) -> None:
    assert spec.experts is not None
    least = spec.experts.per_token / spec.experts.count
    share = expert_share_read(spec, n_tokens)
    assert least * (1 - 1e-12) <= share <= min(1.0, least * n_tokens * (1 + 1e-12))
    assert share <= expert_share_read(spec, n_tokens + 1)


@pytest.mark.parametrize("spec", [s for s in all_models() if s.experts], ids=lambda s: s.name)
def test_one_token_reads_k_experts_and_very_many_read_all(spec: ModelSpec) -> None:
    assert spec.experts is not None
    assert expert_share_read(spec, 1) == pytest.approx(spec.experts.per_token / spec.experts.count, rel=1e-12)
    assert expert_share_read(spec, 100_000) == pytest.approx(1)


@quick
@given(models, st.integers(1, 64), counts, contexts, st.booleans())
def test_the_array_form_is_the_same_arithmetic(spec: ModelSpec, batch: int, n: int, c: int, head: bool) -> None:
    weights = weight_bytes(spec, 4.5)
    logits = batch if head else 0
    one = step_cost(spec, [(n, c)] * batch, weights, 1, 2, logits)
    many = step_costs(spec, np.array([batch, batch]), n, c, weights, 1, 2, logits)
    for field in ("flops", "weights_bytes", "kv_read_bytes", "kv_write_bytes", "activation_bytes", "total_bytes"):
        assert getattr(many, field)[1] == pytest.approx(getattr(one, field), rel=1e-12, abs=2)
    assert many.intensity_flops_per_byte[0] == pytest.approx(one.intensity_flops_per_byte, rel=1e-9)


@pytest.mark.parametrize(
    ("batch", "n", "context", "logits"),
    [
        (0, 1, 0, None),
        (1, 0, 0, None),
        (1, 1, -1, None),
        (float("nan"), 1, 0, None),
        (1, 1, float("inf"), None),
        (1, 1, 0, 2),
    ],
)
def test_the_array_form_refuses_what_the_other_refuses(
    batch: float, n: float, context: float, logits: float | None
) -> None:
    spec = all_models()[0]
    with pytest.raises(ValueError, match=r"row|head"):
        step_costs(spec, [1, batch], n, context, weight_bytes(spec, 16), 2, 2, logits)


@quick
@given(models, st.integers(1, 300), st.integers(0, 300), st.integers(1, 200))
def test_windows_agree_with_counting_pair_by_pair(spec: ModelSpec, n: int, context: int, window: int) -> None:
    windowed = replace(spec, latent=None, window_tokens=window, windowed_layers=spec.n_layers)
    weights = weight_bytes(windowed, 16)
    with_scores = step_cost(windowed, [(n, context)], weights, 2, 2)
    pairs = sum(min(context + i, window) for i in range(1, n + 1))
    no_scores = step_cost(replace(windowed, window_tokens=None, windowed_layers=0), [(n, context)], weights, 2, 2)
    full = sum(context + i for i in range(1, n + 1))
    each = 4 * spec.n_layers * spec.n_heads * spec.head_dim
    assert no_scores.flops - with_scores.flops == each * (full - pairs)
