"""Speculative decoding in closed form: how much faster k guesses a round make a target model.

A round drafts k tokens, verifies them in one pass of the target over k + 1 rows, and keeps the accepted ones and one
more. With acceptance probability a for each token, independent of the others (Leviathan et al. 2023, arXiv:2211.17192,
equation 1), it yields ``(1 - a^(k+1)) / (1 - a)`` tokens, for ``v + k c`` passes: v is what verifying costs over one
row, c what drafting one token does. v is near 1 while the target waits for its weights and grows with the batch; c is
the draft's share of bytes where memory rules and of *layers* where launches rule, which is why a 68M draft for a 7B
model costs 6 % of it in eager PyTorch and 1 % in an engine that launches a graph.

Published rounds also cost something that neither term explains: building and checking a tree, sampling, rolling the
cache back. That is one constant for chains and one for trees, fitted with the others.

Not covered: what acceptance is (it is given), and acceptance that differs with the position or the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sim.efficiency import calibration
from sim.engines import Setting
from sim.specs import ModelSpec
from sim.timing import step_times
from sim.weights import weight_bytes
from sim.work import work_of


@dataclass(frozen=True, slots=True)
class DraftMethod:
    """How a published method drafts: ``passes`` a round (None: one a guess), each of ``layers`` of the target's width;
    ``tree``: several guesses stand at one position."""

    passes: int | None
    layers: int
    tree: bool


# From the methods' papers: EAGLE and its successors draft with one layer, five to six times a round; Medusa with heads
# on the last layer, all at once; Hydra with heads one after the other, together about two layers; prompt lookup, REST
# and Lookahead guess without a model. A chain from a small model makes five guesses where nothing is said.
METHODS: dict[str, DraftMethod] = {
    "eagle": DraftMethod(6, 1, True),
    "eagle-2": DraftMethod(6, 1, True),
    "eagle-3": DraftMethod(6, 1, True),
    "p-eagle": DraftMethod(1, 1, True),
    "hass": DraftMethod(6, 1, True),
    "medusa": DraftMethod(1, 1, True),
    "hydra": DraftMethod(1, 2, True),
    "rest": DraftMethod(0, 0, True),
    "pld": DraftMethod(0, 0, False),
    "prompt lookup": DraftMethod(0, 0, False),
    "lookahead": DraftMethod(0, 0, False),
    "mtp": DraftMethod(None, 1, False),
    "sps": DraftMethod(None, 2, False),
    "draft model": DraftMethod(None, 2, False),
}
USUAL_GUESSES = 5
ROUND_PRIOR = {"chain": 0.05, "tree": 0.10}  # passes of the target that a round costs beyond v and c
ROUND_PRIOR_ROWS = 10  # measurements that the prior counts for


def method_of(name: str, tree: bool = False) -> DraftMethod:
    """A published method by name ("Medusa-2", "SpS"); one not known drafts with one layer a guess, which most do."""
    wanted = name.lower().split(" (")[0]
    known = METHODS.get(wanted) or METHODS.get(re.sub(r"-\d+$", "", wanted))
    return known or DraftMethod(None, 1, tree)


def expected_tokens(acceptance: float, guesses: int) -> float:
    """Tokens a round yields, 1 to ``guesses + 1``. Raises ValueError outside of 0..1 or for no guess."""
    if not 0 <= acceptance <= 1:
        raise ValueError(f"An acceptance is a share from 0 to 1, not {acceptance}.")
    if isinstance(guesses, bool) or not isinstance(guesses, int) or guesses < 1:
        raise ValueError(f"A round guesses a whole number of tokens, 1 or more, not {guesses!r}.")
    if acceptance == 1:
        return guesses + 1.0
    return (1 - acceptance ** (guesses + 1)) / (1 - acceptance)


def speedup(acceptance: float, guesses: int, draft_cost: float, verify_cost: float = 1.0) -> float:
    """Tokens a second over plain decoding; below 1 it loses. Costs in passes of the target.

    Raises ValueError for a draft that costs less than nothing, or verifying that costs none.
    """
    if not (math.isfinite(draft_cost) and draft_cost >= 0):
        raise ValueError(f"Drafting a token costs 0 or more passes of the target, not {draft_cost}.")
    if not (math.isfinite(verify_cost) and verify_cost > 0):
        raise ValueError(f"Verifying costs more than 0 passes of the target, not {verify_cost}.")
    return expected_tokens(acceptance, guesses) / (verify_cost + guesses * draft_cost)


def verify_cost(
    spec: ModelSpec, setting: Setting, guesses: int, context: float, batch: float = 1, kv_bytes_per_element: float = 2.0
) -> float:
    """v: time of a pass over ``guesses + 1`` rows a sequence over that of one row, by the time model."""
    return _pass_s(spec, setting, guesses + 1, context, batch, kv_bytes_per_element) / _pass_s(
        spec, setting, 1, context, batch, kv_bytes_per_element
    )


def draft_cost(
    draft: ModelSpec, target: ModelSpec, setting: Setting, context: float, kv_bytes_per_element: float = 2.0
) -> float:
    """c: time of one pass of the draft over that of the target, on the same setting, by the time model."""
    return _pass_s(draft, setting, 1, context, 1, kv_bytes_per_element) / _pass_s(
        target, setting, 1, context, 1, kv_bytes_per_element
    )


def published_round(
    method: DraftMethod, guesses: int | None, target_layers: int, stated_cost: float | None, rounds: Mapping[str, float]
) -> float:
    """Passes of the target that a round of a published method costs: 1, its drafting, and what trees or chains add.

    ``stated_cost``: c where the source states it; else the draft's share of the layers.
    """
    passes = method.passes if method.passes is not None else (guesses or USUAL_GUESSES)
    cost = stated_cost if stated_cost is not None else method.layers / target_layers
    return 1 + passes * cost + rounds["tree" if method.tree else "chain"]


def round_constants(device: str = "") -> Mapping[str, float]:
    """The fitted constants of a round, without a device's own measurements where it has some."""
    rounds = calibration().rounds
    return rounds.get(device, rounds[""])


def layers_of_size(billions: float) -> int:
    """Layers of a Llama of about that many billion parameters, for targets known by their size only."""
    sizes = ((1, 16), (3, 28), (7, 32), (8, 32), (13, 40), (33, 60), (70, 80))
    return min(sizes, key=lambda s: abs(math.log(s[0] / billions)))[1]


def _pass_s(
    spec: ModelSpec, setting: Setting, n_tokens: float, context: float, batch: float, kv_bytes_per_element: float
) -> float:
    weights = weight_bytes(spec, setting.weights, setting.tensor_parallel)
    work = work_of(
        spec,
        batch,
        n_tokens,
        context,
        weights,
        kv_bytes_per_element,
        tensor_parallel=setting.tensor_parallel,
        stages=setting.stages,
    )
    return float(step_times(work, setting).total_s[0])
