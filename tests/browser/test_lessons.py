"""The lesson in a real browser: every chapter, on a projector and on a phone, turned by keyboard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, RunningServer
from ui.lessons.chapters import CHAPTERS
from ui.lessons.text import phrase
from ui.selection import OPENING

pytestmark = pytest.mark.browser

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "traces"
PROJECTOR, PHONE = (1280, 720), (390, 844)


def lesson(server: RunningServer, chapter: str) -> str:
    return f"{server.url}lesson?chapter={chapter}"


def wait_for(page: Page, number: int) -> None:
    """Until that chapter is drawn to its end, and what it says first is visible."""
    chapter = CHAPTERS[number - 1]
    expect(page.get_by_role("combobox", name=phrase("page.chapter"))).to_have_value(f"{number}. {chapter.title}")
    rest(page)
    guess = page.get_by_role("button", name=phrase("panel.no_guess"))
    if chapter.guess is not None:
        expect(page.locator("div.stage")).to_be_hidden()  # it would tell the answer
        page.get_by_role("radio", name=phrase(f"{chapter.guess.name}.{chapter.guess.choices[0]}"), exact=True).check()
        page.get_by_role("button", name=phrase("guess.commit")).click()
        expect(guess).to_have_count(0)
        rest(page)
        expect(page.get_by_role("button", name=phrase("guess.again"))).to_be_visible()
    expect(page.locator(".st-key-lesson_verdict h2")).to_be_visible()
    expect(page.locator("[data-testid=stException]")).to_have_count(0)


def rest(page: Page) -> None:
    """Until the script is not running."""
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_attached()


def sideways(page: Page) -> list[str]:
    """What can be scrolled sideways: the page, or the part of it that scrolls."""
    found: list[str] = page.evaluate(
        "['html', '[data-testid=stMain]'].filter(one => { const e = document.querySelector(one);"
        " return e.scrollWidth > e.clientWidth; })"
    )
    return found


@pytest.mark.parametrize("size", [PROJECTOR, PHONE], ids=["projector", "phone"])
def test_every_chapter_by_keyboard(replay_server: RunningServer, open_page: OpenPage, size: tuple[int, int]) -> None:
    """Each is understood from one screen of a projector; nowhere is anything wider than the screen."""
    page = open_page(lesson(replay_server, CHAPTERS[0].slug), *size)
    for number, chapter in enumerate(CHAPTERS, 1):
        wait_for(page, number)
        assert f"chapter={chapter.slug}" in page.url
        assert not sideways(page), chapter.slug
        if size == PROJECTOR:
            screen = page.locator(".st-key-lesson_page").bounding_box()
            assert screen and screen["y"] + screen["height"] <= size[1], chapter.slug
        onward = page.get_by_role("button", name=phrase("page.next"))
        if number < len(CHAPTERS):
            onward.focus()
            page.keyboard.press("Enter")
        else:
            expect(onward).to_be_disabled()


def test_the_stage_is_in_sight_where_it_is_the_figure(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(lesson(replay_server, "live"))
    meters = page.get_by_role("meter")
    expect(meters).to_have_count(2)
    for meter in meters.all():
        expect(meter).to_be_in_viewport(ratio=0.7)


def test_a_definition_shows_for_the_keyboard(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(lesson(replay_server, "prefill"))
    term = page.locator("abbr.term").first
    term.focus()
    shown = term.evaluate("e => getComputedStyle(e, '::after').content")
    assert term.get_attribute("title") in shown


def test_what_a_model_wrote_is_shown_as_characters(replay_server: RunningServer, open_page: OpenPage) -> None:
    """Markup in a token is text in the typewriter and in the feedback arrow, and the figures are that run's."""
    hostile = "<img src=x onerror=document.title='caught'><b>bold</b> [link](javascript:alert(1)) $x$"
    lines = (SHIPPED / f"{OPENING}.jsonl").read_text(encoding="utf-8").splitlines()
    tokens = [i for i, line in enumerate(lines) if '"k":"token"' in line]
    for i in tokens[:2]:
        lines[i] = json.dumps(json.loads(lines[i]) | {"text": hostile})
    replay_server.runs.mkdir(exist_ok=True)
    (replay_server.runs / "markup.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    page = open_page(f"{lesson(replay_server, 'paradox')}&run=markup")
    wait_for(page, 1)
    expect(page.get_by_text(phrase("page.own"))).to_be_visible()
    expect(page.locator(".lesson-figure .typed")).to_contain_text(hostile)
    page.get_by_role("button", name=phrase("page.next")).click()
    wait_for(page, 2)
    page.get_by_role("button", name=phrase("page.next")).click()
    wait_for(page, 3)
    expect(page.locator(".lesson-figure .loop")).to_contain_text(hostile)
    expect(page.locator(".lesson-figure img, .lesson-figure .typed b, .lesson-figure a")).to_have_count(0)
    assert page.title() != "caught"


def test_a_guess_is_there_again_after_a_refresh(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(lesson(replay_server, "paradox"))
    wait_for(page, 1)
    page.reload()
    expect(page.get_by_role("button", name=phrase("guess.again"))).to_be_visible()
    expect(page.locator(".st-key-lesson_verdict h2")).to_be_visible()
    page.get_by_role("button", name=phrase("guess.again")).click()
    expect(page.get_by_role("button", name=phrase("guess.commit"))).to_be_visible()
    expect(page.locator("div.stage")).to_be_hidden()
