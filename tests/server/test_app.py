"""app.py as people start it: `streamlit run app.py` in a process of its own, with a fresh runs folder."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

import server

ROOT = Path(__file__).resolve().parent.parent.parent


def _start(port: int, runs: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    return subprocess.Popen(
        [*command, "--server.port", str(port)],
        cwd=ROOT,
        env=os.environ | {"SILICONSCOPE_LIVE": "0", "SILICONSCOPE_RUNS": str(runs), "SILICONSCOPE_INSTALL": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of the running app."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    process = _start(port, tmp_path_factory.mktemp("runs"))
    deadline = time.monotonic() + 30
    while not _healthy(port):
        assert process.poll() is None and time.monotonic() < deadline, "the app did not come up"
        time.sleep(0.1)
    yield port
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=15)
    assert "Traceback" not in said
    assert not [child for child in children if child.is_running()]


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://localhost:{port}/_stcore/health").text == "ok"
    except httpx.HTTPError:
        return False


def test_page_routes_and_404s_are_served_together(app: int) -> None:
    url = f"http://localhost:{app}"
    assert "<!doctype html>" in httpx.get(url).text.lower()
    assert httpx.get(f"{url}/stage/{server.stage_digest()}/stage.js").status_code == 200
    assert httpx.get(f"{url}/api/traces").status_code == 200
    for path in ("/stage/x/stage.js", "/api/nothing", "/plotly/x/plotly.min.js"):
        assert httpx.get(url + path).status_code == 404
    plotly = httpx.get(f"{url}/plotly/{server.plotly_digest()}/plotly.min.js")
    assert plotly.headers["content-encoding"] == "gzip" and b"plotly.js" in plotly.content[:200]


@pytest.mark.parametrize(
    "path", ["/", "/_stcore/health", "/_stcore/host-config", "/static/x", "/api/traces", "/media/x"]
)
def test_a_foreign_host_reaches_nothing_of_streamlits_either(app: int, path: str) -> None:
    answer = httpx.get(f"http://localhost:{app}{path}", headers={"Host": "evil.example"})
    assert answer.status_code == 421 and "SILICONSCOPE_HOSTS" in answer.text


@pytest.mark.parametrize("path", ["/_stcore/stream", "/api/status", "/api/run"])
@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://localhost:1", "own"])
def test_sockets_open_for_our_own_page_only(app: int, path: str, origin: str | None) -> None:
    own = f"http://localhost:{app}"
    headers = {"Origin": own if origin == "own" else origin} if origin else {}

    async def dial() -> int:
        try:
            async with connect(f"ws://localhost:{app}{path}", additional_headers=headers, proxy=None):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    assert asyncio.run(dial()) == (101 if origin == "own" else 403)


def test_an_upload_from_another_page_is_refused(app: int) -> None:
    address = f"http://localhost:{app}/_stcore/upload_file/a/b"
    for origin in ({}, {"Origin": "http://evil.example"}):
        assert httpx.put(address, content=b"x", headers=origin).status_code == 403


def test_a_port_in_use_is_one_sentence(app: int, tmp_path: Path) -> None:
    second = _start(app, tmp_path)
    said, _ = second.communicate(timeout=20)
    assert second.returncode == 1
    (line,) = [line for line in said.splitlines() if line.strip()]
    assert f"Port {app} is not available" in line
