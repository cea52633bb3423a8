"""The routes through a real server: files, traces, and the two websockets with their viewers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import httpx
import pytest
from starlette.routing import Route, WebSocketRoute
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

import server
from server.routes import routes
from telemetry.protocol import State


def _dial(site: Any, path: str) -> connect:
    return connect(f"{site.ws}{path}", origin=site.url, proxy=None)


async def _read(socket: ClientConnection, n_lines: int | None = None) -> tuple[list[str], int | None]:
    """Lines until the server closes, with its code; or only so many."""
    lines: list[str] = []
    try:
        while n_lines is None or len(lines) < n_lines:
            lines += str(await asyncio.wait_for(socket.recv(), 20)).split("\n")
    except ConnectionClosed as closed:
        return lines, closed.rcvd.code if closed.rcvd else None
    return lines, None


async def _watch(site: Any, query: str, n_lines: int | None = None) -> tuple[list[str], int | None]:
    async with _dial(site, f"/api/run?{query}") as socket:
        return await _read(socket, n_lines)


def _ordinals(lines: list[str]) -> list[int]:
    return [json.loads(line).get("n", -1) for line in lines]


def test_stage_files_are_immutable_under_their_digest_and_nothing_else_is_there(site: Any) -> None:
    base = f"{site.url}/stage/{server.stage_digest()}"
    answer = httpx.get(f"{base}/stage.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    again = httpx.get(f"{base}/stage.js", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304 and not again.content
    for path in (
        f"/stage/{server.stage_digest()}/nothing.js",
        "/stage/0123456789abcdef/stage.js",
        f"/stage/{server.stage_digest()}/%2e%2e/traces/x.jsonl",
        f"/stage/{server.stage_digest()}/..%2f..%2fapp.py",
        "/stage",
        "/stage/",
        "/plotly/",
        "/api",
        "/api/nothing",
        "/api/traces/nothing.jsonl",
        "/api/traces/..%2f..%2fapp.py",
    ):
        assert httpx.get(site.url + path).status_code == 404, path


def test_a_path_prefix_of_the_server_holds_for_our_routes_too() -> None:
    paths = [route.path for route in routes("/lab/") if isinstance(route, Route | WebSocketRoute)]
    assert len(paths) == len(routes()) and all(path.startswith("/lab/") for path in paths)


def test_plotly_comes_compressed_once_and_for_ever(site: Any) -> None:
    address = f"{site.url}/plotly/{server.plotly_digest()}/plotly.min.js"
    with httpx.stream("GET", address) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip" and "immutable" in answer.headers["cache-control"]
    plain = httpx.get(address, headers={"Accept-Encoding": "identity"})
    assert b"plotly.js" in plain.content[:200] and len(raw) < 0.4 * len(plain.content)


def test_a_trace_is_served_listed_and_downloaded(site: Any) -> None:
    started = site.start()
    site.source.tokens(3)
    address = f"{site.url}/api/traces/{started.run_id}.jsonl"
    assert _ordinals(httpx.get(address).text.splitlines()) == [-1, 0, 1, 2, 3]  # while it goes on
    site.source.end()
    answer = httpx.get(address)
    assert answer.text == site.store.path(started.run_id).read_text()
    assert httpx.get(address, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    download = httpx.get(address, params={"download": "1"})
    assert f'filename="siliconscope-{started.run_id}.jsonl"' in download.headers["content-disposition"]
    (listed,) = httpx.get(f"{site.url}/api/traces").json()
    assert listed["id"] == started.run_id and listed["end_reason"] == "length"


def test_a_viewer_gets_backlog_then_live_lines_then_the_end(site: Any) -> None:
    async def view() -> tuple[list[str], int | None]:
        site.source.tokens(10)
        async with _dial(site, f"/api/run?run={started.run_id}&from=0") as socket:
            backlog, _ = await _read(socket, 12)
            await asyncio.to_thread(site.source.tokens, 10)
            site.source.end()
            live, code = await _read(socket)
            return backlog + live, code

    started = site.start()
    lines, code = asyncio.run(view())
    assert code == 1000
    assert "\n".join(lines) + "\n" == site.store.path(started.run_id).read_text()


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("first", [0, 1, 7, 12])
def test_reconnecting_from_an_ordinal_misses_and_repeats_nothing(site: Any, first: int, over: bool) -> None:
    started = site.start()
    site.source.tokens(10)
    if over:
        site.source.end()
        lines, code = asyncio.run(_watch(site, f"run={started.run_id}&from={first}"))
        assert code == 1000
    else:
        threading.Timer(0.1, site.source.end).start()
        lines, _ = asyncio.run(_watch(site, f"run={started.run_id}&from={first}"))
    assert _ordinals(lines) == list(range(first or -1, 12))


@pytest.mark.parametrize(
    ("query", "code"), [("run=nobody", 4404), ("", 4404), ("run=../x", 4404), ("run=a&from=-1", 4400)]
)
def test_unknown_runs_close_with_their_code(site: Any, query: str, code: int) -> None:
    assert asyncio.run(_watch(site, query)) == ([], code)


def test_an_unknown_socket_closes(site: Any) -> None:
    async def dial() -> int | None:
        async with _dial(site, "/api/nothing") as socket:
            return (await _read(socket))[1]

    assert asyncio.run(dial()) == 4404


def test_a_slow_viewer_holds_up_nobody_and_loses_nothing(site: Any) -> None:
    async def view(pause_s: float) -> list[str]:
        lines: list[str] = []
        async with connect(
            f"{site.ws}/api/run?run={started.run_id}", origin=site.url, proxy=None, max_queue=1, max_size=None
        ) as socket:
            async for message in socket:
                lines += str(message).split("\n")
                await asyncio.sleep(pause_s)
        return lines

    async def both() -> tuple[list[str], list[str]]:
        slow, fast = asyncio.create_task(view(0.05)), asyncio.create_task(view(0))
        await asyncio.sleep(0.1)
        for _ in range(20):
            await asyncio.to_thread(site.source.tokens, 200)
        site.source.end()
        first = await asyncio.wait_for(fast, 20)
        return first, await slow

    started = site.start()
    fast, slow = asyncio.run(both())
    assert fast == slow and _ordinals(fast) == list(range(-1, 4002))


def test_the_status_comes_at_connect_and_at_each_change(site: Any) -> None:
    async def listen() -> list[dict[str, Any]]:
        said = []
        async with _dial(site, "/api/status") as socket:
            said.append(json.loads(await socket.recv()))
            site.source.become(State("loading", message=None))
            said.append(json.loads(await asyncio.wait_for(socket.recv(), 20)))
            site.source.become(State("ready", "played"))
            said.append(json.loads(await asyncio.wait_for(socket.recv(), 20)))
            await asyncio.to_thread(site.start)
            said.append(json.loads(await asyncio.wait_for(socket.recv(), 20)))
        return said

    first, loading, ready, busy = asyncio.run(listen())
    assert first["k"] == "status" and first["install"] is None and first["busy"] is None
    assert set(first["worker"]) >= {
        "state", "message", "doing", "share", "model", "device", "default_precision", "precisions", "models"
    }  # fmt: skip
    assert [s["worker"]["state"] for s in (loading, ready)] == ["loading", "ready"]
    assert busy["busy"] == {"run": site.source.run_id}


def test_viewers_who_come_and_go_leave_no_task_and_no_thread_and_the_run_goes_on(site: Any) -> None:
    async def visit() -> None:
        async with _dial(site, f"/api/run?run={started.run_id}") as run, _dial(site, "/api/status") as status:
            await run.recv()
            await status.recv()

    async def slam() -> None:
        run = await _dial(site, f"/api/run?run={started.run_id}")
        run.transport.abort()

    started = site.start()
    asyncio.run(visit())  # the first visit may start what stays, such as a worker thread
    tasks, threads = _settled(site)
    for _ in range(10):
        asyncio.run(visit())
        asyncio.run(slam())
        site.source.tokens(1)
    assert _settled(site) == (tasks, threads)
    site.source.end()
    assert (site.desk.recordings()[0].n_new_tokens or 0) > 0
    assert site.desk.recordings()[0].end_reason == "length"


def test_a_viewer_may_leave_at_any_moment_without_a_trace(capfd: pytest.CaptureFixture[str], site: Any) -> None:
    # capfd stands first: the server's log keeps the stderr that it finds at its start
    async def hurry(path: str, wait_s: float) -> None:
        socket = await _dial(site, path)
        await asyncio.sleep(wait_s)
        if wait_s > 0.003:
            socket.transport.abort()
        else:
            await socket.close()

    async def hurry_all() -> None:
        paths = (f"/api/run?run={started.run_id}", "/api/run?run=nobody", "/api/run?from=x", "/api/status", "/api/x")
        await asyncio.gather(*(hurry(path, i / 1000) for path in paths for i in range(10)))

    started = site.start()
    site.source.tokens(3000)
    asyncio.run(hurry_all())
    _settled(site)
    assert "Traceback" not in capfd.readouterr().err


def _settled(site: Any) -> tuple[int, int]:
    """Tasks and threads once they have stopped changing."""
    before = (-1, -1)
    while (now := (site.tasks(), threading.active_count())) != before:
        before = now
        time.sleep(0.1)
    return now
