"""A run as one file: it plays from a disk with the network off, prints on one page, and stays a page whatever its trace
says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from telemetry.events import Ceilings, Device, Peak
from telemetry.trace import read_trace
from tests.browser.conftest import OpenPage, RunningServer
from tests.browser.unit import traces
from ui import report

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parent.parent.parent
MARKUP = (ROOT / "tests" / "cases" / "a_output_markup.txt").read_text(encoding="utf-8")
SHIPPED = ROOT / "assets" / "traces" / "smollm2-135m-fp32-500.jsonl"
# What would end a script element, begin a comment that swallows the rest, or put a value into a template.
BREAKING = (
    "</script><script>document.title='owned'</script></SCRIPT ><!-- <script> ]]> \u2028 $boot ${title} &lt;\\u003c"
)
PAGE_OBJECT = re.compile(rb"/Type\s*/Page\b")


@pytest.fixture(scope="module")
def offline(browser: Browser) -> Iterator[Page]:
    """A page without a network; a request for anything outside its own file, or any error, fails the tests."""
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 720}, offline=True)
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or errors.append(request.url)
    )
    yield page
    context.close()
    assert not errors, "\n".join(errors)


def made(folder: Path, text: str, title: str = "A run") -> str:
    """The address of the report of a trace."""
    trace = read_trace(BytesIO(text.encode()))
    file = folder / report.file_name(trace.header.id)
    file.write_text(report.page(trace.header.id, title, text.removesuffix("\n").split("\n"), trace), encoding="utf-8")
    return file.as_uri()


def hostile_trace() -> str:
    pieces = re.findall(r".{1,7}", MARKUP + BREAKING, re.S)
    peak = Peak("flops", 400e9, "measured", f"measured {BREAKING}", "fp32")
    sensor = {"sensor": "cpu", "metric": MARKUP, "device": 0, "unit": "fraction", "label": BREAKING, "reason": BREAKING}
    return traces.plain_run(
        pieces,
        id="../../" + BREAKING,
        title=BREAKING,
        model={"name": MARKUP},
        devices=(Device(BREAKING, "cpu"),),
        ceilings=Ceilings(peak, peak, traces.READ),
        sensors=(sensor,),
    )


def test_it_plays_from_a_disk_with_the_network_off(offline: Page, tmp_path: Path) -> None:
    offline.goto(made(tmp_path, SHIPPED.read_text(encoding="utf-8")))
    stage = offline.locator("div.stage")
    expect(stage).to_have_attribute("data-source", "recorded")
    expect(stage).to_have_attribute("data-state", "playing")
    expect(stage.get_by_role("meter")).to_have_count(2)
    expect(stage.locator(".face-band")).to_have_count(2)
    expect(stage.get_by_role("button", name="Run on this machine")).to_have_count(0)
    stage.focus()
    offline.keyboard.press("End")
    expect(stage).to_have_attribute("data-phase", "done")
    expect(offline.get_by_role("cell", name="Time per output token", exact=True)).to_be_visible()


def test_it_prints_on_one_page(offline: Page, tmp_path: Path) -> None:
    offline.goto(made(tmp_path, SHIPPED.read_text(encoding="utf-8")))
    expect(offline.locator("div.stage")).to_have_attribute("data-source", "recorded")
    for paper in ("A4", "Letter"):
        assert len(PAGE_OBJECT.findall(offline.pdf(format=paper))) == 1, paper


def test_it_gives_the_trace_back(offline: Page, tmp_path: Path) -> None:
    text = SHIPPED.read_text(encoding="utf-8")
    offline.goto(made(tmp_path, text))
    with offline.expect_download() as waiting:
        offline.get_by_role("link", name="Save the trace").click()
    back = waiting.value.path().read_text(encoding="utf-8")
    assert [json.loads(line) for line in back.splitlines()] == [json.loads(line) for line in text.splitlines()]


def test_no_text_of_a_trace_becomes_markup(offline: Page, tmp_path: Path) -> None:
    offline.goto(made(tmp_path, hostile_trace(), title=BREAKING))
    stage = offline.locator("div.stage")
    expect(stage).to_have_attribute("data-source", "recorded")
    stage.focus()
    offline.keyboard.press("End")
    expect(stage.locator(".typed-text")).to_have_text(MARKUP + BREAKING)
    assert offline.title() == BREAKING
    expect(offline.get_by_role("heading", level=1)).to_have_text(BREAKING)
    assert offline.locator("img, iframe, a[href^=javascript]").count() == 0
    assert offline.locator("script").count() == 4  # modules, run, trace, boot
    assert offline.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_script_that_got_in_would_not_run(offline: Page, tmp_path: Path) -> None:
    """The page's own policy holds by itself: only scripts whose hashes it names, and no address to send anything to."""
    file = Path(made(tmp_path, traces.plain_run(["x"])).removeprefix("file://"))
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace("<main>", "<main><script>document.title = 'owned'</script>"), encoding="utf-8")
    page = offline.context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("div.stage")).to_have_attribute("data-source", "recorded")
    assert page.title() == "A run"
    refused = page.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'refused')")
    assert refused == "refused"
    page.close()


def test_a_narrow_screen_does_not_scroll_sideways(offline: Page, tmp_path: Path) -> None:
    offline.set_viewport_size({"width": 360, "height": 780})
    offline.goto(made(tmp_path, hostile_trace()))
    expect(offline.locator("div.stage")).to_have_attribute("data-source", "recorded")
    assert offline.evaluate("document.documentElement.scrollWidth <= innerWidth")
    offline.set_viewport_size({"width": 1280, "height": 720})


def test_a_simulation_says_so(offline: Page, tmp_path: Path) -> None:
    header = replace(traces.HEADER, source="simulated")
    offline.goto(made(tmp_path, traces.plain_run(["x", "y"], source=header.source)))
    expect(offline.locator("div.stage").get_by_text("SIMULATED")).to_be_visible()
    expect(offline.get_by_text("nothing ran")).to_be_visible()


def test_the_list_of_recordings_hands_it_out(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url + "recordings")
    button = page.locator(".st-key-report_smollm2-135m-fp32-500").get_by_role("button")
    with page.expect_download() as waiting:
        button.click()
    assert waiting.value.suggested_filename == "siliconscope-smollm2-135m-fp32-500.html"
    whole = waiting.value.path().read_text(encoding="utf-8")
    assert whole.startswith("<!doctype html>")
    assert '"k":"token"' in whole
