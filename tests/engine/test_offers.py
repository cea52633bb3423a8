"""Which precisions are offered: only what is real and faster in what it is for, with a reason for the rest."""

from __future__ import annotations

import pytest

from engine.offers import Timed, from_facts, judge, time_all, to_facts
from engine.precisions import PrecisionSupport
from tests.engine.fakes import ScriptedBackend

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("one_thread")]
ALL = tuple(PrecisionSupport(p, f"{p} label", True) for p in ("fp32", "bf16", "int8", "int4"))


def offered(timed: dict[str, Timed | str]) -> tuple[set[str], str | None]:
    offers, default = judge(ALL, timed)
    assert all((o.reason is None) == o.offered for o in offers)
    return {o.precision for o in offers if o.offered}, default


def test_all_are_offered_where_each_is_faster_and_a_tie_goes_to_the_faster_writer() -> None:
    timed: dict[str, Timed | str] = {
        "fp32": Timed(800, 36),
        "bf16": Timed(2900, 31),
        "int8": Timed(2880, 50),
        "int4": Timed(2850, 71),
    }
    assert offered(timed) == ({"fp32", "bf16", "int8", "int4"}, "int4")


def test_bf16_without_matrix_units_is_refused_with_the_figures() -> None:
    timed: dict[str, Timed | str] = {"fp32": Timed(800, 36), "bf16": Timed(300, 20)}
    offers, default = judge(ALL, timed)
    assert default == "fp32"
    assert offers[1].reason is not None and "300 against 800" in offers[1].reason
    assert offers[2].reason == "It was not timed here."


@pytest.mark.parametrize(("bf16", "rival"), [(Timed(2000, 60), "bf16"), ("It did not run here: no.", "fp32")])
def test_fewer_bits_must_write_faster_than_bf16_or_else_fp32(bf16: Timed | str, rival: str) -> None:
    timed: dict[str, Timed | str] = {"fp32": Timed(800, 55), "bf16": bf16, "int8": Timed(2000, 50)}
    offers, _ = judge(ALL, timed)
    assert not offers[2].offered
    assert f"Not faster than {rival} here: 50.0" in (offers[2].reason or "")


def test_nothing_that_runs_means_no_default() -> None:
    assert offered({"fp32": "It did not run here: no."}) == (set(), None)


def test_one_that_fails_to_build_does_not_stop_the_others() -> None:
    def build(precision: str) -> ScriptedBackend:
        if precision == "bf16":
            raise RuntimeError("no such kernel\nmore")
        return ScriptedBackend([1])

    unavailable = PrecisionSupport("int4", "int4", False, "Not here.")
    timed = time_all([*ALL[:2], unavailable], build)
    assert timed["bf16"] == "It did not run here. The run failed: no such kernel"
    assert isinstance(timed["fp32"], Timed) and timed["fp32"].decode_tok_s > 0
    assert "int4" not in timed
    assert from_facts(to_facts(timed)) == timed


@pytest.mark.parametrize("facts", [None, [], {"fp32": {"prefill": 1}}, {"fp32": 3}])
def test_facts_of_another_shape_are_no_facts(facts: object) -> None:
    assert from_facts(facts) is None
