"""Presenter mode: one idea a screen, stepped by a remote control's keys, stopping by itself between phases."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from telemetry.events import Phase
from telemetry.trace import read_trace
from tests.browser.conftest import ROOT, OpenPage, RunningServer
from tests.browser.unit import traces
from tests.browser.unit.site import Site, serve_site
from ui.selection import OPENING

pytestmark = pytest.mark.browser

READY = {"k": "status", "install": None, "worker": {"state": "ready"}, "busy": None}
OpenStage = Callable[..., Page]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve_site() as site:
        site.traces["plain"] = traces.plain_run([f" w{i}" for i in range(40)])
        yield site


@pytest.fixture
def present(browser: Browser, site: Site) -> Iterator[OpenStage]:
    """Opens the stage in presenter mode; any uncaught error on it fails the test."""
    pages: list[Page] = []
    errors: list[str] = []

    def open_one(query: str = "present=stage&run=plain", size: tuple[int, int] = (1280, 720), **context: Any) -> Page:
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, **context)
        pages.append(page)
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.route_web_socket(re.compile("/api/status"), lambda socket: socket.send(json.dumps(READY)))
        page.goto(f"{site.url}harness.html?{query}")
        return page

    yield open_one
    for page in pages:
        page.close()
    assert not errors, "\n".join(errors)


def expect_idea(page: Page, idea: str, cue: str | None) -> None:
    expect(page.locator(".present")).to_have_attribute("data-idea", idea)
    if cue is None:
        expect(page.locator(".cue")).to_be_hidden()
    else:
        expect(page.get_by_role("button", name=cue)).to_be_visible()


def told(page: Page, name: str) -> list[Any]:
    return [value for what, value in page.evaluate("window.sent") if what == name]


def test_the_space_bar_tells_the_whole_story(present: OpenStage) -> None:
    page = present()
    expect_idea(page, "prompt", "Press space to let it read")
    expect(page.locator(".idea-title")).to_have_text("512 tokens to read.")
    page.keyboard.press("Space")
    expect_idea(page, "reading", None)
    expect(page.locator(".idea-says")).to_contain_text("compute-bound")
    expect_idea(page, "read", "Press space to let it write")  # it stopped by itself
    expect(page.locator(".idea-title")).to_have_text(re.compile(r"Read: 0\.78\s?ms a token\."))
    assert told(page, "pos")[-1]["t"] == pytest.approx(0.401)
    page.keyboard.press("Space")
    expect_idea(page, "writing", None)
    expect(page.locator(".idea-says")).to_contain_text("memory-bound")
    expect_idea(page, "written", "Press space to begin again")
    expect(page.locator(".idea-says")).to_have_text("26 times slower, on the same chip.")


@pytest.mark.parametrize(("back", "on"), [("ArrowLeft", "ArrowRight"), ("PageUp", "PageDown")])
def test_the_keys_of_a_remote_control_step_idea_by_idea(present: OpenStage, back: str, on: str) -> None:
    page = present()
    expect_idea(page, "prompt", "Press space to let it read")
    for key, idea in [(on, "read"), (on, "written"), (back, "read"), (back, "prompt"), (on, "read")]:
        page.keyboard.press(key)
        expect(page.locator(".present")).to_have_attribute("data-idea", idea)


def test_past_the_last_idea_the_page_is_asked_to_go_on(present: OpenStage) -> None:
    page = present("present=stage&run=plain&t=9")
    expect_idea(page, "written", "Press space to begin again")
    page.keyboard.press("ArrowRight")
    assert [step["direction"] for step in told(page, "step")] == [1]
    page.keyboard.press("Escape")
    assert len(told(page, "leave")) == 1


def test_a_chapter_is_turned_and_its_own_fields_keep_their_keys(present: OpenStage) -> None:
    page = present("present=chapter&run=plain")
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowLeft")
    assert [step["direction"] for step in told(page, "step")] == [1, -1]
    page.evaluate(
        "document.body.append(document.createElement('textarea')), document.querySelector('textarea').focus()"
    )
    page.keyboard.press("ArrowRight")
    assert len(told(page, "step")) == 2


def test_outside_presenter_mode_the_page_keeps_its_keys(present: OpenStage) -> None:
    page = present("run=plain")
    expect(page.locator("div.stage")).to_have_attribute("data-state", "playing")
    for key in ("Space", "ArrowRight", "PageDown", "Escape"):
        page.keyboard.press(key)
    expect(page.locator("div.stage")).to_have_attribute("data-state", "playing")
    assert told(page, "step") == told(page, "leave") == []


@pytest.mark.parametrize("size", [(1280, 720), (1024, 768)])
def test_each_idea_fits_a_projector(present: OpenStage, size: tuple[int, int]) -> None:
    page = present(size=size)
    for idea in ("prompt", "read", "written"):
        expect(page.locator(".present")).to_have_attribute("data-idea", idea)
        assert page.evaluate(
            "[document.documentElement.scrollHeight - innerHeight, document.documentElement.scrollWidth - innerWidth]"
        ) == [0, 0]
        assert page.locator(".idea-title").evaluate("title => parseFloat(getComputedStyle(title).fontSize)") >= 40
        page.keyboard.press("ArrowRight")


def test_leaving_lets_the_replay_run_through_again(present: OpenStage) -> None:
    page = present()
    expect_idea(page, "prompt", "Press space to let it read")
    page.evaluate("window.show({ ...window.component.data, present: null, density: 'lesson' })")
    expect(page.get_by_role("checkbox", name="stop at phases")).not_to_be_checked()
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator("div.stage")).to_have_attribute("data-state", "ended")


def test_a_talk_goes_from_chapter_to_stage_by_keys_alone(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(f"{replay_server.url}lesson?chapter=decode&present=1")
    expect(page.locator("[data-testid=stHeader]")).to_be_hidden()
    expect(page.locator(".st-key-lesson_verdict")).to_be_visible()
    expect(page.locator("div.stage")).to_be_attached()  # out of sight, and it still has the keys
    expect(page.locator("div.stage")).to_be_hidden()
    page.keyboard.press("PageDown")
    page.wait_for_url(re.compile("chapter=live"))
    expect_idea(page, "prompt", "Press space to let it read")
    page.keyboard.press("ArrowRight")
    expect_idea(page, "read", "Press space to let it write")
    written = read_trace(ROOT / "assets" / "traces" / f"{OPENING}.jsonl")
    begun = next(e.t for e in written.events if isinstance(e.body, Phase) and e.body.phase == "decode")
    page.wait_for_url(re.compile(r"[?&]t="))
    assert float(parse_qs(urlsplit(page.url).query)["t"][0]) == pytest.approx(begun, abs=0.01)
    page.keyboard.press("Escape")
    expect(page.locator("[data-testid=stHeader]")).to_be_visible()
    assert "present" not in page.url
