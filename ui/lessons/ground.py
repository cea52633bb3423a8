"""The run that a chapter's figures come from: the learner's own, or the opening recording, or one that is computed.

A chapter needs the same few facts of each, so all become one ``Ground``: what was read and written, when, at what cost,
and against which ceilings. A run that lacks one of them (a remote engine says nothing of its steps) is no ground; then
the opening recording is, and without that the time model's run of a small model on a desktop processor. Nothing of it
needs torch, a model file or a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import server
from server import Recording
from sim.costs import StepCost, kv_bytes_per_token, parameter_count, step_cost, weight_bytes
from sim.engines import bandwidth_bytes_per_s, compute_path
from sim.playback import Pass, play
from sim.scenario import Scenario, find_scenario
from sim.specs import Experts, LatentAttention, ModelSpec
from telemetry.events import Request, Step, Token
from telemetry.summary import summarise
from telemetry.trace import Trace
from ui import figures, selection

Kind = Literal["own", "recorded", "simulated", "computed"]
# What stands in where no recording came with this copy.
STAND_IN = ("SmolLM2-135M", "Ryzen 9 9950X DDR5-5600", "Q8_0", 500, 64)


@dataclass(frozen=True, slots=True)
class GroundStep:
    """One pass: seconds on the run's clock, tokens that went through, FLOPs, and bytes by part."""

    t0_s: float
    t1_s: float
    n_tokens: int
    context: int
    cost: StepCost

    @property
    def duration_s(self) -> float:
        return self.t1_s - self.t0_s


@dataclass(frozen=True, slots=True)
class GroundToken:
    """A written token. ``text`` is the model's, so it is shown as characters only; None where it is withheld."""

    t_s: float
    text: str | None


@dataclass(frozen=True, slots=True)
class Ground:
    """``title``, ``machine``, ``model`` and ``precision`` may be a stranger's text; figures are not. Ceilings in FLOP/s
    and bytes/s, None where unknown."""

    kind: Kind
    title: str
    machine: str
    model: str
    precision: str
    spec: ModelSpec
    reading: tuple[GroundStep, ...]
    writing: tuple[GroundStep, ...]
    tokens: tuple[GroundToken, ...]
    tpot_s: float
    kv_bytes_per_token: int
    read_flops_per_s: float | None
    write_flops_per_s: float | None
    bytes_per_s: float | None
    energy_j: float | None

    @property
    def n_read(self) -> int:
        return sum(step.n_tokens for step in self.reading)

    @property
    def read_s(self) -> float:
        """Seconds in the passes over the prompt."""
        return sum(step.duration_s for step in self.reading)

    @property
    def read_each_s(self) -> float:
        return self.read_s / self.n_read

    @property
    def written_s(self) -> float:
        """Seconds that the answer takes, a token at the mean pace each."""
        return self.tpot_s * len(self.tokens)

    @property
    def ratio(self) -> float:
        """How many times longer a written token takes than a read one."""
        return self.tpot_s / self.read_each_s

    @property
    def chunk(self) -> int:
        """Most tokens that went through the weights in one pass."""
        return max(step.n_tokens for step in self.reading)

    @property
    def bits_per_weight(self) -> float:
        """From the bytes that a pass over the prompt read, against the same pass in 16 bit."""
        return 16 * self.reading[0].cost.weights_bytes / self._first_in_16_bit().weights_bytes

    @property
    def activation_bytes(self) -> float:
        """Of one element, from the same pass."""
        return 2 * self.reading[0].cost.activation_bytes / self._first_in_16_bit().activation_bytes

    def _first_in_16_bit(self) -> StepCost:
        first = self.reading[0]
        row = (first.n_tokens, first.context)
        return step_cost(self.spec, [row], weight_bytes(self.spec, 16.0), 2.0, 2.0)

    @property
    def ridge_flops_per_byte(self) -> float | None:
        if self.read_flops_per_s is None or self.bytes_per_s is None:
            return None
        return self.read_flops_per_s / self.bytes_per_s

    def prompt_cost(self, n_tokens: int) -> list[StepCost]:
        """The passes of a prompt of another length, in chunks as large as this run's."""
        weights = weight_bytes(self.spec, self.bits_per_weight)
        kv = self.kv_bytes_per_token / kv_bytes_per_token(self.spec, 1.0)
        starts = range(0, n_tokens, self.chunk)
        rows = [(min(self.chunk, n_tokens - start), start) for start in starts]
        return [step_cost(self.spec, [row], weights, kv, self.activation_bytes) for row in rows]


def current() -> Ground:
    """The run on the stage where it will do, else what stands in for it."""
    known = {recording.id: recording for recording in server.current().recordings()}
    for run_id in (selection.shown().run_id, selection.OPENING):
        recording = known.get(run_id or "")
        found = _of_recording(recording) if recording is not None else None
        if found is not None:
            return found
    return computed()


def _of_recording(recording: Recording) -> Ground | None:
    if recording.live or recording.size_bytes > figures.LARGEST_IN_PASSING_BYTES:
        return None
    trace = figures.trace(recording.id)
    return of_trace(trace, recording) if trace is not None else None


def of_trace(trace: Trace, recording: Recording) -> Ground | None:
    """The facts of a finished trace, or None where it does not tell them all."""
    spec, sums = _spec(trace.header.model.get("spec")), summarise(trace)
    seq = next((e.body.seq for e in trace.events if isinstance(e.body, Request)), None)
    steps = [e.body for e in trace.events if isinstance(e.body, Step) and _only_of(e.body, seq)]
    reading, writing = _steps(steps, "prefill"), _steps(steps, "decode")
    kv = trace.header.kv_bytes_per_token
    if spec is None or sums.tpot_s is None or not reading or not writing or kv is None:
        return None
    tokens = [e for e in trace.events if isinstance(e.body, Token) and e.body.seq == seq and e.body.count]
    withheld = trace.header.text_withheld
    texts = [(e.t, e.body.text) for e in tokens if isinstance(e.body, Token) and e.body.verdict != "rejected"]
    limits = trace.header.ceilings
    return Ground(
        kind=_kind(recording),
        title=recording.title,
        machine=recording.machine,
        model=recording.model,
        precision=recording.precision,
        spec=spec,
        reading=reading,
        writing=writing,
        tokens=tuple(GroundToken(t, None if withheld else text) for t, text in texts),
        tpot_s=sums.tpot_s,
        kv_bytes_per_token=kv,
        read_flops_per_s=limits.prefill_compute.value if limits.prefill_compute else None,
        write_flops_per_s=limits.decode_compute.value if limits.decode_compute else None,
        bytes_per_s=limits.memory.value if limits.memory else None,
        energy_j=sums.energy_j,
    )


@lru_cache(maxsize=1)
def computed() -> Ground:
    """The run that the time model computes where there is none."""
    return of_scenario(find_scenario(*STAND_IN))


def of_scenario(scenario: Scenario) -> Ground:
    """A run that never happened. Raises ValueError as ``sim.playback.play`` does."""
    s = scenario
    passes = play(s.spec, s.setting, s.prompt_tokens, s.new_tokens, 1, s.kv_bytes_per_element)
    writing = tuple(_of_pass(p) for p in passes if p.kind == "decode")
    return Ground(
        kind="computed",
        title=s.spec.name,
        machine=s.setting.hardware.name,
        model=s.spec.name,
        precision=s.setting.weights.name,
        spec=s.spec,
        reading=tuple(_of_pass(p) for p in passes if p.kind == "prefill"),
        writing=writing,
        tokens=tuple(GroundToken(p.t1_s, None) for p in passes if p.yields_token),
        tpot_s=sum(step.duration_s for step in writing) / len(writing),
        kv_bytes_per_token=s.predict().kv_bytes_per_token,
        read_flops_per_s=compute_path(s.setting).flops_per_s,
        write_flops_per_s=compute_path(s.setting).flops_per_s,
        bytes_per_s=bandwidth_bytes_per_s(s.setting.hardware),
        energy_j=None,
    )


def _kind(recording: Recording) -> Kind:
    if recording.source == "simulated":
        return "simulated"
    return "recorded" if recording.shipped else "own"


def _only_of(step: Step, seq: int | None) -> bool:
    """A counted step with one row, of that sequence: what a batch shares cannot be told as one token's."""
    return not step.repeat and step.role == "target" and [row.seq for row in step.rows] == [seq]


def _steps(steps: list[Step], kind: str) -> tuple[GroundStep, ...]:
    return tuple(_of_step(step) for step in steps if step.rows[0].kind == kind and step.bytes is not None)


def _of_step(step: Step) -> GroundStep:
    moved, row = step.bytes, step.rows[0]
    assert moved is not None
    cost = StepCost(round(step.flops or 0), moved.weights, moved.kv_read, moved.kv_write, moved.activations)
    return GroundStep(step.t0, step.t1, row.n_tokens, row.context, cost)


def _of_pass(p: Pass) -> GroundStep:
    return GroundStep(p.t0_s, p.t1_s, p.n_tokens, p.context, p.cost)


def _spec(fields: Any) -> ModelSpec | None:
    """The model's shape as a header has it, or None where it is not a whole one."""
    if not isinstance(fields, Mapping):
        return None
    try:
        spec = ModelSpec(**fields)
        parts = {
            "experts": Experts(**fields["experts"]) if fields.get("experts") else None,
            "latent": LatentAttention(**fields["latent"]) if fields.get("latent") else None,
        }
        spec = ModelSpec(**{**fields, **parts})
        return spec if parameter_count(spec) > 0 else None
    except (TypeError, ValueError, KeyError, ArithmeticError):
        return None
