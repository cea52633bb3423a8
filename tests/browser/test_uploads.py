"""Files that people really send: each is taken or refused with one sentence, and the page plays on."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, RunningServer
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser

TraceText = Callable[..., str]


@pytest.fixture
def recordings(replay_server: RunningServer, open_page: OpenPage) -> Page:
    page = open_page(replay_server.url + "recordings")
    expect(page.locator("input[type=file]")).to_be_attached()
    return page


def send(page: Page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]


def test_an_uploaded_trace_goes_onto_the_stage(recordings: Page, trace_text: TraceText) -> None:
    before = Stage(recordings).run_id()
    send(recordings, "..\\..\\mine :red[x] <b>.jsonl", trace_text().encode())
    stage = Stage(recordings)
    stage.expect("run", re.compile(rf"^(?!{re.escape(before)}$).+"))
    stage.wait_for_frames()
    expect(stage.root).to_contain_text("hand-made machine")
    recordings.get_by_role("link", name="Recordings").first.click()
    expect(recordings.get_by_text("mine :red[x] <b>.jsonl").first).to_be_visible()


def test_a_torn_and_edited_file_is_taken_with_what_it_has(recordings: Page, trace_text: TraceText) -> None:
    lines = trace_text(written=["only ", "these ", "words ", "lost"]).splitlines()
    torn = "\ufeff" + "\r\n".join([*lines[:-5], lines[-5][: len(lines[-5]) // 2]])
    send(recordings, "torn.jsonl", gzip.compress(torn.encode()))
    Stage(recordings).expect("run", re.compile(r"\d"))
    recordings.get_by_role("link", name="Recordings").first.click()
    expect(recordings.get_by_text("torn.jsonl").first).to_be_visible()
    expect(recordings.get_by_text("ended early").first).to_be_visible()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b'{"name": "some", "other": "json"}', "not a trace file", id="foreign"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(200), "not a trace file", id="binary"),
        pytest.param(b'[{"ph":"X","ts":1,"dur":2},', "not supported", id="chrome trace"),
        pytest.param(b'{"version": 2, "width": 80, "height": 24}\n[0.1, "o", "x"]\n', "not supported", id="asciicast"),
    ],
)
def test_a_file_that_is_no_trace_gets_one_sentence(recordings: Page, content: bytes, sentence: str) -> None:
    send(recordings, "file.jsonl", content)
    expect(recordings.get_by_text(sentence).first).to_be_visible()
    expect(recordings.locator("[data-testid=stException]")).to_have_count(0)


def test_a_newer_trace_names_both_versions(recordings: Page, trace_text: TraceText) -> None:
    send(recordings, "newer.jsonl", trace_text().replace('"version":1', '"version":99', 1).encode())
    expect(recordings.get_by_text("made by a newer version (99); this app reads 1").first).to_be_visible()


def test_a_zip_bomb_is_refused_before_it_unfolds(recordings: Page, trace_text: TraceText) -> None:
    header, *_ = trace_text().splitlines()
    filler = b'{"n":1,"t":0,"k":"note","text":"' + b"x" * 900_000 + b'"}\n'
    send(recordings, "bomb.jsonl.gz", gzip.compress(header.encode() + b"\n" + filler * 320))
    expect(recordings.get_by_text("unpacks to more than").first).to_be_visible(timeout=30_000)


def test_a_doubled_key_is_refused(recordings: Page, trace_text: TraceText) -> None:
    send(recordings, "doubled.jsonl", trace_text().replace('"version":1', '"version":1,"version":1', 1).encode())
    expect(recordings.get_by_text("twice").first).to_be_visible()
