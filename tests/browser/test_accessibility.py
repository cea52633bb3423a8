"""Every page as axe-core reads it, on light and on dark ground, and at the width of a small phone.

axe-core is the library's own file, from the package that carries it; nothing is fetched. It sees into the stage's
shadow root. What it calls serious or critical fails; the contrast that it checks is AA.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, OpenPage, RunningServer
from tests.browser.stage import Stage
from ui.lessons.chapters import CHAPTERS
from ui.lessons.text import phrase

pytestmark = pytest.mark.browser

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
ON_STAGE = (
    "",
    "?density=lesson",
    "?density=lab",
    "?beside=smollm2-135m-int4-500&run=smollm2-135m-fp32-500",
    "?present=1",
)
OTHERS = ("simulate", "what-if", "claims", "recordings", "method", "lesson?chapter=prefill&present=1")
PAGES = (*ON_STAGE, *(f"lesson?chapter={chapter.slug}" for chapter in CHAPTERS), *OTHERS)
WIDER = """() => [...document.querySelectorAll('html, [data-testid=stApp], [data-testid=stMain]')]
    .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.outerHTML.slice(0, 80))"""
GROUND = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"


@pytest.fixture(scope="module")
def reader(browser: Browser) -> Iterator[Page]:
    """One page for all of them: a browser profile for each would take longer than axe does.

    Without motion: halfway through fading in, a word has no contrast to judge.
    """
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, color_scheme="light", reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    context.close()


def rest(page: Page) -> None:
    """Until the script has run and the stage, where it is in sight, is drawn."""
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()
    expect(page.locator("div.stage")).to_be_attached()
    skip = page.get_by_role("button", name=phrase("panel.no_guess"))
    if skip.count():
        skip.click()
        expect(skip).to_have_count(0)
        expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()


def problems(page: Page, **options: Any) -> list[str]:
    """What is serious or critical, each with the element it was found on."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(AXE)
    found = page.evaluate("options => axe.run({ resultTypes: ['violations'], ...options })", options)
    return [
        f"{one['impact']} {one['id']}: {node['target']} {node['html'][:120]} {node['failureSummary'][:240]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_reads_well(replay_server: RunningServer, reader: Page, path: str) -> None:
    reader.set_viewport_size({"width": 1280, "height": 720})
    reader.emulate_media(color_scheme="light")
    reader.goto(replay_server.url + path)
    rest(reader)
    light = reader.evaluate(GROUND)
    assert problems(reader) == []
    reader.emulate_media(color_scheme="dark")
    reader.wait_for_function(f"light => {GROUND} !== light", arg=light)
    assert problems(reader, runOnly=["color-contrast"]) == []
    reader.set_viewport_size({"width": 360, "height": 780})
    for _ in range(20):  # the page is laid out anew
        wider = reader.evaluate(WIDER)
        if not wider:
            break
        reader.wait_for_timeout(100)
    assert wider == []


def test_the_words_of_a_report_have_contrast_and_order(browser: Browser, replay_server: RunningServer) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(replay_server.url + "recordings")
    with page.expect_download() as waiting:
        page.locator(".st-key-report_smollm2-135m-fp32-500").get_by_role("button").click()
    # axe is put into the page's own world, which its policy allows to nobody else
    report = browser.new_context(bypass_csp=True).new_page()
    report.set_content(waiting.value.path().read_text(encoding="utf-8"))
    expect(report.locator("div.stage")).to_have_attribute("data-source", "recorded")
    assert problems(report) == []
    report.context.close()
    page.close()


def test_the_stage_is_worked_by_keyboard_alone(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url + "?density=lesson")
    stage = Stage(page)
    stage.wait_for_frames(2)
    for _ in range(20):
        page.keyboard.press("Tab")
        if stage.root.evaluate("stage => stage.getRootNode().activeElement === stage"):
            break
    stage.expect("state", "playing")
    page.keyboard.press("Space")
    stage.expect("state", "paused")
    page.keyboard.press("Home")
    stage.expect("t", "0.0000")
    page.keyboard.press("]")
    page.keyboard.press("]")
    stage.expect("phase", "decode")
    names = []
    for _ in range(24):
        page.keyboard.press("Tab")
        names.append(stage.root.evaluate("s => s.getRootNode().activeElement?.getAttribute('aria-label')"))
    assert {"Compute", "Memory bus", "Previous phase", "Play", "Next token", "Place in the run"} <= set(names)


def test_whoever_wants_no_motion_is_shown_rest(browser: Browser, replay_server: RunningServer) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(replay_server.url + "?present=1")
    stage = Stage(page)
    expect(page.locator(".present")).to_have_attribute("data-idea", "prompt")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".present")).to_have_attribute("data-idea", "read")
    stage.expect("state", "paused")
    page.close()
