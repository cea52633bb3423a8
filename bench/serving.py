"""Starts the product's server for a benchmark, in a folder of its own, and ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    process: psutil.Process
    runs: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served(script: str, **environment: str) -> Iterator[Served]:
    """``streamlit run SCRIPT`` on a free port. Raises SystemExit when it does not answer within a minute."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder, "runs")
        runs.mkdir()
        env = os.environ | {"SILICONSCOPE_RUNS": str(runs), "PYTHONPATH": str(ROOT)} | environment
        command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless=true"]
        server = subprocess.Popen(
            [*command, f"--server.port={port}"], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        try:
            url = f"http://localhost:{port}/"
            _wait(url + "_stcore/health")
            yield Served(url, psutil.Process(server.pid), runs)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


def _wait(url: str, limit_s: float = 60.0) -> None:
    end = time.perf_counter() + limit_s
    while time.perf_counter() < end:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit("The server did not start.")
