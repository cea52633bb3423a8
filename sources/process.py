"""The worker as an operating-system process: start it, send it lines, read its lines, end it for certain.

The worker leads its own process group, so Ctrl-C in the terminal reaches the server alone, which then ends the worker
in order; and killing it takes what it started along. Its stdin is its lifeline: when this process dies in whatever
way, the pipe closes and the worker ends by itself. Its stderr is ours, so what it has to say stands in the terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

LINE_LIMIT_BYTES = 1 << 20  # what the trace reader takes as well
ROOT = Path(__file__).resolve().parent.parent


class WorkerProcess:
    """One worker from start to end. ``send``, ``kill`` and ``close`` may be called from any thread."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it. Raises OSError when the command cannot be started."""
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p), "PYTHONUTF8": "1"},
            start_new_session=True,
        )
        self._writing = threading.Lock()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: str) -> None:
        """Write one command. Raises OSError when the worker is gone."""
        assert self._process.stdin is not None
        with self._writing:
            if self._process.stdin.closed:
                raise BrokenPipeError("the worker's stdin is closed")
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def lines(self) -> Iterator[bytes]:
        """Whole lines until the worker ends. One over the limit is left out; so is a torn last one."""
        stdout = self._process.stdout
        assert stdout is not None
        while piece := stdout.readline(LINE_LIMIT_BYTES):
            if piece.endswith(b"\n"):
                yield piece
                continue
            while piece and not piece.endswith(b"\n"):
                piece = stdout.readline(LINE_LIMIT_BYTES)

    def kill(self) -> None:
        """End it at once, with what it started."""
        if self._process.poll() is not None:
            return
        if sys.platform == "win32":
            self._process.kill()
            return
        with contextlib.suppress(ProcessLookupError):  # it ended between the question and the signal
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self, patience_s: float) -> None:
        """Close its stdin, which asks it to end; kill it when it has not after ``patience_s``."""
        hang_up = threading.Thread(target=self._hang_up, name="live-hang-up", daemon=True)
        hang_up.start()  # a write that waits for a hung worker would hold us up as well
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
        hang_up.join()

    def finish(self) -> int:
        """Wait for the end (its output is at its end already) and free the pipes; the exit code."""
        code = self._process.wait()
        self._hang_up()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def _hang_up(self) -> None:
        assert self._process.stdin is not None
        with self._writing, contextlib.suppress(OSError):  # a broken pipe: it is gone already
            self._process.stdin.close()
