"""What the reader makes of files that were cut, edited, foreign or hostile: whole lines stay, one sentence tells."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telemetry.events import FORMAT, Event, Note, Sample, Token, encode_event, encode_header
from telemetry.summary import summarise
from telemetry.trace import Limits, Trace, TraceError, TraceWriter, read_trace
from tests.telemetry.traces import record

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"


@pytest.fixture
def lines() -> list[str]:
    return record()


def parse(data: bytes | str | list[str], limits: Limits | None = None) -> Trace:
    if isinstance(data, list):
        data = "\n".join(data) + "\n"
    return read_trace(io.BytesIO(data.encode() if isinstance(data, str) else data), limits)


def sentence(data: bytes | str | list[str], limits: Limits | None = None) -> str:
    with pytest.raises(TraceError) as caught:
        parse(data, limits)
    return str(caught.value)


def with_field(line: str, **changes: Any) -> str:
    return json.dumps(json.loads(line) | changes)


def test_a_good_file_reads_without_notes(lines: list[str]) -> None:
    trace = parse(lines)
    assert (len(trace.events), trace.notes, trace.ended_early) == (len(lines) - 1, (), False)


# Cut, empty, unended


def test_torn_tail_keeps_every_whole_line_and_says_so(lines: list[str]) -> None:
    data = ("\n".join(lines[:6]) + '\n{"n":5,"t":0.5,"k":"tok').encode()
    trace = parse(data)
    assert len(trace.events) == 5
    assert trace.ended_early
    assert trace.notes == ("The trace ended early: its last line is half written.",)


def test_missing_final_newline_loses_nothing(lines: list[str]) -> None:
    trace = parse("\n".join(lines))
    assert (len(trace.events), trace.notes) == (len(lines) - 1, ())


def test_a_run_without_its_end_says_so(lines: list[str]) -> None:
    assert parse(lines[:-1]).notes == ("The trace ended early: it has no closing event.",)


def test_header_alone_is_a_trace_that_ended_early(lines: list[str]) -> None:
    trace = parse(lines[:1])
    assert trace.ended_early
    assert summarise(trace).n_new_tokens == 0


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"  \r\n"])
def test_empty_file_gets_a_sentence(data: bytes) -> None:
    assert sentence(data) == "The file is empty."


def test_damage_in_the_middle_is_reported_by_line_number(lines: list[str]) -> None:
    lines[3] = lines[3][:20]
    lines[6] = "\x00\x01"
    trace = parse(lines)
    assert len(trace.events) == len(lines) - 3
    assert [n.split(":")[0] for n in trace.notes] == ["Line 4 could not be read", "Line 7 could not be read"]
    assert trace.n_damaged_lines == 2


def test_much_damage_is_counted_not_listed(lines: list[str]) -> None:
    trace = parse([*lines[:-1], *["{}x"] * 50, lines[-1]])
    assert trace.n_damaged_lines == 50
    assert len(trace.notes) == 21
    assert trace.notes[-1] == "30 more lines could not be read."


def test_nothing_but_damage_is_refused(lines: list[str]) -> None:
    assert sentence([lines[0], "x", "y"]).startswith("None of the 2 lines after the first could be read. Line 2")


def test_killed_writer_leaves_every_finished_line(tmp_path: Path, lines: list[str]) -> None:
    """Guards "flush as it goes": the process dies without closing the file."""
    path = tmp_path / "run.jsonl"
    code = (
        "import os, sys, pathlib; from telemetry.trace import TraceWriter;"
        "w = TraceWriter(pathlib.Path(sys.argv[1]));"
        "[w.write_line(line) for line in sys.stdin.read().splitlines()]; os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, path], input="\n".join(lines[:8]), text=True, cwd=ROOT, check=False)
    assert len(read_trace(path).events) == 7


# Encodings and numbers


def test_bom_and_crlf_are_taken(lines: list[str]) -> None:
    edited = parse(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    assert edited == parse(lines)


def test_emoji_survive_an_ascii_locale(tmp_path: Path, lines: list[str]) -> None:
    """Guards against the locale's codec, cp1252 or ASCII, where UTF-8 is meant."""
    path = tmp_path / "run.jsonl"
    code = (
        "import sys, pathlib; from telemetry.events import encode_event; from telemetry.trace import *;"
        "p = pathlib.Path(sys.argv[1]); w = TraceWriter(p.with_suffix('.copy'));"
        "[w.write_line(encode_event(event)) for event in read_trace(p).events]; w.close()"
    )
    path.write_text("\n".join(lines), encoding="utf-8")
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-W", "error", "-c", code, path], env=env, cwd=ROOT, check=True)
    copy = path.with_suffix(".copy").read_bytes()
    assert "😊".encode() in copy
    assert "你好".encode() in copy
    assert b"\r" not in copy


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_json_does_not_have_become_unknown(lines: list[str], number: str) -> None:
    lines[9] = lines[9].replace("0.97", number)
    assert [e.body.value for e in parse(lines).events if isinstance(e.body, Sample)] == [None, None]


def test_a_time_that_is_no_number_costs_its_line_only(lines: list[str]) -> None:
    lines[5] = lines[5].replace('"t":0.5', '"t":NaN')
    trace = parse(lines)
    assert trace.n_damaged_lines == 1
    assert "Line 6" in trace.notes[0]


def test_writer_never_writes_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        record(((0.0, Sample("cpu", "cpu_busy", 0, float("inf"), 0.0, 0.1)),))


# Foreign and newer


def test_newer_version_is_named(lines: list[str]) -> None:
    text = sentence([with_field(lines[0], version=99), *lines[1:]])
    assert text == "This trace was made by a newer version (99); this app reads 1."


@pytest.mark.parametrize("version", [None, "1", 0, -1, True, 1.5])
def test_version_must_be_a_whole_number(lines: list[str], version: Any) -> None:
    assert sentence(with_field(lines[0], version=version)) == "This trace does not say which version it is."


@pytest.mark.parametrize(
    "data",
    [
        (CASES / "g_not_a_trace.json").read_bytes(),
        b"[1, 2, 3]",
        b'"text"',
        b"null",
        b"hello",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"\xff\xfe{\x00}\x00",
        b"\x1f\x8b\x08\x00garbage",
    ],
)
def test_foreign_files_get_one_sentence(data: bytes) -> None:
    assert sentence(data).count(".") <= 1


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ((CASES / "g_chrome_unclosed.json").read_bytes(), "Chrome trace"),
        (b'{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":1}]}', "Chrome trace"),
        (b'[{"name":"a","ph":"X","ts":1,"dur":1},' + b" " * (2 << 20), "Chrome trace"),
        ((CASES / "g_asciicast_v2.cast").read_bytes(), "asciicast"),
        (b'{"version": 3, "term": {"cols": 80}}\n', "asciicast"),
    ],
)
def test_formats_people_mistake_for_ours_are_named(data: bytes, name: str) -> None:
    assert (
        sentence(data)
        == f"This looks like {'an' if name == 'asciicast' else 'a'} {name}; this format is not supported."
    )


def test_a_doubled_key_in_the_first_line_is_refused(lines: list[str]) -> None:
    lines[0] = lines[0].replace('"version":1', '"version":1,"version":99')
    assert "names a key twice" in sentence(lines)


def test_a_doubled_key_in_an_event_costs_that_event(lines: list[str]) -> None:
    lines[5] = lines[5].replace('"t":0.5', '"t":0.5,"t":9')
    assert parse(lines).notes == ("Line 6 could not be read: a key stands twice.",)


def test_unknown_kinds_and_fields_are_skipped_silently(lines: list[str]) -> None:
    lines.insert(3, '{"n":99,"t":0.1,"k":"aurora","colour":"green"}')
    lines[5] = with_field(lines[5], from_the_future=1)
    lines[0] = with_field(lines[0], from_the_future={"a": 1})
    trace = parse(lines)
    assert (trace.notes, len(trace.events)) == ((), len(lines) - 2)


# Limits


def test_gzip_is_told_by_its_bytes(lines: list[str]) -> None:
    assert parse(gzip.compress("\n".join(lines).encode())) == parse(lines)


def test_gzip_members_in_a_row_are_one_stream(lines: list[str]) -> None:
    data = b"".join(gzip.compress((line + "\n").encode()) for line in lines)
    assert parse(data) == parse(lines)


def test_cut_gzip_keeps_its_lines() -> None:
    many = record(tuple((i / 1000, Token(0, i, i, os.urandom(8).hex())) for i in range(4000)))
    packed = gzip.compress("\n".join(many).encode())
    trace = parse(packed[: len(packed) // 2])
    assert 1000 < len(trace.events) < 3000
    assert trace.ended_early


@pytest.mark.parametrize("rest", [b"\x00" * 40, b"\xff" * 100_000, b"\x08" + b"\x00" * 7 + b"\xff" * 40])
def test_what_only_begins_like_gzip_is_not_called_empty(rest: bytes) -> None:
    with pytest.raises(TraceError, match="cannot be unpacked"):
        parse(b"\x1f\x8b" + rest)


def test_zip_bomb_stops_at_the_limit(lines: list[str]) -> None:
    """32 MiB of blanks pack into some 70 KB; reading must end soon after the limit, not after unpacking it all."""
    packer = zlib.compressobj(9, wbits=31)
    blank = (" " * 1023 + "\n").encode() * 1024
    packed = packer.compress(lines[0].encode() + b"\n") + b"".join(packer.compress(blank) for _ in range(32))
    packed += packer.flush()
    assert len(packed) < 200_000
    stream = io.BytesIO(packed)
    with pytest.raises(TraceError, match="unpacks to more than 1 MB"):
        read_trace(stream, Limits(unpacked_bytes=1 << 20))


@pytest.mark.parametrize(
    ("limits", "match"),
    [
        (Limits(packed_bytes=1000), "larger than 1,000 bytes"),
        (Limits(lines=5), "more than 5 lines"),
        (Limits(line_bytes=200), "longer than 200 bytes"),
    ],
)
def test_each_limit_has_its_sentence(lines: list[str], limits: Limits, match: str) -> None:
    with pytest.raises(TraceError, match=match):
        parse(lines, limits)


def test_an_endless_line_is_refused_before_it_is_held(lines: list[str]) -> None:
    class Endless(io.RawIOBase):
        served = 0

        def read(self, size: int = -1) -> bytes:
            self.served += size
            return b"a" * size

    stream = Endless()
    with pytest.raises(TraceError):
        read_trace(stream)  # type: ignore[arg-type]
    assert stream.served < 2 << 20


# Order


def test_events_sort_stably_by_time(lines: list[str]) -> None:
    events = parse([lines[0], *lines[4:], *lines[1:4]]).events
    assert [e.t for e in events] == sorted(e.t for e in events)
    assert [e.n for e in events if e.t == 0.5] == [3, 4, 5]


def test_running_back_up_to_two_seconds_is_normal() -> None:
    assert not parse(record(((3.0, Note("a")), (1.0, Note("b"))))).notes[1:]
    notes = parse(record(((3.0, Note("a")), (0.5, Note("b")), (0.4, Note("c"))))).notes
    assert notes[0] == "Line 3 lies 2.5 s before an earlier line; events were sorted."
    assert len(notes) == 2


def test_late_facts_are_in_the_header(lines: list[str]) -> None:
    lines.insert(3, '{"n":2,"t":0.1,"k":"meta","fields":{"load_s":2.5,"version":7}}')
    trace = parse(lines)
    assert (trace.header.load_s, trace.header.version) == (2.5, 1)


def test_a_broken_late_fact_costs_its_line(lines: list[str]) -> None:
    lines.insert(3, '{"n":2,"t":0.1,"k":"meta","fields":{"devices":"mine","load_s":2.5}}')
    trace = parse(lines)
    assert trace.n_damaged_lines == 1
    assert trace.header.load_s is None


# Properties

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_tokens = st.lists(
    st.tuples(st.floats(0, 100), st.builds(Token, st.just(0), st.none(), st.integers(0, 9), _texts)), max_size=12
)


@settings(max_examples=60, deadline=None)
@given(_tokens)
def test_what_is_written_is_read(tokens: list[tuple[float, Token]]) -> None:
    trace = parse(record(tuple(tokens)))
    assert [e.body for e in sorted(trace.events, key=lambda e: e.n)] == [body for _, body in tokens]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_prefix_of_a_file_reads_all_its_whole_lines(data: st.DataObject) -> None:
    whole = ("\n".join(record()) + "\n").encode()
    cut = whole[: data.draw(st.integers(whole.index(b"\n"), len(whole)))]
    trace = parse(cut)
    complete_lines = cut.count(b"\n") + (not cut.endswith(b"\n") and whole[len(cut) : len(cut) + 1] == b"\n")
    assert len(trace.events) == max(complete_lines - 1, 0)
    assert trace.n_damaged_lines == 0


def test_writing_a_read_trace_again_gives_the_same_trace(lines: list[str]) -> None:
    """What a stranger's file holds for us can be kept as a clean copy, and reads the same."""
    trace = parse(lines)
    assert parse([encode_header(trace.header), *map(encode_event, trace.events)]) == trace


def test_writer_makes_each_line_visible_at_once(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    with TraceWriter(path) as writer:
        for count, line in enumerate(lines, start=1):
            writer.write_line(line)
            assert path.read_bytes().count(b"\n") == count
    with pytest.raises(ValueError, match="closed"):
        writer.write_line("late")


def test_format_name_is_in_the_file(lines: list[str]) -> None:
    assert FORMAT in lines[0]
    assert isinstance(parse(lines).events[0], Event)
