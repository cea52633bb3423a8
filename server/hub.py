"""Fan-out of a growing run to any number of viewers: one history, one encoder, no holes.

A run's lines arrive in the source's reader thread; viewers are tasks on the server's loop. There are no queues: the
channel keeps the run's lines while it lives, and a viewer is nothing but a position in them. Every 20 ms at most the
loop moves the mark up to which lines are shown and wakes whoever waits; all that stand at the same place share one
encoded message. A slow viewer simply takes more lines with its next message, so it can neither hold up the others nor
lose a line, and a reconnect from ordinal N is a viewer that begins there. What this costs is the memory of one run's
lines; when the run is over the channel goes, and later viewers read the file.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

FLUSH_DELAY_S = 0.020
LINES_PER_MESSAGE = 1000  # some 200 kB: a long backlog goes in pieces, so that one viewer never holds the loop


class Bell:
    """Wakes tasks on ``loop`` when something changed. Rung from any thread; strikes once for all rings of ``delay_s``.

    Take ``next()`` before looking at what may change, then wait for it: so no ring falls between look and wait.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        delay_s: float = FLUSH_DELAY_S,
        before_strike: Callable[[], None] | None = None,
    ) -> None:
        self._loop = loop
        self._delay_s = delay_s
        self._before_strike = before_strike
        self._lock = threading.Lock()
        self._armed = False
        self._struck = asyncio.Event()

    def ring(self) -> None:
        with self._lock:
            if self._armed or self._loop.is_closed():
                return
            self._armed = True
        self._loop.call_soon_threadsafe(self._loop.call_later, self._delay_s, self._strike)

    def next(self) -> asyncio.Event:
        """The event that the next strike sets. Call it on the loop."""
        return self._struck

    def _strike(self) -> None:
        with self._lock:
            self._armed = False
        if self._before_strike:
            self._before_strike()
        struck, self._struck = self._struck, asyncio.Event()
        struck.set()


class Channel:
    """One run's lines: the header at position 0, event n at position n + 1. Written by one thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, delay_s: float = FLUSH_DELAY_S) -> None:
        self._lines: list[str] = []
        self._ended = False
        self._problem: str | None = None
        self._shown = 0
        self._end_shown = False
        self._encoded = (0, 0, "")
        self._n_encoded = 0
        self._bell = Bell(loop, delay_s, self._show)

    @property
    def problem(self) -> str | None:
        """Why the run never began, once it has ended without a line."""
        return self._problem

    @property
    def n_encoded(self) -> int:
        """How many messages were put together so far, whoever they went to."""
        return self._n_encoded

    def append(self, line: str) -> None:
        self._lines.append(line)
        self._bell.ring()

    def end(self, problem: str | None = None) -> None:
        self._problem = problem
        self._ended = True
        self._bell.ring()

    def text(self) -> str:
        """Everything that came so far, as a file would hold it."""
        return "".join(f"{line}\n" for line in tuple(self._lines))

    async def follow(self, position: int) -> AsyncIterator[str]:
        """Messages of whole lines from ``position`` on, without holes, until the run is over."""
        while True:
            changed = self._bell.next()
            if position < self._shown:
                end = min(self._shown, position + LINES_PER_MESSAGE)
                message, position = self._encode(position, end), end
                yield message
            elif self._end_shown:
                return
            else:
                await changed.wait()

    def _show(self) -> None:
        # The writer sets _ended after its last line, so reading it first means that no line is missed.
        self._end_shown = self._ended
        self._shown = len(self._lines)

    def _encode(self, start: int, end: int) -> str:
        if self._encoded[:2] != (start, end):
            self._encoded = (start, end, "\n".join(self._lines[start:end]))
            self._n_encoded += 1
        return self._encoded[2]


class Hub:
    """The channels of the runs that go on now, by run id. Used from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._channels: dict[str, Channel] = {}

    def open(self, run_id: str) -> Channel:
        channel = Channel(self._loop)
        with self._lock:
            self._channels[run_id] = channel
        return channel

    def get(self, run_id: str) -> Channel | None:
        """The channel of a run that goes on; None when it is over or never was. Its file then has everything."""
        with self._lock:
            return self._channels.get(run_id)

    def forget(self, run_id: str) -> None:
        """Let the run's memory go as soon as its last viewer has left."""
        with self._lock:
            self._channels.pop(run_id, None)
