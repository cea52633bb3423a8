"""The recordings on disk: those shipped with the app, and those made or added here.

One trace is one ``.jsonl`` file; its name without the ending is its id. Ids from outside are looked up in a listing of
the two folders and never joined to a path. What the list shows of a file is read from its head and tail and remembered
until the file changes; a file that stops in mid-run is listed as "ended early". Uploads are read by the trace reader,
with all its limits, and written anew under a name of our own, so every stored file is clean whatever was sent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from server.status import Recording
from telemetry.events import (
    End,
    Event,
    Header,
    Note,
    Request,
    Token,
    decode_event,
    decode_header,
    encode_event,
    encode_header,
    parse_json,
)
from telemetry.trace import TraceWriter, read_trace

SUFFIX = ".jsonl"
KEEP_FILES = 100
KEEP_BYTES = 1_000_000_000
SIMULATED = "-sim"  # ends the id of a simulation
KEEP_SIMULATIONS = 20  # they can be made again from their address, so they never drive a recording out
ENDED_EARLY = "ended early"
HEAD_LINES = 64  # the request stands among the first few lines
LINE_LIMIT_BYTES = 1 << 20
TAIL_BYTES = 1 << 16
COUNT_LIMIT_BYTES = 32_000_000  # above this an unsaid number of tokens stays unknown


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the list shows of one file."""

    header: Header
    title: str | None
    n_prompt_tokens: int | None
    n_new_tokens: int | None
    end_reason: str


class Store:
    """The two folders of recordings. Used from any thread; every answer is read from the disk as it is now."""

    def __init__(self, folder: Path, shipped: Path, keep_files: int = KEEP_FILES, keep_bytes: int = KEEP_BYTES) -> None:
        self.folder = folder
        self._shipped = shipped
        self._keep_files = keep_files
        self._keep_bytes = keep_bytes
        self._known: dict[Path, tuple[tuple[int, int], _Figures | None]] = {}

    def create(self, run_id: str) -> TraceWriter:
        """A new file for a run's lines. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return TraceWriter(self.folder / f"{run_id}{SUFFIX}")

    def path(self, recording_id: str) -> Path:
        """The file of a recording. Raises LookupError with a sentence."""
        found = self._files(self.folder).get(recording_id) or self._files(self._shipped).get(recording_id)
        if found is None:
            raise LookupError("There is no such recording; it may have been deleted.")
        return found

    def lines(self, recording_id: str) -> Iterator[str]:
        """The recording's whole lines, header first; a last line without its end is left out."""
        with self.path(recording_id).open(encoding="utf-8", errors="replace", newline="\n") as file:
            for line in file:
                if line.endswith("\n"):
                    yield line[:-1]

    def recordings(self, live_run_id: str | None = None) -> tuple[Recording, ...]:
        """Shipped ones in the order of their names, then the others, newest first. Foreign files are left out."""
        shipped = sorted(self._files(self._shipped).items())
        own = sorted(self._files(self.folder).items(), reverse=True)
        found = [self._recording(id_, path, True, False) for id_, path in shipped]
        found += [self._recording(id_, path, False, id_ == live_run_id) for id_, path in own]
        return tuple(recording for recording in found if recording is not None)

    def add(self, shown_name: str, stream: BinaryIO) -> Recording:
        """Keep a trace that somebody sent. ``shown_name`` becomes its title, never its file name.

        Raises ValueError with a sentence when it is no trace, is too large, or cannot be stored.
        """
        trace = read_trace(stream)
        id_ = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
        header = dataclasses.replace(trace.header, title=_shown(shown_name))
        notes = tuple(Event(0, 0.0, Note(text)) for text in trace.notes)
        path = self.folder / f"{id_}{SUFFIX}"
        part = path.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with TraceWriter(part) as writer:
                writer.write_line(encode_header(header))
                for n, event in enumerate((*notes, *trace.events)):
                    writer.write_line(encode_event(dataclasses.replace(event, n=n)))
            part.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):  # a folder that is none refuses this as well
                part.unlink(missing_ok=True)
            raise ValueError(f"The recording could not be stored: {error.strerror}.") from error
        recording = self._recording(id_, path, False, False)
        assert recording is not None  # it was written a moment ago from a header that was read
        return recording

    def delete(self, recording_id: str) -> None:
        """Remove one of our own recordings. Raises LookupError if unknown, ValueError for a shipped one."""
        path = self.path(recording_id)
        if path.parent != self.folder:
            raise ValueError("This recording came with the app and stays.")
        path.unlink(missing_ok=True)
        self._known.pop(path, None)

    def prune(self, live_run_id: str | None = None) -> frozenset[str]:
        """Delete the oldest of our own recordings beyond what is kept, never the run that goes on.

        Returns the ids that stay.
        """
        stay: set[str] = set()
        n_recordings = n_simulations = total_bytes = 0
        for id_, path in sorted(self._files(self.folder).items(), reverse=True):
            if id_.endswith(SIMULATED):
                n_simulations += 1
                within = n_simulations <= KEEP_SIMULATIONS
            else:
                n_recordings, total_bytes = n_recordings + 1, total_bytes + path.stat().st_size
                within = n_recordings <= self._keep_files and total_bytes <= self._keep_bytes
            if within or not stay or id_ == live_run_id:
                stay.add(id_)
            else:
                path.unlink(missing_ok=True)
                self._known.pop(path, None)
        return frozenset(stay)

    def _files(self, folder: Path) -> dict[str, Path]:
        return {path.name.removesuffix(SUFFIX): path for path in folder.glob(f"*{SUFFIX}") if path.is_file()}

    def _recording(self, id_: str, path: Path, shipped: bool, live: bool) -> Recording | None:
        try:
            stat = path.stat()
            figures = self._figures(path, stat)
        except OSError:  # deleted between listing and reading
            return None
        if figures is None:
            return None
        header = figures.header
        return Recording(
            id=id_,
            title=figures.title or _title(figures),
            shipped=shipped,
            live=live,
            model=_model_name(header),
            precision=header.precision,
            machine=header.devices[0].name if header.devices else "an unnamed machine",
            n_prompt_tokens=figures.n_prompt_tokens,
            n_new_tokens=figures.n_new_tokens,
            created=header.created,
            size_bytes=stat.st_size,
            end_reason=None if live else figures.end_reason,
            source=header.source,
        )

    def _figures(self, path: Path, stat: os.stat_result) -> _Figures | None:
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = (stamp, _read_figures(path, stat.st_size))
        return known[1]


def _read_figures(path: Path, size_bytes: int) -> _Figures | None:
    with path.open("rb") as file:
        try:
            payload = parse_json(file.readline(LINE_LIMIT_BYTES).decode())
            header = decode_header(payload)
        except ValueError:
            return None
        request = _first_request(file)
        file.seek(max(0, size_bytes - TAIL_BYTES))
        end = _last_end(file.read(TAIL_BYTES))
        n_new = _count(end.totals.get("n_new_tokens")) if end else None
        if n_new is None and size_bytes <= COUNT_LIMIT_BYTES:
            file.seek(0)
            n_new = _count_tokens(file)
    return _Figures(
        header=header,
        title=header.title if isinstance(header.title, str) and header.title else None,
        n_prompt_tokens=_count(request.n_prompt_tokens) if request else None,
        n_new_tokens=n_new,
        end_reason=end.reason if end else ENDED_EARLY,
    )


def _event(line: bytes) -> Event | None:
    try:
        return decode_event(parse_json(line.decode()))
    except (ValueError, AttributeError):  # torn, foreign or no object at all: the trace reader is the one to complain
        return None


def _first_request(file: BinaryIO) -> Request | None:
    for _ in range(HEAD_LINES):
        event = _event(file.readline(LINE_LIMIT_BYTES))
        if event is not None and isinstance(event.body, Request):
            return event.body
    return None


def _last_end(tail: bytes) -> End | None:
    for line in reversed(tail.splitlines()):
        event = _event(line) if b'"end"' in line else None
        if event is not None and isinstance(event.body, End) and event.body.seq is None:
            return event.body
    return None


def _count_tokens(file: BinaryIO) -> int | None:
    """Tokens by their own events; None as soon as one of them does not know its count."""
    total = 0
    for line in file:
        event = _event(line) if b'"token"' in line else None
        if event is None or not isinstance(event.body, Token):
            continue
        if event.body.count is None:
            return None
        total += event.body.count
    return total


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _model_name(header: Header) -> str:
    return str(header.model.get("name") or "unnamed model")


def _title(figures: _Figures) -> str:
    words = [_model_name(figures.header), figures.header.precision]
    if figures.n_prompt_tokens is not None:
        words.append(f"{figures.n_prompt_tokens}-token prompt")
    return ", ".join(words)


def _shown(name: str) -> str:
    """The last part of an uploaded name, without control characters, short enough for a list."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c for c in last if c.isprintable()).strip()[:80] or "recording"
