"""A guess is committed to before the answer comes, and stays in the browser it was made in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.unit.site import Site, serve_site

pytestmark = pytest.mark.browser

MOUNT = """async (data) => {
    const { default: guess } = await import("/assets/stage/guess.js");
    const place = document.body.appendChild(document.createElement("div"));
    const parentElement = place.attachShadow({ mode: "open" });
    window.told = [];
    const setStateValue = (name, value) => window.told.push([name, value]);
    window.again = (changed) => guess({ data: { ...data, ...changed }, parentElement, setStateValue });
    window.again({});
}"""
DATA = {
    "name": "slower",
    "question": "How many times slower is writing?",
    "choices": ["3 times", "30 times", "<b>300</b> times"],
    "words": {"commit": "That is my guess", "made": "You guessed:", "again": "Guess again"},
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve_site() as site:
        yield site


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


def ask(context: BrowserContext, site: Site) -> Page:
    page = context.new_page()
    page.goto(site.url + "unit/runner.html")
    page.evaluate(MOUNT, DATA)
    return page


def told(page: Page) -> Any:
    return page.evaluate("window.told")


def test_nothing_is_told_before_the_guess_is_committed_to(context: BrowserContext, site: Site) -> None:
    page = ask(context, site)
    page.get_by_role("button", name="That is my guess").click(force=True)  # it is disabled, to all who listen
    page.get_by_role("radio", name="30 times").check()
    assert told(page) == []
    page.get_by_role("button", name="That is my guess").click()
    assert told(page) == [["choice", "30 times"]]
    expect(page.get_by_role("status")).to_contain_text("You guessed: 30 times")


def test_by_keyboard_alone_and_back_again(context: BrowserContext, site: Site) -> None:
    page = ask(context, site)
    for key in ("Tab", "Space", "ArrowDown", "Tab", "Enter"):
        page.keyboard.press(key)
    assert told(page) == [["choice", "30 times"]]
    page.keyboard.press("Enter")  # the focus went to "Guess again"
    assert told(page)[-1] == ["choice", None]
    expect(page.get_by_role("radio", name="3 times", exact=True)).to_be_focused()


def test_it_is_found_again_in_this_browser_and_in_no_other(
    context: BrowserContext, browser: Browser, site: Site
) -> None:
    page = ask(context, site)
    page.get_by_role("radio", name="<b>300</b> times").check()
    page.get_by_role("button", name="That is my guess").click()
    assert told(ask(context, site)) == [["choice", "<b>300</b> times"]]
    other = browser.new_context()
    assert told(ask(other, site)) == []
    other.close()


def test_a_guess_that_is_no_choice_any_more_is_asked_anew(context: BrowserContext, site: Site) -> None:
    page = ask(context, site)
    page.evaluate("localStorage.setItem('siliconscope-guess:slower', '31 times')")
    page.evaluate("window.again({ question: 'And now?' })")
    expect(page.get_by_role("radio")).to_have_count(3)
    assert told(page) == []
