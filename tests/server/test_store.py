"""Recordings on disk: what is listed, kept, refused, and under which name."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from server.store import Store

TraceText = Callable[..., str]
CASES = Path(__file__).parent.parent / "cases"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "shipped").mkdir()
    return Store(tmp_path / "runs", tmp_path / "shipped", keep_files=5, keep_bytes=40_000)


def _keep(store: Store, run_id: str, text: str) -> None:
    with store.create(run_id) as file:
        for line in text.splitlines():
            file.write_line(line)


def test_figures_come_from_head_and_tail(store: Store, trace_text: TraceText) -> None:
    _keep(store, "20260101-a", trace_text(written=["a", "b", "c"]))
    (found,) = store.recordings()
    assert (found.model, found.precision, found.machine) == ("hand-made model", "fp32", "hand-made machine")
    assert (found.n_prompt_tokens, found.n_new_tokens, found.end_reason) == (5, 3, "length")
    assert found.title == "hand-made model, fp32, 5-token prompt"
    assert found.size_bytes == store.path("20260101-a").stat().st_size


def test_a_run_whose_process_died_is_listed_as_ended_early(store: Store, trace_text: TraceText) -> None:
    text = trace_text()
    path = store.folder / "20260101-a.jsonl"
    store.folder.mkdir()
    for cut in (len(text) // 2, len(text) - 20, text.index("\n") + 1):
        path.write_text(text[:cut])
        (found,) = store.recordings()
        assert found.end_reason == "ended early"
    assert all(json.loads(line) for line in store.lines("20260101-a"))


def test_foreign_files_are_left_out_and_do_no_harm(store: Store, trace_text: TraceText) -> None:
    _keep(store, "20260101-a", trace_text())
    for name, body in (
        ("b", b""),
        ("c", b"\xff\xfe\x00"),
        ("d", b"[1]\n"),
        ("e", b'{"format": 1}\n'),
        ("f", b"{" * 99),
    ):
        (store.folder / f"{name}.jsonl").write_bytes(body)
    (store.folder / "g.jsonl").mkdir()
    assert [r.id for r in store.recordings()] == ["20260101-a"]


def test_shipped_first_then_newest_first_and_all_survive_a_restart(tmp_path: Path, trace_text: TraceText) -> None:
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped" / "opening.jsonl").write_text(trace_text())
    first = Store(tmp_path / "runs", tmp_path / "shipped")
    for run_id in ("20260101-a", "20260103-c", "20260102-b"):
        _keep(first, run_id, trace_text())
    again = Store(tmp_path / "runs", tmp_path / "shipped")
    assert [r.id for r in again.recordings()] == ["opening", "20260103-c", "20260102-b", "20260101-a"]
    assert [r.shipped for r in again.recordings()] == [True, False, False, False]
    with pytest.raises(ValueError, match="came with the app"):
        again.delete("opening")


def test_the_oldest_go_beyond_number_and_size(store: Store, trace_text: TraceText) -> None:
    for day in range(8):
        _keep(store, f"2026010{day}-a", trace_text(written=["a"]))
    assert store.prune() == {f"2026010{day}-a" for day in (3, 4, 5, 6, 7)}
    _keep(store, "20260109-a", trace_text(written=["a"] * 300))
    assert store.path("20260109-a").stat().st_size > 40_000
    assert store.prune("20260107-a") == {"20260109-a", "20260107-a"}  # the newest stays, and a run that goes on


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\run.jsonl", "run.jsonl"),
        ("C:\\Windows\\win.ini", "win.ini"),
        ("NUL", "NUL"),
        ("con.jsonl", "con.jsonl"),
        ("x" * 300, "x" * 80),
        ("run..final.jsonl", "run..final.jsonl"),
        ("运行记录.jsonl", "运行记录.jsonl"),
        ("<img src=x onerror=alert(1)>.jsonl", "<img src=x onerror=alert(1)>.jsonl"),
        ("a\x00b\n\u202ec", "abc"),
        ("", "recording"),
        ("../", "recording"),
    ],
)
def test_an_uploaded_name_is_a_title_and_never_a_path(
    store: Store, trace_text: TraceText, name: str, shown: str
) -> None:
    added = store.add(name, io.BytesIO(trace_text().encode()))
    assert added.title == shown
    written = store.path(added.id)
    assert written.parent == store.folder and written.name == f"{added.id}.jsonl"
    assert set("abcdef0123456789-") >= set(added.id)
    assert {path.parent for path in store.folder.parent.rglob("*") if path.is_file()} == {store.folder}
    assert [r.title for r in Store(store.folder, store.folder / "none").recordings()] == [shown]


def test_a_folder_for_recordings_that_is_a_file_is_one_sentence(tmp_path: Path, trace_text: TraceText) -> None:
    (tmp_path / "runs").write_text("")
    store = Store(tmp_path / "runs", tmp_path / "none")
    with pytest.raises(ValueError, match="could not be stored"):
        store.add("x.jsonl", io.BytesIO(trace_text().encode()))
    assert store.recordings() == ()


def test_what_is_stored_of_an_upload_is_clean(store: Store, trace_text: TraceText) -> None:
    lines = trace_text().splitlines()
    lines[3] = lines[3].replace('"flops":', '"flops":NaN,"was":')
    damaged = (
        "\ufeff" + "\r\n".join([*lines[:6], "{torn", '{"n":99,"t":0.0,"k":"later-kind"}', *lines[6:]]) + '\r\n{"n":1'
    )
    added = store.add("x.jsonl", io.BytesIO(gzip.compress(damaged.encode())))
    kept = list(store.lines(added.id))
    events = [json.loads(line, parse_constant=lambda c: pytest.fail(c)) for line in kept[1:]]
    assert [event["n"] for event in events] == list(range(len(events)))
    assert any(event["k"] == "note" and "Line 7" in event["text"] for event in events)
    assert sum(event["k"] == "token" for event in events) == 20


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "empty"),
        (b'{"hello": "world"}\n', "not a trace"),
        ((CASES / "g_chrome_unclosed.json").read_bytes(), "not supported"),
        ((CASES / "g_asciicast_v2.cast").read_bytes(), "not supported"),
        (b'{"format":"siliconscope-trace","version":99}\n', "newer version"),
        (gzip.compress(b"x" * 300_000_000, 1), "longer|more than"),
        (b"\x00" * 40_000_000, "larger|longer"),
    ],
    ids=["empty", "json", "chrome", "asciicast", "newer", "bomb", "big"],
)
def test_what_is_no_trace_is_refused_with_a_sentence_and_leaves_nothing(
    store: Store, body: bytes, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        store.add("x.jsonl", io.BytesIO(body))
    assert not store.folder.exists() or not list(store.folder.iterdir())


@pytest.mark.parametrize("id_", ["../shipped/opening", "/etc/passwd", "", ".", "opening.jsonl", "*", "\0"])
def test_ids_from_outside_are_looked_up_never_joined(store: Store, trace_text: TraceText, id_: str) -> None:
    (store.folder.parent / "shipped" / "opening.jsonl").write_text(trace_text())
    with pytest.raises(LookupError):
        store.path(id_)
