"""Writes a trace file and reads one back, whatever has happened to it since.

The reader's rule: everything that arrived whole is kept, everything else is told. A file whose writer was killed ends
in half a line; an editor adds a BOM and CRLF; another writer's NaN becomes unknown; a damaged line costs that line and
a note with its number. Only a file that is no trace at all, is newer than this reader, or would cost too much to read
is refused, with one sentence (``TraceError``). ``docs/trace.md`` describes the format.

Not covered: following a file that still grows. Live viewers get lines from the server.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, TextIO

from telemetry.events import (
    End,
    Event,
    Header,
    Meta,
    decode_event,
    decode_header,
    merge_meta,
    parse_json,
)
from telemetry.lines import Limits, Line, TraceError, read_lines, reject_known_format
from telemetry.validate import check_event, check_header

__all__ = ["Limits", "Trace", "TraceError", "TraceWriter", "read_trace"]

MAX_BACKWARD_S = 2.0
_MAX_LINE_NOTES = 20


@dataclass(frozen=True, slots=True)
class Trace:
    """``header`` with all late facts merged in; ``events`` sorted stably by t; ``notes`` are sentences for a person.

    ``ended_early``: the end of the whole engine is missing. ``n_damaged_lines``: lines that could not be read, a torn
    last one not among them.
    """

    header: Header
    events: tuple[Event, ...]
    notes: tuple[str, ...] = ()
    ended_early: bool = False
    n_damaged_lines: int = 0


class TraceWriter:
    """A context manager over a new or emptied file; ``write_line`` makes each line visible before it returns."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="utf-8", newline="\n")

    def write_line(self, line: str) -> None:
        """Write one line, without its line end. Raises OSError when the disk is full, ValueError when closed."""
        self._file.write(line + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def read_trace(source: Path | BinaryIO, limits: Limits | None = None) -> Trace:
    """Read a plain or gzipped trace (told by its first bytes, not its name).

    Raises TraceError (a ValueError) with one sentence: empty, not a trace, another tool's format, a newer version, a
    key twice in the first line, over a limit, nothing readable. Raises OSError when the file cannot be opened.
    """
    if isinstance(source, Path):
        with source.open("rb") as stream:
            return read_trace(stream, limits)
    lines = read_lines(source, limits or Limits())
    first = next(lines, None)
    if first is None or (not first.data.strip() and next(lines, None) is None):
        raise TraceError("The file is empty.")
    reading = _Reading(_first_line(first))
    for line in lines:
        reading.take(line)
    return reading.finish()


def _first_line(line: Line) -> Header:
    reject_known_format(line.data)
    try:
        payload = parse_json(line.data.decode())
    except ValueError as error:
        if "stands twice" in str(error):
            raise TraceError("The trace's first line names a key twice, so it is not clear what holds.") from error
        raise TraceError("This is not a trace file: its first line is not JSON.") from error
    try:
        return check_header(decode_header(payload))
    except ValueError as error:
        sentence = str(error)
        known = sentence.endswith(".")
        raise TraceError(sentence if known else f"The trace's first line is broken: {sentence}.") from error


@dataclass(slots=True)
class _Reading:
    """What has been gathered so far while going through the lines after the first."""

    header: Header
    events: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_damaged: int = 0
    latest_t: float = float("-inf")
    ran_back: bool = False
    torn: bool = False

    def take(self, line: Line) -> None:
        if not line.data.strip():
            return
        try:
            event = self._event(line)
        except ValueError as error:
            self._damaged(line, str(error))
            return
        if event is not None:
            self._check_order(line, event)
            self.events.append(event)

    def _event(self, line: Line) -> Event | None:
        try:
            payload = parse_json(line.data.decode())
        except ValueError as error:
            twice = "stands twice" in str(error)
            raise ValueError("a key stands twice" if twice else "it is not JSON in UTF-8") from error
        if not isinstance(payload, dict):
            raise ValueError("it is not an object")
        event = decode_event(payload)
        if event is None:
            return None  # a kind from a later minor version
        check_event(event)
        if isinstance(event.body, Meta):
            self.header = check_header(merge_meta(self.header, event.body))
        return event

    def _damaged(self, line: Line, why: str) -> None:
        if not line.whole:
            self.torn = True
            return
        self.n_damaged += 1
        if self.n_damaged <= _MAX_LINE_NOTES:
            self.notes.append(f"Line {line.number} could not be read: {why.removesuffix('.')}.")

    def _check_order(self, line: Line, event: Event) -> None:
        if event.t < self.latest_t - MAX_BACKWARD_S and not self.ran_back:
            self.ran_back = True
            back_s = self.latest_t - event.t
            self.notes.append(f"Line {line.number} lies {back_s:.1f} s before an earlier line; events were sorted.")
        self.latest_t = max(self.latest_t, event.t)

    def finish(self) -> Trace:
        if self.n_damaged and not self.events:
            raise TraceError(f"None of the {self.n_damaged} lines after the first could be read. {self.notes[0]}")
        if self.n_damaged > _MAX_LINE_NOTES:
            self.notes.append(f"{self.n_damaged - _MAX_LINE_NOTES} more lines could not be read.")
        ended_early = not any(isinstance(e.body, End) and e.body.seq is None for e in self.events)
        self.notes.extend(self._early_note(ended_early))
        events = sorted(self.events, key=operator.attrgetter("t"))
        return Trace(self.header, tuple(events), tuple(self.notes), ended_early or self.torn, self.n_damaged)

    def _early_note(self, ended_early: bool) -> Iterator[str]:
        if self.torn:
            yield "The trace ended early: its last line is half written."
        elif ended_early:
            yield "The trace ended early: it has no closing event."
