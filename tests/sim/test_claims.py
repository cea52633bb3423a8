"""The ledger against the figures worked by hand for it, and every setting against the catalogs."""

from __future__ import annotations

import re

import pytest

from sim.bounds import bound
from sim.claims import Claim, claim, ledger
from sim.formats import find_format
from sim.hardware import find_hardware
from sim.ledger.serving import acceptance_for, exact_distribution_gap, price_of_a_million_tokens
from sim.memory import memory_needed
from sim.models import find_model


def numbers(text: str) -> list[float]:
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_every_claim_of_the_story_has_a_row() -> None:
    ids = [row.id for row in ledger()]
    assert sorted(ids) == sorted([f"C{n}" for n in range(1, 24)] + ["C1+C2"])
    assert ids[:4] == ["C1", "C2", "C1+C2", "C3"]


@pytest.mark.parametrize("row", ledger(), ids=lambda row: row.id)
def test_a_row_is_whole(row: Claim) -> None:
    assert row.verdict in {"holds", "holds when", "does not"}
    assert row.says.endswith((".", "?")) and row.ours.endswith(".") and row.condition.endswith(".")
    assert row.figure and "nan" not in row.ours.lower() and "inf" not in row.ours.split()


@pytest.mark.parametrize("row", ledger(), ids=lambda row: row.id)
def test_a_rows_setting_can_be_set(row: Claim) -> None:
    setting = row.setting
    spec, device, form = find_model(setting.model), find_hardware(setting.hardware), find_format(setting.weights)
    assert (spec.name, device.name) == (setting.model, setting.hardware)
    tokens = setting.prompt_tokens + setting.new_tokens
    need = memory_needed(spec, form, 2, tokens, setting.batch, device)
    assert need.fits, f"{row.id}: {need.sentence()}"
    assert tokens <= spec.max_context_tokens


@pytest.mark.parametrize(
    ("claim_id", "by_hand", "within"),
    [
        ("C1", [63, 94, 117, 0.63], 0.06),  # 2 FLOPs a weight and token; ours adds attention
        ("C1+C2", [2057, 250, 140, 40], 0.02),
        ("C3", [295, 206, 164], 0.005),
        ("C5", [320], 0),
        ("C6", [1, 2, 3.6], 0.06),
        ("C9", [70, 141, 40], 0.06),
        ("C10", [2.1, 63], 0.02),
        ("C11", [14, 37], 0.04),
        ("C12", [14_592, 16_896], 0),
        ("C14", [62, 40, 19], 0.01),
        ("C15", [0.66, 0.73, 0.81, 0.83], 0.02),
        ("C19", [2667], 0),
        ("C22", [14_592, 2000, 16_896, 3350], 0),
    ],
)
def test_figures_worked_by_hand_are_in_the_row(claim_id: str, by_hand: list[float], within: float) -> None:
    found = numbers(claim(claim_id).ours)
    for figure in by_hand:
        assert any(n == pytest.approx(figure, rel=within) for n in found), (figure, found)


@pytest.mark.parametrize(
    ("claim_id", "verdict"),
    [
        *((i, "holds when") for i in ("C1", "C2", "C1+C2", "C3", "C4", "C6", "C7", "C8", "C9", "C10", "C11", "C12")),
        *((i, "holds") for i in ("C5", "C13", "C16")),
        *((i, "holds when") for i in ("C14", "C15", "C17", "C18", "C21", "C23")),
        *((i, "does not") for i in ("C19", "C20", "C22")),
    ],
)
def test_verdicts(claim_id: str, verdict: str) -> None:
    assert claim(claim_id).verdict == verdict


def test_an_unknown_claim_lists_the_ids() -> None:
    with pytest.raises(LookupError, match="C23"):
        claim("C99")


def test_acceptance_solves_the_closed_form() -> None:
    # 5 guesses at c = 0.05, v = 1: (1 - a^6) / (1 - a) / 1.25 = 2.5 at a = 0.7297 (worked by bisection on paper)
    assert acceptance_for(2.5, 5, 0.05, 1.0) == pytest.approx(0.73, abs=0.005)
    assert acceptance_for(2.5, 5, 0.5, 1.0) is None  # 6 tokens for 3.5 passes is 1.7 at best


def test_rejection_sampling_draws_the_targets_distribution_and_plain_acceptance_would_not() -> None:
    assert exact_distribution_gap((0.5, 0.3, 0.2), (0.2, 0.2, 0.6)) < 1e-15


def test_price_by_hand() -> None:
    # 3.60 an hour is 0.001 a second; at 50 tokens a second a million tokens take 20,000 s
    assert price_of_a_million_tokens(3.6, 50) == pytest.approx(20)


def test_a_bound_says_what_is_not_known() -> None:
    with pytest.raises(ValueError, match="16-bit rate"):
        _ = bound("Llama-3-8B", "EPYC 9175F", "bf16").flops_per_s


def test_regimes_flip_at_the_ridge() -> None:
    b = bound("Llama-3-8B", "H100 SXM", "bf16")
    assert not b.is_compute_bound(256) and b.is_compute_bound(1024)
    assert b.step_s(1024) == pytest.approx(b.compute_s(1024))
    assert b.step_s(1) == pytest.approx(b.cost(1).total_bytes / 3.35e12)
