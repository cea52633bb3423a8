"""When to give a worker up: pure judgement over what it said and when.

A worker that answers beats once a second and names how long the present step has taken. While it starts, loads or
measures it may be deaf for a while (loading a library holds Python's lock), so there only progress counts. No clock is
read here: the caller brings the time, in seconds of any monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from telemetry.protocol import Beat, Message, State, WorkerState

PREPARING: frozenset[WorkerState] = frozenset({"starting", "loading", "measuring"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a worker may take. A step: ``step_s``, or ``step_factor`` times the median of its kind if longer."""

    beat_s: float = 5.0
    step_s: float = 30.0
    step_factor: float = 20.0
    hello_s: float = 60.0
    loading_s: float = 600.0


class Watch:
    """Follows one worker's life. ``verdict`` is the sentence with which to end it, or None while all is well."""

    def __init__(self, limits: Limits, now_s: float) -> None:
        self._limits = limits
        self._said_hello = False
        self._state: WorkerState = "starting"
        self._heard_s = now_s
        self._progress_s = now_s
        self._beat: Beat | None = None
        self._cancelled_s: float | None = None

    def hear(self, message: Message, now_s: float) -> None:
        """A message came (not a trace line: the sampler could write those beside a hung engine)."""
        self._said_hello = True
        self._heard_s = now_s
        if isinstance(message, Beat):
            self._beat = message
            return
        self._progress_s = now_s
        if isinstance(message, State):
            self._state = message.state
            self._beat = self._cancelled_s = None

    def cancelled(self, now_s: float) -> None:
        """The run was asked to stop; it has as long as one step may take."""
        self._cancelled_s = now_s

    def slept(self, now_s: float) -> None:
        """This process itself stood still (a closed laptop): all waiting begins anew."""
        self._heard_s = self._progress_s = now_s
        if self._cancelled_s is not None:
            self._cancelled_s = now_s

    def verdict(self, now_s: float) -> str | None:
        if self._state in PREPARING:
            limit_s = self._limits.loading_s if self._said_hello else self._limits.hello_s
            late = now_s - self._progress_s > limit_s
            return f"The engine made no progress for {limit_s:.0f} s while it was {self._state}." if late else None
        if now_s - self._heard_s > self._limits.beat_s:
            return f"The engine gave no sign of life for {self._limits.beat_s:.0f} s and was ended."
        if self._state != "running" or self._beat is None:
            return None
        allowed_s = max(self._limits.step_s, self._limits.step_factor * (self._beat.median_s or 0.0))
        if self._beat.since_s > allowed_s:
            return f"The engine hung: {self._beat.doing} took longer than {allowed_s:.0f} s, so it was ended."
        if self._cancelled_s is not None and now_s - self._cancelled_s > allowed_s:
            return f"The engine did not stop within {allowed_s:.0f} s, so it was ended."
        return None
