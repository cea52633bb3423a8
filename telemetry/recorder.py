"""Puts a run's events on one clock and writes them as they happen.

One recorder belongs to one run. The engine's thread and the sampler's thread both emit, so ordinal, clock reading and
line are one locked act: lines stand in the order of their ordinals. The clock is monotonic; wall time appears once, as
``Header.created``. Where the lines go (a pipe, a file, a list) is the caller's business.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from telemetry.events import Body, Event, Header, Meta, Sample, Step, encode_event, encode_header, merge_meta


class Recorder:
    """Stamps and writes. ``origin`` is the clock's value at t = 0, the arrival of the request at a ready engine."""

    def __init__(
        self,
        header: Header,
        write_line: Callable[[str], None],
        clock: Callable[[], float] = time.perf_counter,
        origin: float | None = None,
    ) -> None:
        """Writes the header's line at once. ``origin`` None means now. Raises ValueError on NaN in the header."""
        self.header = header
        self.origin = clock() if origin is None else origin
        self._clock = clock
        self._write_line = write_line
        self._lock = threading.Lock()
        self._next_n = 0
        write_line(encode_header(header))

    def now(self) -> float:
        """Seconds since t = 0."""
        return self._clock() - self.origin

    def emit(self, body: Body, t: float | None = None) -> Event:
        """Write one event. ``t`` defaults to its t1 for a step or a sample (both already relative), else to now.

        A ``Meta`` merges into ``header``. Raises ValueError for NaN or Infinity; no ordinal is used up then.
        """
        with self._lock:
            if t is None:
                t = body.t1 if isinstance(body, Step | Sample) else self.now()
            event = Event(self._next_n, t, body)
            line = encode_event(event)
            if isinstance(body, Meta):
                self.header = merge_meta(self.header, body)
            self._next_n += 1
            self._write_line(line)
            return event
