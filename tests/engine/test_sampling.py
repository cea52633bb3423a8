"""Sampling: greedy is argmax, a seed repeats a run, top-p never leaves the nucleus, prob is the model's own."""

from __future__ import annotations

import math

import pytest
import torch

from engine.sampling import Sampler

LOGITS = torch.tensor([math.log(p) for p in (0.5, 0.3, 0.15, 0.05)])


def test_greedy_takes_the_greatest_and_says_its_probability() -> None:
    choice = Sampler().choose(LOGITS)
    assert choice.token_id == 0
    assert choice.prob == pytest.approx(0.5, rel=1e-6)


def test_a_seed_repeats_and_leaves_torchs_generator_alone() -> None:
    state = torch.random.get_rng_state()
    runs = [[s.choose(LOGITS).token_id for _ in range(30)] for s in (Sampler(1.0, seed=7), Sampler(1.0, seed=7))]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 1
    assert torch.equal(state, torch.random.get_rng_state())


def test_frequencies_follow_the_probabilities() -> None:
    sampler = Sampler(1.0, seed=1)
    counts = torch.bincount(torch.tensor([sampler.choose(LOGITS).token_id for _ in range(4000)]), minlength=4) / 4000
    assert torch.allclose(counts, LOGITS.exp(), atol=0.03)


@pytest.mark.parametrize(("top_p", "nucleus"), [(0.5, {0}), (0.6, {0, 1}), (0.8, {0, 1}), (0.96, {0, 1, 2, 3})])
def test_top_p_draws_from_the_smallest_head_that_reaches_it(top_p: float, nucleus: set[int]) -> None:
    sampler = Sampler(1.0, top_p, seed=3)
    choices = [sampler.choose(LOGITS) for _ in range(400)]
    assert {c.token_id for c in choices} == nucleus
    assert all(c.prob == pytest.approx(float(LOGITS.exp()[c.token_id]), rel=1e-5) for c in choices)


def test_a_high_temperature_flattens() -> None:
    sampler = Sampler(10.0, seed=5)
    assert {sampler.choose(LOGITS).token_id for _ in range(200)} == {0, 1, 2, 3}


@pytest.mark.parametrize("settings", [(-0.1, 1.0), (float("nan"), 1.0), (1.0, 0.0), (1.0, 1.5)])
def test_settings_that_mean_nothing_are_refused(settings: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must lie"):
        Sampler(*settings)


def test_output_that_is_not_a_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a number"):
        Sampler().choose(torch.full((4,), float("nan")))
