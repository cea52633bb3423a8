"""Speculation in closed form, against the figures of its papers and the curve of a batch."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from sim.batching import batching_curve, decode_seconds, kv_takeover_batch
from sim.engines import Engine, Setting
from sim.formats import find_format
from sim.hardware import find_hardware
from sim.models import find_model
from sim.observations import Skipped
from sim.rounds import observe_speedup
from sim.speculation import draft_cost, expected_tokens, layers_of_size, method_of, speedup, verify_cost

H100 = find_hardware("h100-sxm")
SERVED = Setting(H100, Engine("server", "cuda"), find_format("bf16"))
LLAMA_8B, LLAMA_70B = find_model("Llama-3-8B"), find_model("Llama-3-70B")


@pytest.mark.parametrize(
    ("acceptance", "guesses", "cost", "published"),
    # Leviathan et al. 2023 (arXiv:2211.17192), table 4, column EXP: T5-XXL with three drafts.
    [(0.75, 7, 0.02, 3.2), (0.8, 7, 0.04, 3.3), (0.82, 7, 0.11, 2.5), (0.62, 7, 0.02, 2.3), (0.71, 3, 0.11, 2.0)],
)
def test_the_closed_form_is_the_papers(acceptance: float, guesses: int, cost: float, published: float) -> None:
    assert speedup(acceptance, guesses, cost) == pytest.approx(published, abs=0.08)


def test_the_storys_speedup_of_two_and_a_half() -> None:
    """Five guesses of a 1B for a 70B: 2.5 times faster at 0.66 a token, c = 1/70; at v = 1.5 it takes 0.83."""
    assert speedup(0.66, 5, 1 / 70) == pytest.approx(2.5, abs=0.06)
    assert speedup(0.83, 5, 1 / 70, verify_cost=1.5) == pytest.approx(2.5, abs=0.06)


def test_it_can_lose_and_certain_guesses_are_all_kept() -> None:
    assert speedup(0.3, 8, 0.3) < 1
    assert expected_tokens(1.0, 5) == 6 and expected_tokens(0.0, 5) == 1
    assert expected_tokens(0.999999999, 5) == pytest.approx(6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1.1, 5, 0.1), "share from 0 to 1"),
        ((nan, 5, 0.1), "share from 0 to 1"),
        ((0.5, 0, 0.1), "whole number"),
        ((0.5, 2.5, 0.1), "whole number"),
        ((0.5, True, 0.1), "whole number"),
        ((0.5, 5, -0.1), "0 or more passes"),
        ((0.5, 5, inf), "0 or more passes"),
        ((0.5, 5, 0.1, 0.0), "more than 0 passes"),
    ],
)
def test_impossible_speculation_is_refused(arguments: tuple[float, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        speedup(*arguments)  # type: ignore[arg-type]


def test_verifying_is_nearly_free_alone_and_dear_in_a_batch() -> None:
    alone, crowded = (verify_cost(LLAMA_8B, SERVED, 4, 500, batch) for batch in (1, 64))
    assert 1.0 < alone < 1.1
    assert crowded > alone + 0.3


def test_a_draft_costs_its_bytes_where_memory_rules_and_its_layers_where_launches_do() -> None:
    served = draft_cost(find_model("Llama-3.2-1B"), LLAMA_70B, SERVED, 500)
    eager = draft_cost(
        find_model("Llama-3.2-1B"), LLAMA_70B, Setting(H100, Engine("eager", "cuda"), SERVED.weights), 500
    )
    assert 1.24 / 70 < served < eager < 16 / 80  # its share of the bytes, and of the layers


def test_methods_and_sizes() -> None:
    assert method_of("Medusa-2").tree and method_of("SpS (Vicuna-68M)").layers == 2
    assert method_of("a method of next year", tree=True).tree
    assert [layers_of_size(b) for b in (7, 13, 33, 70)] == [32, 40, 60, 80]


def test_a_row_without_acceptance_says_nothing() -> None:
    row = {"hardware": "x", "method": "EAGLE", "target": "Vicuna-7B", "speedup": "2", "k": "3", "reliability": "A"}
    with pytest.raises(Skipped, match="no acceptance"):
        observe_speedup(row)
    assert observe_speedup(row | {"alpha": "0.5"}).tokens == pytest.approx(1.875)
    with pytest.raises(Skipped, match="another method"):
        observe_speedup(row | {"notes": "speed-up RELATIVE TO EAGLE-3"})


def test_a_batch_gains_until_the_cache_outweighs_the_weights() -> None:
    curve = batching_curve(LLAMA_8B, SERVED, [1, 8, 64, 512], context=2048)
    assert (np.diff(curve.total_tok_s) > 0).all() and (np.diff(curve.tok_s_each) < 0).all()
    assert curve.total_tok_s[2] / curve.total_tok_s[0] > 20
    assert curve.kv_share[0] < 0.05 < 0.5 < curve.kv_share[2]
    assert curve.fits == (True, True, True, False)


def test_where_the_cache_takes_over() -> None:
    """Llama-3-8B in 16 bit reads 15.0e9 bytes of weights, 131,072 bytes a cached token: 56 sequences of 2,047 + 1."""
    assert kv_takeover_batch(LLAMA_8B, SERVED, 2047) == pytest.approx(15.01e9 / (2048 * 131072), rel=0.01)
    assert kv_takeover_batch(LLAMA_8B, SERVED, 0) > 100_000
    assert kv_takeover_batch(find_model("Qwen3-30B-A3B"), SERVED, 2047) > 100


def test_a_mixture_of_experts_gains_less_at_small_batch() -> None:
    dense, mixed = (
        batching_curve(find_model(name), SERVED, [1, 4], 200).total_tok_s for name in ("Qwen3-8B", "Qwen3-30B-A3B")
    )
    assert mixed[1] / mixed[0] < dense[1] / dense[0]


def test_many_settings_at_once_equal_the_curve() -> None:
    seconds = decode_seconds(LLAMA_8B, [SERVED], [1, 8], [2048, 2048])
    assert seconds[0] == pytest.approx(batching_curve(LLAMA_8B, SERVED, [1, 8], 2048).step_s)
    other = Setting(H100, SERVED.engine, find_format("fp8"))
    with pytest.raises(ValueError, match="share the weight format"):
        decode_seconds(LLAMA_8B, [SERVED, other], 1, 100)
