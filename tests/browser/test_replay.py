"""The page on a machine with the replay set only: what a person sees at once, and what they may do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, RunningServer
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser

CASES = Path(__file__).resolve().parent.parent / "cases"
TraceText = Callable[..., str]
DARK, LIGHT = (0, 60), (180, 255)


def keep(server: RunningServer, run_id: str, text: str) -> str:
    """Puts a recording where the server keeps them."""
    server.runs.mkdir(exist_ok=True)
    (server.runs / f"{run_id}.jsonl").write_text(text, encoding="utf-8")
    return f"{server.url}?run={run_id}"


def test_opening_the_page_plays_a_recording_at_once(replay_server: RunningServer, open_page: OpenPage) -> None:
    stage = Stage(open_page(replay_server.url))
    stage.expect("state", "playing")
    stage.expect("source", "recorded")
    stage.expect("density", "hero")
    stage.wait_for_frames()
    expect(stage.root.get_by_text("RECORDED")).to_be_visible()
    expect(stage.root.get_by_role("meter")).to_have_count(2)
    for meter in stage.root.get_by_role("meter").all():
        assert meter.get_attribute("aria-label")


def test_without_torch_the_page_says_so_and_plays(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url)
    Stage(page).expect("state", "playing")
    expect(page.get_by_text("PyTorch is not installed here").first).to_be_visible()
    button = Stage(page).root.get_by_role("button", name="Run on this machine")
    expect(button).to_have_attribute("data-action", "none")


def test_the_stage_is_mounted_once_and_plays_on_across_pages(
    replay_server: RunningServer, open_page: OpenPage, trace_text: TraceText
) -> None:
    page = open_page(keep(replay_server, "across-pages", trace_text(written=[f" w{i}" for i in range(200)])))
    stage = Stage(page)
    stage.wait_for_frames()
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    stage.root.evaluate("stage => { stage.marked = true; }")
    for name in ("Recordings", "How these figures are made", "The stage", "Recordings"):
        page.get_by_role("link", name=name).first.click()
        page.wait_for_url(re.compile("recordings|method|stage|/\\?"))
        stage.root.scroll_into_view_if_needed()  # out of sight it draws nothing, and lists may be long
        stage.wait_for_frames()
        expect(stage.root).to_have_count(1)
        assert stage.root.evaluate("stage => stage.marked"), f"the stage was built anew on {name}"
        assert stage.run_id() == "across-pages"
        assert "run=across-pages" in page.url
    assert not [url for url in fetched if "api/traces" in url or "plotly" in url]


def test_r_and_c_do_not_reach_streamlit(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url)
    stage = Stage(page)
    stage.wait_for_frames()
    stage.root.get_by_role("button").first.focus()
    reruns = len(replay_server.script_log.read_text().splitlines())
    for key in ("r", "c", "R", "C"):
        page.keyboard.press(key)
    page.wait_for_timeout(500)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(replay_server.script_log.read_text().splitlines()) == reruns


def test_the_space_bar_pauses_and_the_address_keeps_the_instant(
    replay_server: RunningServer, open_page: OpenPage, trace_text: TraceText
) -> None:
    page = open_page(keep(replay_server, "pausing", trace_text(written=[f" w{i}" for i in range(300)])))
    stage = Stage(page)
    stage.expect("state", "playing")
    stage.wait_for_frames()
    stage.root.get_by_role("button").first.focus()
    stage.root.evaluate("stage => stage.focus()")
    page.keyboard.press("ArrowRight")
    stage.expect("state", "paused")
    page.wait_for_url(re.compile(r"[?&]t=\d"))
    shown = stage.t()
    again = Stage(open_page(page.url))
    again.expect("run", "pausing")
    expect(again.root).to_have_attribute("data-t", re.compile(r"\d"))
    again.wait_for_frames(2)
    assert abs(again.t() - shown) < 0.1


def test_markup_in_model_text_is_shown_as_characters(
    replay_server: RunningServer, open_page: OpenPage, trace_text: TraceText
) -> None:
    text = (CASES / "a_output_markup.txt").read_text(encoding="utf-8")
    pieces = re.findall(r".{1,7}", text, re.S)
    page = open_page(keep(replay_server, "markup", trace_text(written=pieces, prompt=pieces, step_s=0.001)))
    stage = Stage(page)
    expect(stage.root).to_contain_text("$114.22 today, between $113.37", timeout=15_000)
    expect(stage.root).to_contain_text("<script>document.title='owned'</script>")
    expect(stage.root).to_contain_text("<think>hidden?</think> visible")
    assert "owned" not in page.title()
    assert stage.root.locator("script, img, a[href^=javascript]").count() == 0


def test_a_narrow_screen_does_not_scroll_sideways(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url, width=390, height=844)
    Stage(page).wait_for_frames()
    wider = """() => [...document.querySelectorAll('html, [data-testid=stApp], [data-testid=stMain]')]
        .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.outerHTML.slice(0, 80))"""
    assert page.evaluate(wider) == []


@pytest.mark.parametrize(("theme", "ground", "ink"), [("light", LIGHT, DARK), ("dark", DARK, LIGHT)])
def test_the_stage_follows_the_theme(
    replay_server: RunningServer, open_page: OpenPage, theme: str, ground: tuple[int, int], ink: tuple[int, int]
) -> None:
    page = open_page(replay_server.url, theme=theme)
    stage = Stage(page)
    stage.wait_for_frames()
    assert ink[0] <= _brightness(page, stage.root.evaluate("stage => getComputedStyle(stage).color")) <= ink[1]
    app = page.locator("[data-testid=stApp]")
    assert ground[0] <= _brightness(page, app.evaluate("app => getComputedStyle(app).backgroundColor")) <= ground[1]


def _brightness(page: Page, colour: str) -> float:
    red, green, blue = (float(part) for part in re.findall(r"[\d.]+", colour)[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_a_download_is_the_file(replay_server: RunningServer, open_page: OpenPage, trace_text: TraceText) -> None:
    keep(replay_server, "download", trace_text(run_id="download"))
    page = open_page(replay_server.url + "recordings")
    link = page.locator("a[href*='api/traces/download.jsonl']")
    expect(link).to_be_visible()
    with page.expect_download() as waiting:
        link.evaluate("link => { link.removeAttribute('target'); link.click(); }")
    assert waiting.value.path().read_bytes() == (replay_server.runs / "download.jsonl").read_bytes()


def test_delete_asks_the_server_and_the_row_goes(
    replay_server: RunningServer, open_page: OpenPage, trace_text: TraceText
) -> None:
    keep(replay_server, "unwanted", trace_text(run_id="unwanted"))
    page = open_page(replay_server.url + "recordings")
    page.locator(".st-key-delete_unwanted button").click()
    expect(page.locator(".st-key-delete_unwanted")).to_have_count(0)
    assert not (replay_server.runs / "unwanted.jsonl").exists()
