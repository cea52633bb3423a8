"""One run, from ids to the last token, told as a trace while it happens.

The worker and ``python -m engine record`` both run through here, so a recording and a live view are the same data. The
runner owns the order of events, sampling, stopping and text; the backend computes, the timer times, ``sim.costs``
prices. A token's time is when the host knew it. Text comes out whole: what a stop could still swallow is held, and
flushed with the last token, or as an event that counts no token when the run breaks off.

The prefill can be stretched: the same chunks are run again, marked ``repeat``, until slow counters have had a second to
see them. That happens before the pass that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from engine.activity import Activity
from engine.backend import Backend, StepKind
from engine.ceilings import Rates
from engine.sampling import Choice, Sampler
from engine.text import StopMatcher
from engine.timing import StepTimer
from sim.costs import step_cost
from telemetry.events import Body, End, EndReason, Meta, Note, Phase, Request, Row, Step, StepBytes, Token
from telemetry.protocol import RunRequest
from telemetry.recorder import Recorder

SEQ = 0
STRETCH_S = 1.0
STRETCH_MAX_REPEATS = 10_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """The ids really fed, one text per id, and what the person should know about how they came about."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Decoder(Protocol):
    """``engine.text.StreamDecoder``, or anything that turns a token into the text that is final with it."""

    def feed(self, token_id: int) -> str: ...


class Cancelled(Exception):
    """The person asked for the end; raised between two steps."""


@dataclass(slots=True)
class Runner:
    """Runs one request on a ready backend. Use once.

    ``cancelled`` is asked before every step. Errors of the backend pass through ``run`` after the text so far has been
    released; the caller ends the trace.
    """

    backend: Backend
    recorder: Recorder
    timer: StepTimer
    request: RunRequest
    prompt: Prompt
    decoder: Decoder
    stop_ids: frozenset[int]
    sampler: Sampler
    cancelled: Callable[[], bool] = lambda: False
    activity: Activity = field(default_factory=Activity)
    _stops: StopMatcher = field(init=False)
    _steps: int = field(default=0, init=False)
    _new_tokens: int = field(default=0, init=False)
    _sums: dict[StepKind, tuple[float, int, float]] = field(default_factory=dict, init=False)  # FLOPs, bytes, seconds

    def __post_init__(self) -> None:
        self._stops = StopMatcher(self.request.stop)

    def announce(self) -> None:
        """The request, as of t = 0, and what there is to note about it."""
        pieces = None if self.request.text_withheld else self.prompt.pieces
        self._emit(Request(SEQ, len(self.prompt.ids), self.request.max_new_tokens, pieces), t=0.0)
        for note in (*self.prompt.notes, *self.backend.notes):
            self._emit(Note(note))

    def run(self) -> EndReason:
        """Everything from the first phase to the sequence's end; returns why it ended. Call ``announce`` before."""
        try:
            reason = self._generate()
        except Cancelled:
            reason = "cancelled"
        finally:
            self._release_held()
        self._emit(Phase(SEQ, "done"))
        self._emit(End(SEQ, reason, totals=self.totals()))
        return reason

    def totals(self) -> dict[str, Any]:
        return {"n_prompt_tokens": len(self.prompt.ids), "n_new_tokens": self._new_tokens}

    def reached(self, kind: StepKind) -> Rates | None:
        """FLOP/s and bytes/s over all steps of a kind that count; None where there was no such step."""
        flops, n_bytes, seconds = self._sums.get(kind, (0.0, 0, 0.0))
        return Rates(flops / seconds, n_bytes / seconds) if seconds > 0 else None

    def _generate(self) -> EndReason:
        self.timer.tie()
        self._emit(Phase(SEQ, "prefill"))
        if self.request.stretch_prefill:
            self._stretch()
        choice, known_t = self._choose(self._prefill())
        reason = self._token(choice, known_t)
        self._tie()
        if reason is None:
            self._emit(Phase(SEQ, "decode"))
        while reason is None:
            choice, known_t = self._decode(choice.token_id, len(self.prompt.ids) + self._new_tokens - 1)
            reason = self._token(choice, known_t)
        self._tie()
        return reason

    def _stretch(self) -> None:
        begun, repeats = self.recorder.now(), 0
        while self.recorder.now() - begun < STRETCH_S and repeats < STRETCH_MAX_REPEATS:
            self._prefill(repeat=True)
            repeats += 1
        times = "once" if repeats == 1 else f"{repeats} times"
        self._emit(Note(f"The prefill was run {times} beforehand so that counters can see it; only the last counts."))

    def _prefill(self, *, repeat: bool = False) -> torch.Tensor:
        """All chunks; the last position's logits."""
        self.backend.reset()
        ids = torch.tensor(self.prompt.ids, dtype=torch.int64)
        size, logits = self.backend.prefill_chunk, torch.empty(0)
        for position in range(0, len(ids), size):
            chunk = ids[position : position + size]
            self._before("prefill")
            self.timer.start()
            logits = self.backend.prefill(chunk, position)
            self.timer.stop()
            self._step("prefill", len(chunk), position, repeat)
        return logits

    def _decode(self, token: int, position: int) -> tuple[Choice, float]:
        self._before("decode")
        self.timer.start()
        logits = self.backend.decode(token, position)
        self.timer.stop()
        chosen = self._choose(logits)  # before the step is told: it waits for the device, telling would delay it
        self._step("decode", 1, position, repeat=False)
        return chosen

    def _choose(self, logits: torch.Tensor) -> tuple[Choice, float]:
        """The next token and the moment when the host knew it."""
        return self.sampler.choose(logits), self.recorder.now()

    def _before(self, kind: StepKind) -> None:
        if self.cancelled():
            raise Cancelled
        self.activity.begin(kind)

    def _step(self, kind: StepKind, n_tokens: int, context: int, repeat: bool) -> None:
        t0, t1 = self.timer.read()
        backend = self.backend
        cost = step_cost(
            backend.spec,
            [(n_tokens, context)],
            backend.weight_bytes(kind),
            backend.kv_bytes_per_element,
            backend.activation_bytes_per_element,
        )
        moved = StepBytes(cost.weights_bytes, cost.kv_read_bytes, cost.kv_write_bytes, cost.activation_bytes)
        row = Row(SEQ, n_tokens, context, kind)
        origin, timing = self.recorder.origin, self.timer.timing
        self._emit(
            Step(self._steps, t0 - origin, t1 - origin, "target", (row,), float(cost.flops), moved, timing, repeat)
        )
        self._steps += 1
        if not repeat:
            flops, n_bytes, seconds = self._sums.get(kind, (0.0, 0, 0.0))
            self._sums[kind] = (flops + cost.flops, n_bytes + cost.total_bytes, seconds + t1 - t0)

    def _token(self, choice: Choice, known_t: float) -> EndReason | None:
        """Tell one token; why the run ends with it, or None."""
        position = len(self.prompt.ids) + self._new_tokens
        self._new_tokens += 1
        text = self._stops.feed(self.decoder.feed(choice.token_id))
        reason = self._reason(choice.token_id)
        if reason is not None:
            text += self._stops.flush()
        self._emit(
            Token(
                SEQ,
                self._steps - 1,
                position,
                "" if self.request.text_withheld else text,
                id=None if self.request.text_withheld else choice.token_id,
                prob=choice.prob,
            ),
            known_t,
        )
        return reason

    def _reason(self, token_id: int) -> EndReason | None:
        if token_id in self.stop_ids and not self.request.ignore_eos:
            return "eos"
        if self._stops.stopped:
            return "stop"
        return "length" if self._new_tokens >= self.request.max_new_tokens else None

    def _release_held(self) -> None:
        held = self._stops.flush()
        if held and not self.request.text_withheld:
            self._emit(Token(SEQ, None, None, held, count=0))

    def _tie(self) -> None:
        """After a phase: tie the clocks again and say how far they were apart."""
        self.timer.tie()
        if self.timer.timing == "device":
            self._emit(Meta({"clock": dict(self.timer.clock())}))

    def _emit(self, body: Body, t: float | None = None) -> None:
        self.recorder.emit(body, t)


def warm_up(backend: Backend) -> None:
    """One prefill chunk and two decode steps: first calls build kernels and capture graphs, outside of any TTFT."""
    n = max(1, min(backend.prefill_chunk, backend.capacity_tokens - 2))
    backend.reset()
    backend.prefill(torch.zeros(n, dtype=torch.int64), 0)
    for position in range(n, min(n + 2, backend.capacity_tokens)):
        float(backend.decode(0, position)[0])  # waits for the device
    backend.reset()
