"""The life of a run: one at a time, its key, its file, and what is told when something goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from server import Busy
from server.store import Store
from telemetry.protocol import RunRequest, State
from telemetry.trace import TraceWriter, read_trace


def test_a_run_is_in_its_file_before_anybody_sees_it_and_listed_while_it_lives(site: Any) -> None:
    started = site.start()
    site.source.tokens(5)
    (listed,) = site.desk.recordings()
    assert (listed.id, listed.live, listed.end_reason) == (started.run_id, True, None)
    assert site.store.path(started.run_id).read_text().count('"k":"token"') == 5
    site.source.end()
    (listed,) = site.desk.recordings()
    assert (listed.live, listed.end_reason, listed.n_prompt_tokens) == (False, "length", 3)
    trace = read_trace(site.store.path(started.run_id))
    assert not trace.ended_early and trace.header.id == started.run_id


def test_the_second_person_is_told_whose_run_to_watch(site: Any) -> None:
    first = site.start()
    assert site.desk.status().busy_run_id == first.run_id
    with pytest.raises(Busy, match="you can watch it") as busy:
        site.start()
    assert busy.value.run_id == first.run_id
    site.source.end()
    assert site.desk.status().busy_run_id is None
    assert site.start().run_id != first.run_id


def test_a_refusal_is_told_to_who_asked_and_leaves_nothing(site: Any) -> None:
    site.source.refusal = "The prompt is empty."
    with pytest.raises(ValueError, match=r"The prompt is empty\."):
        site.start("")
    site.source.refusal = None
    site.source.become(State("loading"))
    with pytest.raises(ValueError, match="still being loaded"):
        site.start()
    assert site.desk.recordings() == () and site.desk.status().busy_run_id is None
    with pytest.raises(ValueError, match="does not know"):
        site.desk.start("nowhere", RunRequest(prompt="x"))


def test_stopping_needs_the_key_or_a_person_at_this_machine(site: Any) -> None:
    started = site.start()
    for key in (None, "", "wrong", started.key + "x", "ключ"):
        with pytest.raises(ValueError, match="Only the browser that started this run"):
            site.desk.cancel(started.run_id, key)
    assert not site.source.cancelled
    site.desk.cancel(started.run_id, started.key)
    assert site.source.cancelled
    site.source.cancelled = False
    site.desk.cancel(started.run_id, None, loopback=True)
    assert site.source.cancelled
    site.source.end()
    with pytest.raises(LookupError, match="over already"):
        site.desk.cancel(started.run_id, started.key)


def test_deleting_needs_the_key_and_a_run_that_is_over(site: Any) -> None:
    started = site.start()
    with pytest.raises(ValueError, match="still goes on"):
        site.desk.delete(started.run_id, started.key)
    site.source.end()
    with pytest.raises(ValueError, match="Only the browser"):
        site.desk.delete(started.run_id, None)
    site.desk.delete(started.run_id, started.key)
    assert site.desk.recordings() == ()
    with pytest.raises(LookupError):
        site.desk.delete(started.run_id, None, loopback=True)


class FullDisk(Store):
    def create(self, run_id: str) -> TraceWriter:
        return TraceWriter(Path("/dev/full"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
def test_a_full_disk_stops_the_run_with_a_sentence_and_frees_the_machine(site: Any) -> None:
    disk, site.desk.runs.store = site.store, FullDisk(site.store.folder, site.store.folder)
    site.start()
    assert site.source.cancelled
    assert "No space left on device" in (site.desk.status().message or "")
    site.source.tokens(3)
    site.source.end()
    site.desk.runs.store = disk
    site.start()
    assert site.desk.status().message is None
