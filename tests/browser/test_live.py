"""A real model, run from a real page: the whole way from the button to the recording, and what may go wrong on it."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from telemetry.summary import summarise
from telemetry.trace import read_trace
from tests.browser.conftest import OpenPage, RunningServer
from tests.browser.stage import RUN_LIMIT_MS, Stage, choose_long_run

pytestmark = [pytest.mark.browser, pytest.mark.engine]


@pytest.fixture
def page(live_server: RunningServer, open_page: OpenPage) -> Page:
    """A page whose engine is ready."""
    page = open_page(live_server.url)
    Stage(page).wait_until_ready()
    return page


@pytest.fixture(autouse=True)
def free_machine(live_server: RunningServer) -> Iterator[None]:
    """No test leaves its run to the next one."""
    yield
    _wait_until_free(live_server)


def _busy_run(server: RunningServer) -> str | None:
    """The run that is listed as going on, as any viewer may ask."""
    with urllib.request.urlopen(server.url + "api/traces", timeout=5) as answer:
        listed = json.load(answer)
    return next((one["id"] for one in listed if one["live"]), None)


def _wait_until_free(server: RunningServer) -> None:
    for _ in range(600):
        if _busy_run(server) is None:
            return
        time.sleep(0.1)
    raise AssertionError("a run was left on the machine")


def test_a_run_from_the_button_to_the_recording(live_server: RunningServer, page: Page) -> None:
    stage = Stage(page)
    phases: list[str] = []
    page.expose_function("notePhase", lambda phase: phases.append(phase))
    stage.root.evaluate(
        """stage => new MutationObserver(() => window.notePhase(stage.dataset.phase))
            .observe(stage, {attributes: true, attributeFilter: ['data-phase']})"""
    )
    run_id = stage.press_run()
    expect(stage.root.get_by_text("LIVE", exact=True)).to_be_visible()
    stage.expect("phase", "done", RUN_LIMIT_MS)
    told = list(dict.fromkeys(phase for phase in phases if phase in ("prefill", "decode", "done")))
    assert told == ["prefill", "decode", "done"]

    file = live_server.runs / f"{run_id}.jsonl"
    summary = summarise(read_trace(file))
    assert (summary.n_prompt_tokens, summary.n_new_tokens, summary.end_reason) == (500, 64, "length")
    page.get_by_role("link", name="Recordings").first.click()
    link = page.locator(f"a[href*='{run_id}']")
    expect(link).to_be_visible()
    with page.expect_download() as waiting:
        link.evaluate("link => { link.removeAttribute('target'); link.click(); }")
    assert waiting.value.path().read_bytes() == file.read_bytes()


def test_a_killed_worker_ends_the_run_with_a_sentence_and_the_next_run_works(
    live_server: RunningServer, page: Page
) -> None:
    stage = Stage(page)
    choose_long_run(page)
    run_id = stage.press_run()
    stage.expect("phase", "decode", RUN_LIMIT_MS)
    (worker,) = live_server.workers()
    worker.kill()
    stage.expect("state", re.compile("failed|ended"))
    trace = read_trace(live_server.runs / f"{run_id}.jsonl")
    assert not trace.ended_early
    assert summarise(trace).end_reason == "error"
    assert (summarise(trace).n_new_tokens or 0) > 0

    stage.wait_until_ready()
    assert stage.press_run() != run_id
    stage.expect("phase", "decode", RUN_LIMIT_MS)
    stage.press_stop()
    ran_the_script = set(live_server.script_log.read_text().split())
    assert ran_the_script == {str(live_server.process.pid)}


def test_who_presses_second_watches_the_first(live_server: RunningServer, page: Page, open_page: OpenPage) -> None:
    first, second = Stage(page), Stage(open_page(live_server.url))
    second.wait_until_ready()
    choose_long_run(page)
    run_id = first.press_run()
    second.root.locator("button[data-action]").click()
    second.expect("run", run_id)
    second.expect("source", "live")
    expect(second.root.get_by_text("Somebody's run is on the machine").first).to_be_visible()
    first.expect("phase", "decode", RUN_LIMIT_MS)
    first.press_stop()
    first.expect("phase", "done")
    second.expect("phase", "done")
    second.wait_until_ready()


def test_a_refresh_returns_to_the_running_run_with_nothing_lost(live_server: RunningServer, page: Page) -> None:
    stage = Stage(page)
    choose_long_run(page)
    run_id = stage.press_run()
    stage.expect("phase", "decode", RUN_LIMIT_MS)
    page.reload()
    stage = Stage(page)
    stage.expect("run", run_id)
    stage.expect("source", "live")
    stage.expect("phase", "decode")
    stage.press_stop()
    stage.expect("phase", "done")
    trace = read_trace(live_server.runs / f"{run_id}.jsonl")
    assert [event.n for event in sorted(trace.events, key=lambda event: event.n)] == list(range(len(trace.events)))
    assert summarise(trace).end_reason == "cancelled"


def test_closing_all_tabs_lets_the_run_complete_and_leaves_nothing_behind(
    live_server: RunningServer, page: Page, open_page: OpenPage
) -> None:
    threads, children = live_server.process.num_threads(), live_server.children()
    for _ in range(2):
        Stage(page).press_run()
        page.close()
        _wait_until_free(live_server)
        page = open_page(live_server.url)
        Stage(page).wait_until_ready()
    newest = max(live_server.runs.glob("*.jsonl"))
    assert summarise(read_trace(newest)).end_reason == "length"
    page.close()
    assert live_server.children() == children
    # Streamlit's own pool may hold a few threads more, but not some for each closed tab.
    assert live_server.process.num_threads() <= threads + 4
    assert "missing ScriptRunContext" not in live_server.log.read_text()


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [("   ", "empty"), ("word " * 12_000, "context")],
    ids=["blank", "over the context"],
)
def test_a_prompt_that_cannot_run_gets_a_sentence(page: Page, prompt: str, sentence: str) -> None:
    page.get_by_text("Settings of the next run").click()
    page.get_by_text("My own text").click()
    page.get_by_label("Text", exact=True).fill(prompt)
    Stage(page).root.get_by_role("button", name="Run on this machine").click()
    expect(Stage(page).root.get_by_text(re.compile(sentence)).first).to_be_visible()


def test_the_log_of_a_start_with_torch_is_clean(live_server: RunningServer, page: Page) -> None:
    log = live_server.log.read_text()
    assert "Traceback" not in log
    assert "torch" not in log.lower()
