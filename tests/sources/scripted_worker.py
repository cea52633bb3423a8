"""A real process that speaks the worker's protocol and does what its prompt says. No engine, no torch.

The prompt's first word is the part it plays: "say" writes as many tokens as asked, and each of the others fails in one
way. The command line sets how it starts: "stillborn" ends at once, "deaf" never says hello, "broken" has a problem.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from telemetry.events import End, Header, Phase, Request, Token
from telemetry.protocol import (
    Beat,
    Cancel,
    Hello,
    Load,
    ModelOffer,
    PrecisionOffer,
    Progress,
    Refused,
    Run,
    State,
    decode_command,
    encode_message,
)
from telemetry.recorder import Recorder

BEAT_S = 0.05
READY = State(
    "ready", "scripted", "fp32", "cpu", (PrecisionOffer("fp32", True, "fp32"),), "fp32", max_context_tokens=128
)

writing = threading.Lock()
cancelled = threading.Event()
silent = threading.Event()
doing: list[tuple[str, float]] = [("idle", time.monotonic())]


def write(line: str) -> None:
    with writing:
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()


def beat() -> None:
    while not silent.wait(BEAT_S):
        what, since = doing[0]
        write(encode_message(Beat(what, time.monotonic() - since, 0.001)))


def listen(part: str) -> None:
    for line in sys.stdin:
        command = decode_command(line)
        if isinstance(command, Load):
            write(encode_message(State("loading", "scripted")))
            write(encode_message(Progress("reading weights", 0.5)))
            write(encode_message(READY))
        elif isinstance(command, Run):
            cancelled.clear()
            threading.Thread(target=run, args=(command,), daemon=True).start()
        elif isinstance(command, Cancel):
            cancelled.set()
    if part != "clinging":
        os._exit(0)
    time.sleep(60)


def run(command: Run) -> None:
    request = command.request
    part, _, rest = (request.prompt or "").partition(" ")
    if part == "refuse":
        write(encode_message(Refused("The prompt is empty.")))
        write(encode_message(READY))
        return
    if part == "die-early":
        os._exit(3)
    write(encode_message(State("running", "scripted", "fp32", "cpu")))
    header = Header(command.run_id, "2026-01-02T03:04:05+00:00", "live", {"name": "scripted"}, "fp32")
    recorder = Recorder(header, write)
    recorder.emit(Request(0, 3, request.max_new_tokens))
    recorder.emit(Phase(0, "decode"))
    doing[0] = ("decode", time.monotonic())
    if part == "unclosed":
        write(encode_message(READY))
        return
    reason = play(part, float(rest or 0), request.max_new_tokens, recorder)
    recorder.emit(Phase(0, "done"))
    recorder.emit(End(None, reason, totals={"n_prompt_tokens": 3, "n_new_tokens": request.max_new_tokens}))
    write(encode_message(READY))


def play(part: str, pause_s: float, n_tokens: int, recorder: Recorder) -> str:
    for i in range(n_tokens):
        if i == 5 or (i == 0 and n_tokens < 5):
            fail(part, recorder)
        if cancelled.is_set():
            return "cancelled"
        recorder.emit(Token(0, i, 3 + i, f" w{i}", id=i))
        doing[0] = ("decode", time.monotonic())
        time.sleep(pause_s)
    return "length"


def fail(part: str, recorder: Recorder) -> None:
    if part == "die":
        os._exit(9)
    if part == "killed":
        os.kill(os.getpid(), 9)
    if part == "silent":
        silent.set()
        time.sleep(60)
    if part == "hang":
        time.sleep(60)
    if part == "deaf-to-cancel":
        while True:
            doing[0] = ("decode", time.monotonic())
            time.sleep(0.01)
    if part == "garbage":
        write("Loading checkpoint shards: 100%|####| {not json")
        write("[1, 2]")
        write('{"k": "beat"}')
        write("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"))
    if part == "huge":
        write("x" * 3_000_000)
    if part == "lose":
        lost, recorder._write_line = recorder._write_line, lambda line: None
        recorder.emit(Phase(0, "decode"))
        recorder._write_line = lost


def main() -> None:
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    if part == "stillborn":
        sys.exit(1)
    if part == "deaf":
        time.sleep(60)
    if part == "no-device":
        write(encode_message(State("failed", message="There is no such device.")))
        sys.exit(1)
    problem = "This build of PyTorch does not work here." if part == "broken" else None
    offer = ModelOffer("scripted", "a script", 1, "embedded")
    write(encode_message(Hello(os.getpid(), ("cpu",), (offer,), None, problem)))
    threading.Thread(target=beat, daemon=True).start()
    listen(part)


if __name__ == "__main__":
    main()
