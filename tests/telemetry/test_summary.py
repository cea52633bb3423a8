"""Each figure against a hand sum, and None wherever there is no interval to measure over."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from telemetry.events import Body, End, Request, Row, Sample, Step, StepBytes, Token
from telemetry.summary import percentile, summarise
from telemetry.trace import Trace, read_trace
from tests.telemetry.traces import BODIES, HEADER, record

CASES = Path(__file__).parents[1] / "cases"
Bodies = tuple[tuple[float, Body], ...]

KEYS = {
    "n_prompt_tokens": None,
    "n_new_tokens": None,
    "ttft_s": None,
    "tpot_s": None,
    "itl_p50_s": None,
    "itl_p95_s": None,
    "prefill_tok_s": None,
    "decode_tok_s": None,
    "intensity": {"prefill", "decode"},
    "bytes_per_token": {"weights", "kv_read", "kv_write", "activations"},
    "mfu": {"prefill", "decode"},
    "mbu": {"prefill", "decode"},
    "denominators": {"prefill_compute", "decode_compute", "memory", "from_cache"},
    "energy_j": None,
    "end_reason": None,
}


def trace_of(bodies: Bodies) -> Trace:
    return read_trace(io.BytesIO("\n".join(record(bodies)).encode()))


def prefill(i: int, t0: float, t1: float, *, repeat: bool = False) -> tuple[float, Step]:
    rows = (Row(0, 100, 0, "prefill"),)
    return t1, Step(i, t0, t1, "target", rows, 1e10, StepBytes(1000, 0, 0, 0), "host", repeat)


def decode(i: int, t0: float, t1: float) -> tuple[float, Step]:
    return t1, Step(i, t0, t1, "target", (Row(0, 1, 100, "decode"),), 1e9, StepBytes(1000, 100, 10, 1), "host")


def test_every_figure_of_the_small_trace_by_hand() -> None:
    figures = summarise(trace_of(BODIES)).to_json()
    assert figures["n_prompt_tokens"] == 512
    assert figures["n_new_tokens"] == 3
    assert figures["ttft_s"] == pytest.approx(0.5)
    assert figures["tpot_s"] == pytest.approx(0.1)
    assert figures["decode_tok_s"] == pytest.approx(10.0)
    assert figures["prefill_tok_s"] == pytest.approx(512 / 0.5)
    # prefill: 3e11 FLOP over 1000 + 1000 bytes in 0.5 s; decode: 2e9 over 5000 + 5200 bytes in 0.2 s
    assert figures["intensity"] == {"prefill": pytest.approx(1.5e8), "decode": pytest.approx(2e9 / 10_200)}
    assert figures["mfu"] == {"prefill": pytest.approx(3e11 / 0.5 / 1e12), "decode": pytest.approx(2e9 / 0.2 / 1e12)}
    assert figures["mbu"] == {"prefill": pytest.approx(2000 / 0.5 / 1e11), "decode": pytest.approx(10_200 / 0.2 / 1e11)}
    assert figures["bytes_per_token"] == {"weights": 4000, "kv_read": 1000, "kv_write": 60, "activations": 40}
    assert figures["denominators"]["memory"]["label"] == "measured here, read over 1 GiB"
    assert figures["energy_j"] is None
    assert figures["end_reason"] == "length"


@pytest.mark.parametrize("bodies", [BODIES, ()], ids=["whole", "nothing"])
def test_json_has_exactly_the_promised_keys(bodies: Bodies) -> None:
    figures = json.loads(json.dumps(summarise(trace_of(bodies)).to_json(), allow_nan=False))
    assert set(figures) == set(KEYS)
    for key, parts in KEYS.items():
        assert parts is None or set(figures[key]) == parts


@pytest.mark.parametrize("case", json.loads((CASES / "c_degenerate.json").read_text())["client_side"])
def test_degenerate_runs_have_no_rate(case: dict[str, Any]) -> None:
    n, first, last = case["tokens"], case["ttft_s"], case["total_s"]
    times = [] if n == 0 else [first, *[last] * (n - 1)]
    tokens = tuple((t, Token(0, i, i, "x")) for i, t in enumerate(times))
    summary = summarise(trace_of(((0.0, Request(0, 5, 9)), *tokens, (last, End(None, "stop")))))
    assert summary.n_new_tokens == n
    assert summary.ttft_s == first
    assert summary.decode_tok_s == (None if case["decode_tok_s"] is None else pytest.approx(case["decode_tok_s"]))
    assert (summary.tpot_s is None) == (case["decode_tok_s"] is None)


def test_all_tokens_in_one_chunk_have_no_rate_and_no_latency() -> None:
    summary = summarise(trace_of(((0.0, Request(0, None, 9)), (0.25, Token(0, None, None, "abc", 5)))))
    assert (summary.n_new_tokens, summary.ttft_s, summary.tpot_s, summary.itl_p50_s) == (5, 0.25, None, None)
    assert summary.n_prompt_tokens is None


def test_chunks_are_not_tokens() -> None:
    """Nine chunks of 3 and 4 after the first token, 40 ms apart: 31 tokens in 360 ms are 86.11 tok/s, not 25."""
    counts = (1, 4, 3, 4, 3, 4, 3, 4, 3, 3)
    tokens = tuple((0.2 + 0.04 * i, Token(0, None, None, "x", c)) for i, c in enumerate(counts))
    summary = summarise(trace_of(((0.0, Request(0, 9, 32)), *tokens)))
    assert summary.decode_tok_s == pytest.approx(86.11, abs=0.01)
    assert summary.itl_p50_s is None


def test_unknown_counts_stay_unknown() -> None:
    tokens = ((0.2, Token(0, None, None, "x", 1)), (0.3, Token(0, None, None, "y", None)))
    summary = summarise(trace_of(((0.0, Request(0, 9, 32)), *tokens)))
    assert (summary.n_new_tokens, summary.decode_tok_s) == (None, None)


def test_rejected_drafts_are_no_output() -> None:
    tokens = tuple(
        (0.1 * (i + 1), Token(0, i, i, "x", verdict=v)) for i, v in enumerate(("accepted", "rejected", "bonus"))
    )
    assert summarise(trace_of(((0.0, Request(0, 1, 9)), *tokens))).n_new_tokens == 2


def test_repeated_prefill_enters_no_figure() -> None:
    """The same prefill is shown eight times more between the first token and the second; no figure may move."""
    plain: Bodies = (
        (0.0, Request(0, 100, 3)),
        prefill(0, 0.0, 0.1),
        (0.1, Token(0, 0, 100, "a")),
        decode(1, 0.1, 0.15),
        (0.15, Token(0, 1, 101, "b")),
        decode(2, 0.15, 0.2),
        (0.2, Token(0, 2, 102, "c")),
        (0.2, End(None, "length")),
    )
    shift = 0.8
    repeats = tuple(prefill(10 + i, 0.1 + 0.1 * i, 0.2 + 0.1 * i, repeat=True) for i in range(8))
    after: Bodies = (
        decode(1, 0.1 + shift, 0.15 + shift),
        (0.15 + shift, Token(0, 1, 101, "b")),
        decode(2, 0.15 + shift, 0.2 + shift),
        (0.2 + shift, Token(0, 2, 102, "c")),
        (0.2 + shift, End(None, "length")),
    )
    assert rounded(trace_of((*plain[:3], *repeats, *after))) == rounded(trace_of(plain))


def rounded(trace: Trace) -> Any:
    return json.loads(json.dumps(summarise(trace).to_json()), parse_float=lambda text: round(float(text), 9))


def test_repeats_before_the_first_token_stay_out_of_ttft() -> None:
    bodies: Bodies = (
        (0.0, Request(0, 100, 3)),
        prefill(0, 0.0, 0.1),
        prefill(1, 0.1, 0.2, repeat=True),
        prefill(2, 0.21, 0.3, repeat=True),
        (0.32, Token(0, 0, 100, "a")),
    )
    summary = summarise(trace_of(bodies))
    assert summary.ttft_s == pytest.approx(0.12)
    assert summary.prefill_tok_s == pytest.approx(1000)


def test_percentiles_are_linear_between_neighbours() -> None:
    # numpy.percentile([1, 2, 4, 8], [50, 95]) gives [3.0, 7.4]
    assert percentile([8, 1, 4, 2], 0.50) == pytest.approx(3.0)
    assert percentile([8, 1, 4, 2], 0.95) == pytest.approx(7.4)
    assert percentile([5], 0.95) == 5
    assert percentile([], 0.5) is None


def energy(t0: float, t1: float, joules: float | None, device: int = 0) -> tuple[float, Sample]:
    return t1, Sample("nvml", "energy_j", device, joules, t0, t1)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ((), None),
        ((energy(0, 1, 100), energy(1, 2, 300)), 400),
        ((energy(-1, 1, 100), energy(1, 3, 300)), 200),  # half of each lies inside
        ((energy(0, 1, 100), energy(0, 2, 30, 1), energy(1, 2, 300)), 430),
        ((energy(0, 1, 100), energy(1, 2, None)), None),  # half the run is unread
        ((energy(0, 1, 100), energy(1, 1.9, 90)), 190),
    ],
)
def test_energy_covers_the_run_or_is_unknown(samples: Bodies, expected: float | None) -> None:
    steps = tuple(decode(i, i * 0.2, (i + 1) * 0.2) for i in range(10))
    got = summarise(trace_of(((0.0, Request(0, 1, 10)), *steps, *samples))).energy_j
    assert got == (None if expected is None else pytest.approx(expected))


def test_one_sequence_of_several_is_summed_up_alone() -> None:
    bodies: Bodies = (
        (0.0, Request(0, 10, 2)),
        (0.1, Request(1, 20, 2)),
        (0.5, Token(0, None, 10, "a")),
        (0.7, Token(1, None, 20, "b")),
        (0.9, Token(1, None, 21, "c")),
        (0.9, End(1, "eos")),
        (1.0, End(0, "stop")),
        (1.0, End(None, "length")),
    )
    trace = trace_of(bodies)
    first, second = summarise(trace), summarise(trace, 1)
    assert (first.n_prompt_tokens, first.ttft_s, first.end_reason) == (10, 0.5, "stop")
    assert (second.n_prompt_tokens, second.ttft_s, second.end_reason) == (20, pytest.approx(0.6), "eos")
    assert second.tpot_s == pytest.approx(0.2)
    with pytest.raises(ValueError, match="no request with seq 7"):
        summarise(trace, 7)


def test_no_ceiling_means_no_share() -> None:
    lines = record(BODIES)
    payload = json.loads(lines[0]) | {"ceilings": {}}
    trace = read_trace(io.BytesIO("\n".join([json.dumps(payload), *lines[1:]]).encode()))
    summary = summarise(trace)
    assert (summary.mfu.prefill, summary.mbu.decode) == (None, None)
    assert summary.intensity.prefill is not None
    assert HEADER.ceilings.memory is not None
