"""A simulation as a trace: whole, readable, agreeing with the prediction, or refused with a sentence."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest

from sim.scenario import Scenario, find_scenario
from sources.simulated import MOST_TOKENS, SIMULATED_NOTE, SimulatedSource, make_trace
from telemetry.events import Note, Phase, Request, Step, Token
from telemetry.summary import summarise
from telemetry.trace import Trace, read_trace

SHORT = find_scenario("llama-3-8b", "rtx-4090", "q4_k_m", 700, 9)
BATCH = replace(SHORT, setting=find_scenario("llama-3-8b", "h100-sxm", "bf16", 1, 1).setting, batch=4)
LONG_BATCH = replace(BATCH, prompt_tokens=9000)
TWO_DEVICES = find_scenario("llama-3-70b", "h100-sxm", "bf16", 300, 4, devices=2)


class Lines:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.closed: list[str | None] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def close(self, problem: str | None = None) -> None:
        self.closed.append(problem)


def trace_of(scenario: Scenario) -> Trace:
    lines = make_trace(scenario, "run", "2026-01-02T03:04:05+00:00")
    return read_trace(BytesIO("".join(f"{line}\n" for line in lines).encode()))


@pytest.mark.parametrize("scenario", [SHORT, BATCH, LONG_BATCH, TWO_DEVICES], ids=["one", "batch", "long", "two"])
def test_the_trace_sums_up_to_what_was_predicted(scenario: Scenario) -> None:
    trace, predicted = trace_of(scenario), scenario.predict()
    found = summarise(trace)
    assert (trace.notes, trace.ended_early, trace.n_damaged_lines) == ((), False, 0)
    assert found.n_prompt_tokens == scenario.prompt_tokens
    assert found.n_new_tokens == scenario.new_tokens
    assert found.ttft_s == pytest.approx(predicted.ttft_s, rel=1e-4)
    assert found.tpot_s == pytest.approx(predicted.tpot_s, rel=1e-4)
    assert found.mbu.decode == pytest.approx(predicted.mbu, rel=1e-3)
    assert found.mfu.prefill == pytest.approx(predicted.mfu, rel=1e-3)
    assert found.intensity.decode == pytest.approx(predicted.decode_intensity, rel=1e-6)
    assert trace.header.prediction == predicted.to_json()


def test_it_says_that_nothing_ran() -> None:
    trace = trace_of(SHORT)
    header = trace.header
    assert header.source == "simulated"
    assert header.text_withheld
    assert header.sensors == ()
    assert [device.kind for device in header.devices] == ["simulated"]
    assert {peak.provenance for device in header.devices for peak in device.peaks} == {"datasheet"}
    assert SIMULATED_NOTE in [event.body.text for event in trace.events if isinstance(event.body, Note)]
    assert {event.body.text for event in trace.events if isinstance(event.body, Token)} == {""}


def test_ceilings_and_bytes_are_those_of_all_devices_together() -> None:
    header = trace_of(TWO_DEVICES).header
    assert len(header.devices) == header.tensor_parallel == 2
    assert header.ceilings.memory and header.ceilings.memory.value == pytest.approx(2 * 3.35e12, rel=0.01)  # H100 SXM
    steps = [event.body for event in trace_of(TWO_DEVICES).events if isinstance(event.body, Step)]
    assert steps[-1].bytes and steps[-1].bytes.weights == pytest.approx(141e9, rel=0.02)  # 70.6e9 weights of 2 bytes


def test_a_long_prompt_is_read_in_chunks_and_each_sequence_in_its_turn() -> None:
    trace = trace_of(LONG_BATCH)
    prefill = [e.body for e in trace.events if isinstance(e.body, Step) and e.body.rows[0].kind == "prefill"]
    assert sum(row.n_tokens for step in prefill for row in step.rows) == 4 * 9000
    assert [row.seq for step in prefill for row in step.rows] == [3, 3, 2, 2, 1, 1, 0, 0]
    told = [(e.t, e.body.phase) for e in trace.events if isinstance(e.body, Phase) and e.body.seq == 0]
    assert [phase for _, phase in told] == ["waiting", "prefill", "decode", "done"]
    assert 0 == told[0][0] < told[1][0] < told[2][0] < told[3][0]


def test_every_sequence_gets_all_its_tokens() -> None:
    tokens = [event.body.seq for event in trace_of(BATCH).events if isinstance(event.body, Token)]
    assert {seq: tokens.count(seq) for seq in tokens} == dict.fromkeys(range(4), 9)


def test_one_new_token_needs_no_decode() -> None:
    trace = trace_of(replace(SHORT, new_tokens=1))
    assert {row.kind for e in trace.events if isinstance(e.body, Step) for row in e.body.rows} == {"prefill"}
    assert not trace.ended_early


def test_a_context_beyond_the_models_own_is_a_note() -> None:
    trace = trace_of(replace(BATCH, batch=1, prompt_tokens=9000))
    assert any("8,192" in e.body.text for e in trace.events if isinstance(e.body, Note))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"prompt_tokens": 0}, "whole number"),
        ({"prompt_tokens": -5}, "whole number"),
        ({"prompt_tokens": 1.5}, "whole number"),
        ({"prompt_tokens": float("nan")}, "whole number"),
        ({"prompt_tokens": 10**12}, "whole number"),
        ({"new_tokens": 0}, "whole number"),
        ({"batch": 0}, "whole number"),
        ({"batch": -1}, "whole number"),
        ({"new_tokens": 10**6}, "does not fit by"),
        ({"batch": 10**6}, "does not fit by"),
        ({"prompt_tokens": 10**8}, "whole number"),  # with the answer it is over what is taken at all
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_before_any_line(changed: dict[str, int], says: str) -> None:
    sink = Lines()
    with pytest.raises(ValueError, match=says) as refusal:
        SimulatedSource().start("run", replace(SHORT, **changed), sink)
    assert str(refusal.value).count(". ") == 0
    assert (sink.lines, sink.closed) == ([], [])


def test_more_tokens_than_a_page_can_play_are_refused() -> None:
    small = find_scenario("smollm2-135m", "h100-sxm", "bf16", 10, MOST_TOKENS // 50 + 1, batch=50)
    assert small.predict().memory.fits
    with pytest.raises(ValueError, match="fewer new tokens or a smaller batch"):
        make_trace(small, "run", "2026-01-02T03:04:05+00:00")


def test_a_model_that_does_not_fit_says_by_how_much() -> None:
    with pytest.raises(ValueError, match=r"does not fit by \d+\.\d GiB"):
        make_trace(find_scenario("llama-3-70b", "rtx-4090", "int8", 100, 10), "run", "2026-01-02T03:04:05+00:00")


def test_the_source_writes_everything_and_closes() -> None:
    sink = Lines()
    SimulatedSource().start("mine", SHORT, sink)
    assert sink.closed == [None]
    trace = read_trace(BytesIO("".join(f"{line}\n" for line in sink.lines).encode()))
    assert trace.header.id == "mine"
    assert isinstance(trace.events[0].body, Request)
