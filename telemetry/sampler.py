"""One thread that reads the sensors on a steady beat and emits what they say.

Two lanes: activity, busy time and clocks some nine times a second, which is as fast as hardware counters refresh;
power, temperature, memory and throttling once a second, since each of their calls makes the driver wait for the GPU.
A thread is enough: driver calls release the interpreter's lock, and counters are means over their window, so a late
beat widens the window and biases nothing. A beat that is missed is skipped, never made up for.

The thread is joined in ``stop``, before anybody may close a sensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from telemetry.events import Sample
from telemetry.sensors.base import Clock, Lane, Sensor

FAST_INTERVAL_S = 0.115  # a window of 110 ms, and slack so that an early beat is not lost to it
SLOW_INTERVAL_S = 1.0
JOIN_S = 5.0  # longer than any driver call seen; a thread that hangs in the driver is left behind


class Sampler:
    """Samples one run. ``emit`` is called from the sampler's thread; ``now`` is the run's clock in seconds."""

    def __init__(
        self, sensors: Sequence[Sensor], emit: Callable[[Sample], object], now: Clock, join_s: float = JOIN_S
    ) -> None:
        self._sensors = tuple(sensors)
        self._emit = emit
        self._now = now
        self._join_s = join_s
        self._abandoned = False  # the trace may have ended: nothing is emitted any more
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self.failure: str | None = None  # why the thread ended before it was asked to

    def start(self) -> None:
        """Takes the counters' baselines on the new thread, then beats. To be called once."""
        self._thread.start()

    def stop(self) -> None:
        """Read once more, so that counters cover the run to its end, and join. May be called again, or before start."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(self._join_s)
        if self._thread.is_alive():
            self._abandoned = True
            self.failure = "Sampling stopped: a sensor's driver does not answer."

    def _run(self) -> None:
        try:
            self._beat_until_stopped()
        except Exception as error:  # the thread's edge: a run goes on without its samples
            self.failure = f"Sampling stopped: {error or type(error).__name__}"

    def _beat_until_stopped(self) -> None:
        for sensor in self._sensors:
            sensor.begin(self._now)
        next_slow = self._now()
        next_fast = next_slow + FAST_INTERVAL_S  # the first window has to fill
        while True:
            t = self._now()
            if t >= next_fast:
                self._sample("fast")
                next_fast = _following(next_fast, FAST_INTERVAL_S, t)
            if t >= next_slow:
                self._sample("slow")
                next_slow = _following(next_slow, SLOW_INTERVAL_S, t)
            if self._stopping.wait(max(0.0, min(next_fast, next_slow) - self._now())):
                self._sample("fast")
                self._sample("slow")
                return

    def _sample(self, lane: Lane) -> None:
        for sensor in self._sensors:
            for sample in sensor.sample(lane, self._now):
                if not self._abandoned:
                    self._emit(sample)


def _following(due: float, interval_s: float, t: float) -> float:
    """The next beat of a steady rhythm that lies after ``t``."""
    missed = int((t - due) / interval_s)
    return due + (missed + 1) * interval_s
