"""Splits a possibly gzipped byte stream into lines without ever holding more than its limits allow.

A trace arrives from strangers as an upload, so each limit is checked while reading and before memory is spent: bytes
in, bytes out of the decompressor (a small gzip can unpack to terabytes), number of lines, length of a line. A stream
that is cut or damaged keeps every line before the damage; the last line then says that it is not whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_CHUNK_BYTES = 1 << 16
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What a trace may cost to read. ``packed_bytes`` is the file as it lies; a plain file keeps both byte limits."""

    packed_bytes: int = 32 * _MIB
    unpacked_bytes: int = 256 * _MIB
    lines: int = 2_000_000
    line_bytes: int = _MIB


class TraceError(ValueError):
    """A file that cannot be read as a trace, in one sentence."""


@dataclass(frozen=True, slots=True)
class Line:
    """``number`` counts from 1. ``whole`` is false for a last line without its line end."""

    number: int
    data: bytes
    whole: bool


def read_lines(stream: BinaryIO, limits: Limits) -> Iterator[Line]:
    """The stream's lines without line ends (LF or CRLF), a leading BOM removed. Raises TraceError over a limit."""
    number, rest = 0, b""
    for chunk in _unpacked(stream, limits):
        *ended, rest = (rest + chunk).split(b"\n")
        for data in ended:
            number += 1
            yield _line(number, data, True, limits)
        if len(rest) > limits.line_bytes:
            yield _line(number + 1, rest, False, limits)
    if rest:
        yield _line(number + 1, rest, False, limits)


def _line(number: int, data: bytes, whole: bool, limits: Limits) -> Line:
    if number > limits.lines:
        raise TraceError(f"The file has more than {limits.lines:,} lines, too many for a trace.")
    if number == 1:
        data = data.removeprefix(_BOM)
    if len(data) > limits.line_bytes:
        if number == 1:
            reject_known_format(data[:_CHUNK_BYTES])
        raise TraceError(f"Line {number} is longer than {_size(limits.line_bytes)}; no line of a trace is.")
    return Line(number, data.removesuffix(b"\r"), whole)


def reject_known_format(first_line: bytes) -> None:
    """Raises TraceError when the file's beginning is another tool's format that people mistake for a trace."""
    start = first_line.lstrip()
    if start.rstrip() == b"[" or b'"traceEvents"' in start or (start.startswith(b"[") and b'"ph"' in start):
        raise TraceError("This looks like a Chrome trace; this format is not supported.")
    if start.startswith(b'{"version"') and (b'"width"' in start or b'"term"' in start):
        raise TraceError("This looks like an asciicast; this format is not supported.")


def _unpacked(stream: BinaryIO, limits: Limits) -> Iterator[bytes]:
    total = 0
    packed = _packed(stream, limits)
    head = next(packed, b"")
    chunks = _gunzipped(head, packed) if head.startswith(GZIP_MAGIC) else _chained(head, packed)
    for chunk in chunks:
        total += len(chunk)
        if total > limits.unpacked_bytes:
            raise TraceError(f"The file unpacks to more than {_size(limits.unpacked_bytes)}, too much for a trace.")
        yield chunk


def _packed(stream: BinaryIO, limits: Limits) -> Iterator[bytes]:
    total = 0
    while chunk := stream.read(_CHUNK_BYTES):
        total += len(chunk)
        if total > limits.packed_bytes:
            raise TraceError(f"The file is larger than {_size(limits.packed_bytes)}, too large for a trace.")
        yield chunk


def _chained(head: bytes, packed: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from packed


def _gunzipped(head: bytes, packed: Iterator[bytes]) -> Iterator[bytes]:
    """Unpacks member after member in bounded pieces. Cut or damaged data ends it: what came before stands.

    Raises TraceError when the damage comes before the first byte.
    """
    unpacker = zlib.decompressobj(wbits=31)
    data, begun = head, False
    try:
        while data or (data := next(packed, b"")):
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
            chunk = unpacker.decompress(data, _CHUNK_BYTES)
            begun = begun or bool(chunk)
            yield chunk
            data = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    except zlib.error as error:
        if not begun:
            raise TraceError("The file begins like a gzipped one but cannot be unpacked.") from error


def _size(n_bytes: int) -> str:
    return f"{n_bytes / _MIB:g} MB" if n_bytes >= _MIB else f"{n_bytes:,} bytes"
