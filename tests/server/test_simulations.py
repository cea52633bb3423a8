"""Simulated runs on the server: made whole, whoever runs what, and never at the cost of a recording."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from server import Server
from server.hub import Bell, Hub
from server.runs import Runs
from server.store import KEEP_SIMULATIONS, SIMULATED, Store
from sim.scenario import find_scenario
from sources.simulated import SimulatedSource
from telemetry.protocol import RunRequest
from tests.server.conftest import HandPlayedSource

SCENARIO = find_scenario("llama-3-8b", "rtx-4090", "q4_k_m", 100, 5)
TOO_LARGE = find_scenario("llama-3-70b", "rtx-4090", "bf16", 100, 5)


@pytest.fixture
def source() -> HandPlayedSource:
    return HandPlayedSource()


@pytest.fixture
def desk(tmp_path: Path, source: HandPlayedSource) -> Iterator[Server]:
    loop = asyncio.new_event_loop()
    bell = Bell(loop)
    runs = Runs(Store(tmp_path / "runs", tmp_path / "shipped"), Hub(loop), bell.ring)
    yield Server(runs, {"live": source}, bell, simulator=SimulatedSource())
    loop.close()


def test_a_simulation_is_a_recording_when_it_returns(desk: Server) -> None:
    started = desk.simulate(SCENARIO)
    (recording,) = desk.recordings()
    assert recording.id == started.run_id
    assert (recording.source, recording.live, recording.end_reason) == ("simulated", False, "length")
    assert (recording.n_prompt_tokens, recording.n_new_tokens) == (100, 5)
    desk.delete(started.run_id, started.key)
    assert desk.recordings() == ()


def test_it_does_not_wait_for_the_machine_nor_disturb_its_run(desk: Server, source: HandPlayedSource) -> None:
    live = desk.start("live", RunRequest(prompt="Hello"))
    started = desk.simulate(SCENARIO)
    assert desk.status().busy_run_id == live.run_id
    assert {recording.id: recording.live for recording in desk.recordings()} == {
        started.run_id: False,
        live.run_id: True,
    }
    source.end()
    desk.delete(live.run_id, live.key)


def test_a_refusal_leaves_nothing_behind(desk: Server) -> None:
    with pytest.raises(ValueError, match="does not fit by"):
        desk.simulate(TOO_LARGE)
    assert desk.recordings() == ()
    assert desk.status().problem is None


def test_simulations_drive_out_each_other_and_no_recording(tmp_path: Path) -> None:
    store = Store(tmp_path, tmp_path / "shipped", keep_files=3)
    text = "x" * 10
    for i in range(3):
        (tmp_path / f"20260101-00000{i}-aa.jsonl").write_text(text)
    for i in range(KEEP_SIMULATIONS + 5):
        (tmp_path / f"20260102-0000{i:02}-aa{SIMULATED}.jsonl").write_text(text)
    kept = store.prune()
    assert len([id_ for id_ in kept if id_.endswith(SIMULATED)]) == KEEP_SIMULATIONS
    assert len([id_ for id_ in kept if not id_.endswith(SIMULATED)]) == 3
    assert f"20260102-000000-aa{SIMULATED}" not in kept


def test_a_server_without_a_simulator_says_so(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    bell = Bell(loop)
    desk = Server(Runs(Store(tmp_path, tmp_path), Hub(loop), bell.ring), {"live": HandPlayedSource()}, bell)
    with pytest.raises(ValueError, match="does not simulate"):
        desk.simulate(SCENARIO)
    loop.close()
