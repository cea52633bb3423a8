"""What the engine thread is busy with, and for how long, so that a watcher can tell slow from stuck."""

from __future__ import annotations

import time


class Activity:
    """What the engine thread is doing, for the heart-beat: a name, since when, and how long such a step usually takes.

    Written by the engine thread, read by the beat's thread; each read takes one tuple, so it is never torn.
    """

    _KEPT = 64

    def __init__(self) -> None:
        self._now = ("idle", time.perf_counter())
        self._durations_s: dict[str, list[float]] = {}

    def begin(self, doing: str) -> None:
        """The next thing starts; the one before it counts towards its kind's median."""
        before, since = self._now
        now = time.perf_counter()
        self._durations_s[before] = [*self._durations_s.get(before, [])[1 - self._KEPT :], now - since]
        self._now = (doing, now)

    def read(self) -> tuple[str, float, float | None]:
        """Name, seconds since it began, median seconds of its kind so far (None before the first)."""
        doing, since = self._now
        past = sorted(self._durations_s.get(doing, []))
        return doing, time.perf_counter() - since, past[len(past) // 2] if past else None
