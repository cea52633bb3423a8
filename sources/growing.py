"""One run's trace while its lines come: keeps their order, and closes what its worker left open.

The viewers' positions and the file rest on one promise: event lines carry n = 0, 1, 2, … without a gap. It is checked
here, at the only door. Whatever happens to the worker, the trace then ends with an ``end`` event that says why.
"""

from __future__ import annotations

from typing import Any, Protocol

from telemetry.events import End, Event, encode_event


class Sink(Protocol):
    """Where a run's lines go; see server/runs.py, whose Sink this is."""

    def line(self, text: str) -> None: ...
    def close(self, problem: str | None = None) -> None: ...


class GrowingTrace:
    """What has come of one run so far. Used from the one thread that reads the worker's lines."""

    def __init__(self, sink: Sink) -> None:
        self.began = False
        self._sink = sink
        self._next_n = 0
        self._last_t = 0.0

    def take(self, payload: dict[str, Any], text: str) -> bool:
        """Pass on the trace's next line; True when it was the last. Raises ValueError when it is not the next one."""
        if not self.began and "format" in payload:
            self.began = True
            self._sink.line(text)
            return False
        n, t = payload.get("n"), payload.get("t")
        if not self.began or n != self._next_n or not isinstance(t, int | float):
            raise ValueError("A line of the engine's was lost or came out of order, so the run was ended.")
        self._next_n, self._last_t = self._next_n + 1, float(t)
        self._sink.line(text)
        return payload.get("k") == "end" and payload.get("seq") is None

    def close(self) -> None:
        """The last line has come."""
        self._sink.close()

    def break_off(self, sentence: str) -> None:
        """The worker will not end this run: an error at the moment of its last event, or a refusal before the first."""
        if not self.began:
            self._sink.close(sentence)
            return
        self._sink.line(encode_event(Event(self._next_n, self._last_t, End(None, "error", sentence))))
        self._sink.close()
