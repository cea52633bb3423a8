"""The process in which the engine lives: commands come in on stdin, events go out on stdout, one JSON line each.

A process of its own can be killed, and cannot tear a page down with it. It keeps the two pipes to itself: file
descriptor 1 is pointed at stderr and 0 at nothing, so that no library's print or prompt gets into the stream. ``hello``
goes out before torch is imported. Three threads: this one owns the engine, one reads commands (so that a cancel takes
effect within a step), one beats. End of file on stdin ends the process, whatever it is doing.

    python -m engine.worker [--model M ...] [--models-dir D] [--device cpu|cuda|mps] [--threads N]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from engine.activity import Activity
from engine.catalog import Catalog, collect
from engine.host import cpu_name, gpu_names
from telemetry.protocol import (
    Beat,
    Cancel,
    Command,
    Hello,
    Load,
    Message,
    Refused,
    Run,
    State,
    Unload,
    decode_command,
    encode_message,
)

if TYPE_CHECKING:
    from engine.session import Session

BEAT_S = 1.0
GRACE_S = 2.0  # after the end of stdin, for a run to close its trace
EXIT_BROKEN = 3


class Lines:
    """The process's own way out: whole lines, from any thread. A reader that has gone is no error here."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        data = (line + "\n").encode("utf-8", errors="replace")
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                return

    def send(self, message: Message) -> None:
        self.write(encode_message(message))


class Inbox:
    """Commands in order, each run with its own cancel flag; None is the end."""

    def __init__(self, stream: BinaryIO, lines: Lines) -> None:
        self._stream = stream
        self._lines = lines
        self._commands: queue.SimpleQueue[tuple[Command, threading.Event] | None] = queue.SimpleQueue()
        self._newest = threading.Event()

    def get(self) -> tuple[Command, threading.Event] | None:
        return self._commands.get()

    def read_to_the_end(self) -> None:
        """The reading thread. At the end of the stream the process ends: at once when idle, else after a grace."""
        for line in self._stream:
            self._take(line)
        self._newest.set()
        self._commands.put(None)
        threading.Event().wait(GRACE_S)
        os._exit(0)

    def _take(self, line: bytes) -> None:
        try:
            command = decode_command(line.decode())
        except ValueError:
            self._lines.send(Refused("The worker does not know this command."))
            return
        if isinstance(command, Cancel):
            self._newest.set()
            return
        self._newest = threading.Event()
        self._commands.put((command, self._newest))


def take_pipes() -> tuple[BinaryIO, Lines]:
    """Our own stdin and stdout; everybody else in this process reads nothing and prints to stderr."""
    commands = os.fdopen(os.dup(0), "rb")
    lines = Lines(os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return commands, lines


def beat(activity: Activity, lines: Lines) -> None:
    """The beating thread."""
    pause = threading.Event()
    while not pause.wait(BEAT_S):
        lines.send(Beat(*activity.read()))


def hello(catalog: Catalog) -> Hello:
    """Who and what is here, found without importing torch."""
    present = importlib.util.find_spec("torch") is not None
    problem = None
    if not present:
        problem = "PyTorch is not installed here, so nothing can run on this machine; recordings play."
    elif not catalog.entries:
        problem = " ".join(catalog.problems) or "No model is available here: give one with --model."
    version = importlib.metadata.version("torch") if present else None
    return Hello(os.getpid(), (*gpu_names(), cpu_name()), catalog.offers, version, problem)


def serve(session: Session, inbox: Inbox, lines: Lines) -> int:
    """Carry out commands until the end of stdin. Returns the process's exit code."""
    while (item := inbox.get()) is not None:
        command, cancelled = item
        try:
            _carry_out(session, command, cancelled, lines)
        except (ValueError, LookupError) as error:
            lines.send(Refused(str(error)))
            session.tell_settled(problem=str(error))
        except Exception as error:  # the process's edge: a failed load must not end the worker
            from engine.failures import sentence

            message = sentence(error)
            session.unload()
            lines.send(Refused(message))
            session.tell("failed", message=message)
        session.activity.begin("idle")
        if session.broken:
            session.tell("failed", message="The device stopped working; the engine is started anew.")
            return EXIT_BROKEN
    return 0


def _carry_out(session: Session, command: Command, cancelled: threading.Event, lines: Lines) -> None:
    match command:
        case Load(model, precision):
            session.load(model, precision)
        case Run(run_id, request):
            session.ready_for(request)
            session.run(run_id, request, lines.write, cancelled.is_set)
            session.tell_settled()
        case Unload():
            session.unload()
            session.tell("idle")
        case Cancel():
            raise AssertionError("the reading thread acts on cancel itself")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is for the caller, who then closes stdin
    commands, lines = take_pipes()
    catalog = collect(options.model, options.models_dir)
    for problem in catalog.problems:
        print(problem, file=sys.stderr)
    lines.send(hello(catalog))
    activity, inbox = Activity(), Inbox(commands, lines)
    activity.begin("starting")
    threading.Thread(target=inbox.read_to_the_end, name="commands", daemon=True).start()
    threading.Thread(target=beat, args=(activity, lines), name="beat", daemon=True).start()
    if importlib.util.find_spec("torch") is None:
        while inbox.get() is not None:
            lines.send(Refused("PyTorch is not installed here, so nothing can run on this machine."))
        return 0
    session = _open_session(catalog, options, activity, lines)
    return 1 if session is None else serve(session, inbox, lines)


def _open_session(catalog: Catalog, options: argparse.Namespace, activity: Activity, lines: Lines) -> Session | None:
    """Imports torch, which takes seconds: hello has gone out long before."""
    from engine.load import open_model
    from engine.machine import this_machine, use_threads
    from engine.session import Session

    use_threads(options.threads)
    try:
        machine = this_machine(options.device)
    except ValueError as error:
        lines.send(State("failed", message=str(error)))
        return None
    session = Session(catalog, machine, open_model, lines.send, activity)
    session.activity.begin("idle")
    session.tell("idle")
    return session


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.worker", description="Runs the engine behind two pipes.")
    parser.add_argument("--model", action="append", default=[], help="GGUF file, model folder or hub id; repeatable")
    parser.add_argument("--models-dir", help="a folder whose models are offered")
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"), help="default: the best there is")
    parser.add_argument("--threads", type=int, help="default: SILICONSCOPE_THREADS, else the physical cores")
    return parser


if __name__ == "__main__":
    sys.exit(main())
