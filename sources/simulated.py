"""Runs that are computed: a whole trace of any model on any device, its passes priced and timed by the simulator.

A simulation is told in the same events as a live run, so the stage, the file check and a comparison need to know of
nothing else; the header says "simulated" and the stage marks it so. The passes and their times are those of
``sim/playback.py``, on a clock that begins when all requests arrive. It need not run in real time: the player paces it.
There is no text, so tokens are withheld and drawn as blocks.

Figures of a pass are those of all devices together, and so are the ceilings. Not covered: sensors (nothing was read),
and the spread of a prediction, which stands in the header beside the times that were played.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from sim.engines import bandwidth_bytes_per_s, compute_path
from sim.memory import kv_tokens_that_fit
from sim.playback import Pass, play
from sim.predict import Prediction
from sim.scenario import Scenario
from sources.growing import Sink
from telemetry.events import (
    Body,
    Ceilings,
    Device,
    End,
    Event,
    Header,
    Note,
    Peak,
    Phase,
    PhaseName,
    Request,
    Row,
    Step,
    StepBytes,
    Token,
    encode_event,
    encode_header,
)

MOST_TOKENS = 100_000  # of all sequences; some 20 MB, which a page still plays
SIMULATED_NOTE = "Simulated: computed from published rates of the device and calibrated constants. Nothing ran."


class SimulatedSource:
    """Writes a simulation's lines to a run's sink, all at once."""

    def start(self, run_id: str, scenario: Scenario, sink: Sink) -> None:
        """Raises ValueError with a sentence for what cannot run; the sink has then not been called."""
        for line in make_trace(scenario, run_id, datetime.now(UTC).isoformat(timespec="milliseconds")):
            sink.line(line)
        sink.close()


def make_trace(scenario: Scenario, run_id: str, created: str) -> Iterator[str]:
    """A whole trace, header first. ``created``: ISO 8601, when it was made.

    Raises ValueError with one sentence, before any line, for impossible counts, for what does not fit in the device's
    memory, and for more lines than a page can play.
    """
    prediction = scenario.predict()
    if prediction.memory.fits is False:
        raise ValueError(prediction.memory.sentence())
    n_tokens = scenario.batch * scenario.new_tokens
    if n_tokens > MOST_TOKENS:
        raise ValueError(
            f"{n_tokens:,} tokens are too many to be played one by one; {MOST_TOKENS:,} are the most: "
            "ask for fewer new tokens or a smaller batch."
        )
    passes = play(
        scenario.spec,
        scenario.setting,
        scenario.prompt_tokens,
        scenario.new_tokens,
        scenario.batch,
        scenario.kv_bytes_per_element,
    )
    header = _header(scenario, prediction, run_id, created)
    return _lines(header, _bodies(scenario, passes, (SIMULATED_NOTE, *prediction.warnings)))


def _lines(header: Header, bodies: Iterator[tuple[float, Body]]) -> Iterator[str]:
    yield encode_header(header)
    for n, (t, body) in enumerate(bodies):
        yield encode_event(Event(n, t, body))


def _bodies(scenario: Scenario, passes: Sequence[Pass], notes: Sequence[str]) -> Iterator[tuple[float, Body]]:
    """The events in order, each with its time.

    A sequence's first token comes with the last pass over its prompt; its phase stays prefill until the first pass that
    writes. Sequence 0, whose figures a page tells, is the last to be read: its TTFT is the batch's, and its TPOT has no
    wait for other prompts in it.
    """
    sequences = range(scenario.batch)
    yield from ((0.0, Request(seq, scenario.prompt_tokens, scenario.new_tokens)) for seq in sequences)
    yield from ((0.0, Note(text)) for text in notes)
    yield from ((0.0, Phase(seq, "waiting")) for seq in sequences)
    begun: dict[int, PhaseName] = {}
    for i, one in enumerate(passes):
        rows = _sequences(scenario, one)
        fresh = [seq for seq in rows if begun.get(seq) != one.kind]
        begun |= dict.fromkeys(fresh, one.kind)
        yield from ((one.t0_s, Phase(seq, one.kind)) for seq in fresh)
        yield one.t1_s, _step(i, one, rows)
        if one.yields_token:
            yield from ((one.t1_s, Token(seq, i, one.context + one.n_tokens, "")) for seq in rows)
    end_s = passes[-1].t1_s
    each = {"n_prompt_tokens": scenario.prompt_tokens, "n_new_tokens": scenario.new_tokens}
    yield from ((end_s, Phase(seq, "done")) for seq in sequences)
    yield from ((end_s, End(seq, "length", totals=each)) for seq in sequences)
    yield end_s, End(None, "length", totals={name: scenario.batch * n for name, n in each.items()})


def _sequences(scenario: Scenario, one: Pass) -> range:
    last = scenario.batch - 1 - one.first
    return range(last, last - one.rows, -1)


def _step(i: int, one: Pass, sequences: range) -> Step:
    rows = tuple(Row(seq, one.n_tokens, one.context, one.kind) for seq in sequences)
    c = one.cost
    moved = StepBytes(c.weights_bytes, c.kv_read_bytes, c.kv_write_bytes, c.activation_bytes)
    return Step(i, one.t0_s, one.t1_s, "target", rows, float(c.flops), moved, "device")


def _header(scenario: Scenario, prediction: Prediction, run_id: str, created: str) -> Header:
    spec, setting = scenario.spec, scenario.setting
    return Header(
        id=run_id,
        created=created,
        source="simulated",
        model={"name": spec.name, "revision": None, "spec": asdict(spec)},
        precision=setting.weights.name,
        devices=_devices(scenario),
        ceilings=_ceilings(scenario),
        tensor_parallel=setting.tensor_parallel,
        engine={
            "name": f"as {setting.engine.family} ({setting.engine.backend}) would run it",
            "options": {"kv_cache": scenario.kv, "batch": scenario.batch},
        },
        kv_bytes_per_token=prediction.kv_bytes_per_token,
        kv_capacity_tokens=_kv_capacity_tokens(scenario),
        clock={"name": "simulated"},
        prediction=prediction.to_json(),
        text_withheld=True,
    )


def _devices(scenario: Scenario) -> tuple[Device, ...]:
    """One entry a rank, each with the rates that are published of one."""
    setting = scenario.setting
    memory_bytes = setting.hardware.memory_bytes
    return (Device(setting.hardware.name, "simulated", None, memory_bytes, None, _peaks(scenario, 1)),) * (
        setting.tensor_parallel
    )


def _ceilings(scenario: Scenario) -> Ceilings:
    compute, memory = _peaks(scenario, scenario.setting.tensor_parallel)
    return Ceilings(prefill_compute=compute, decode_compute=compute, memory=memory)


def _peaks(scenario: Scenario, devices: int) -> tuple[Peak, Peak]:
    """Compute of the units that the kernels use, and memory bandwidth, of so many devices together."""
    setting = scenario.setting
    path = compute_path(setting)
    together = f", {devices} devices together" if devices > 1 else ""
    return (
        Peak("flops", path.flops_per_s * devices, "datasheet", f"published, dense {path.name}{together}", path.name),
        Peak(
            "bytes_per_s",
            bandwidth_bytes_per_s(setting.hardware) * devices,
            "datasheet",
            f"published memory bandwidth{together}",
        ),
    )


def _kv_capacity_tokens(scenario: Scenario) -> int | None:
    """Tokens that fit beside the weights, of all sequences together."""
    setting = scenario.setting
    each = kv_tokens_that_fit(
        scenario.spec,
        setting.weights,
        scenario.kv_bytes_per_element,
        setting.hardware,
        scenario.batch,
        setting.tensor_parallel,
    )
    return None if each is None else each * scenario.batch
