"""A run that never happened, laid out on a clock: the passes of ``schedule.py`` with the times of ``timing.py``.

What comes out is plain data in the order of time, one entry a pass; whoever writes or plays it as a trace gives it the
trace's words. The same passes and times make a prediction (``predict.py``), so the two agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sim.checks import check_count
from sim.costs import StepCost
from sim.efficiency import Calibration, calibration
from sim.engines import Setting
from sim.predict import Priced, overlap_factor, price
from sim.schedule import Passes, chunk_tokens, prefill_in_order, prefill_passes
from sim.specs import ModelSpec

MOST_PASSES = 50_000


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass from ``t0_s`` to ``t1_s``: each of the sequences ``first .. first + rows - 1`` adds ``n_tokens`` on top
    of ``context``. ``cost``: of all ranks together. ``yields_token``: for each of them, at ``t1_s``.
    """

    kind: Literal["prefill", "decode"]
    t0_s: float
    t1_s: float
    first: int
    rows: int
    n_tokens: int
    context: int
    cost: StepCost
    yields_token: bool


def play(
    spec: ModelSpec,
    setting: Setting,
    prompt_tokens: int,
    new_tokens: int,
    batch: int = 1,
    kv_bytes_per_element: float = 2.0,
    chunk: int | None = None,
    constants: Calibration | None = None,
) -> list[Pass]:
    """The passes of ``batch`` equal requests that arrive at 0.

    Raises ValueError as ``predict`` does, and with one sentence for a run of more than ``MOST_PASSES`` passes.
    """
    check_count("The answer", new_tokens)
    found = constants or calibration()
    chunk = chunk or chunk_tokens(setting, prompt_tokens)
    n_prefill = sum(p.count for p in prefill_passes(prompt_tokens, batch, chunk))
    if n_prefill + new_tokens - 1 > MOST_PASSES:
        raise ValueError(f"A simulated run has at most {MOST_PASSES:,} passes; take a shorter prompt or answer.")
    prefill = list(prefill_in_order(prompt_tokens, batch, chunk))
    factor = overlap_factor(setting, n_prefill, found)
    played = list(_lay(spec, setting, prefill, "prefill", 0.0, factor, prompt_tokens, kv_bytes_per_element, found))
    decode = [Passes(1, batch, 1, prompt_tokens + i) for i in range(new_tokens - 1)]
    if decode:
        start = played[-1].t1_s
        played += _lay(spec, setting, decode, "decode", start, 1.0, prompt_tokens, kv_bytes_per_element, found)
    return played


def _lay(
    spec: ModelSpec,
    setting: Setting,
    passes: list[Passes],
    kind: Literal["prefill", "decode"],
    start_s: float,
    factor: float,
    prompt_tokens: int,
    kv_bytes_per_element: float,
    constants: Calibration,
) -> Iterator[Pass]:
    priced = price(spec, setting, passes, kv_bytes_per_element, constants)
    seconds = priced.times.total_s * factor
    t = start_s
    for i, p in enumerate(passes):
        end = t + float(seconds[i])
        done = kind == "decode" or p.context + p.n_tokens == prompt_tokens
        cost = _cost(priced, i, setting.tensor_parallel)
        yield Pass(kind, t, end, p.first, p.rows, p.n_tokens, p.context, cost, done)
        t = end


def _cost(priced: Priced, i: int, ranks: int) -> StepCost:
    c = priced.work.costs
    parts = (c.flops, c.weights_bytes, c.kv_read_bytes, c.kv_write_bytes, c.activation_bytes)
    return StepCost(*(round(float(part[i]) * ranks) for part in parts))
