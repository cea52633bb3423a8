"""When a worker is given up: the clock is the test's own."""

from __future__ import annotations

import pytest

from sources.watch import Limits, Watch
from telemetry.protocol import Beat, Hello, Progress, State

HELLO = Hello(1, ("cpu",), (), None)


def _running(now_s: float = 0.0) -> Watch:
    watch = Watch(Limits(), now_s)
    for message in (HELLO, State("ready"), State("running")):
        watch.hear(message, now_s)
    return watch


def test_five_seconds_without_a_beat_are_too_many() -> None:
    watch = _running()
    assert watch.verdict(5.0) is None
    assert "no sign of life" in (watch.verdict(5.1) or "")


@pytest.mark.parametrize(("median_s", "allowed_s"), [(None, 30.0), (0.1, 30.0), (4.0, 80.0)])
def test_a_step_may_take_thirty_seconds_or_twenty_medians(median_s: float | None, allowed_s: float) -> None:
    watch = _running()
    watch.hear(Beat("decode", allowed_s, median_s), 1.0)
    assert watch.verdict(1.0) is None
    watch.hear(Beat("decode", allowed_s + 0.1, median_s), 2.0)
    assert "decode" in (watch.verdict(2.0) or "")


def test_a_beat_of_the_run_before_says_nothing_about_this_one() -> None:
    watch = _running()
    watch.hear(Beat("decode", 29.0, None), 1.0)
    watch.hear(State("ready"), 1.0)
    watch.hear(Beat("idle", 500.0, None), 2.0)
    assert watch.verdict(2.0) is None
    watch.hear(State("running"), 3.0)
    assert watch.verdict(3.0) is None


def test_loading_counts_progress_not_beats() -> None:
    watch = Watch(Limits(), 0.0)
    watch.hear(HELLO, 0.0)
    watch.hear(State("loading"), 0.0)
    assert watch.verdict(599.0) is None  # importing a library may hold every thread for seconds
    watch.hear(Beat("loading", 599.0), 599.0)
    assert "no progress" in (watch.verdict(601.0) or "")
    watch.hear(Progress("reading weights", 0.2), 601.0)
    assert watch.verdict(1200.0) is None


def test_a_worker_that_never_says_hello_is_given_up_sooner_than_a_slow_load() -> None:
    assert "no progress" in (Watch(Limits(), 0.0).verdict(61.0) or "")


def test_a_cancel_is_due_within_the_time_of_one_step() -> None:
    watch = _running()
    watch.cancelled(0.0)
    watch.hear(Beat("decode", 0.1, 0.1), 31.0)
    assert "did not stop" in (watch.verdict(31.0) or "")


def test_a_machine_that_slept_does_not_blame_the_worker() -> None:
    watch = _running()
    watch.slept(3600.0)
    assert watch.verdict(3601.0) is None
