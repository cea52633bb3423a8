"""Simulations in a real browser: played, side by side, from a claim, and what-if sliders. No torch is there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, RunningServer
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser
PAIR = "simulate?model=llama-3-8b&device=4090&against=h100-sxm"
PAGES = {
    "simulate": (PAIR, "Decode is memory-bound"),
    "what-if": ("what-if", "The KV cache outweighs"),
    "claims": ("claims", "C23"),
}


def no_sideways_scroll(page: Page) -> None:
    wider = """() => [...document.querySelectorAll('html, [data-testid=stApp], [data-testid=stMain]')]
        .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.outerHTML.slice(0, 80))"""
    assert page.evaluate(wider) == []


def test_a_link_plays_two_devices_side_by_side_aligned(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(f"{replay_server.url}{PAIR}&t=0.03")
    stage = Stage(page)
    stage.expect("density", "compare", 30_000)
    stage.expect("state", "paused")
    stage.expect("source", "simulated")
    stage.expect("beside", re.compile("-sim$"))
    left, right = (page.get_by_role("region", name=f"The {side} run") for side in ("left", "right"))
    for column, machine in ((left, "RTX 4090"), (right, "H100 SXM5 80GB")):
        expect(column).to_contain_text("SIMULATED")
        expect(column).to_contain_text(machine)
        expect(column.get_by_role("meter")).to_have_count(2)
    expect(page.locator(".contrast")).to_contain_text(re.compile(r"Writing: H100 SXM5 80GB is \d\.\d times as fast"))
    expect(left).to_contain_text("reading 2,667 at once")
    expect(right).to_contain_text("reading 2,667 at once")
    page.get_by_role("button", name="Show one run only").click()
    stage.expect("density", "hero")
    expect(stage.root.get_by_role("meter")).to_have_count(2)


def test_fields_play_and_a_slip_is_told_where_it_was_typed(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url + "simulate")
    stage = Stage(page)
    stage.expect("source", "recorded", 30_000)
    batch = page.get_by_label("Batch")
    batch.fill("0")
    batch.press("Enter")
    expect(page.get_by_text("The batch must be a whole number from 1 to 1,000,000, not 0.")).to_be_visible()
    expect(page.get_by_role("button", name="Play", exact=True).first).to_be_disabled()
    batch.fill("4")
    batch.press("Enter")
    play = page.locator(".st-key-sim_play button")
    expect(play).to_be_enabled()
    play.click()
    stage.expect("source", "simulated")
    page.wait_for_url(re.compile("batch=4"))
    expect(page.get_by_text("Writing (all together)")).to_be_visible()


def test_a_claim_sets_the_simulator_and_plays(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url + "claims")
    button = page.locator(".st-key-play_C10 button")
    expect(button).to_be_visible(timeout=30_000)
    button.click()
    page.wait_for_url(re.compile("simulate"))
    stage = Stage(page)
    stage.expect("source", "simulated")
    expect(stage.root).to_contain_text("Meta-Llama-3-70B, int8")
    page.wait_for_url(re.compile("weights=int8"))


def test_a_sliders_move_redraws_the_panel_and_the_address_keeps_it(
    replay_server: RunningServer, open_page: OpenPage
) -> None:
    page = open_page(replay_server.url + "what-if?context=2048&model=llama-3-8b")
    expect(page.locator("[data-testid=stPlotlyChart] .js-plotly-plot")).to_have_count(4, timeout=30_000)
    said = page.get_by_text("The KV cache outweighs the weights")
    before = said.inner_text()
    page.get_by_role("slider", name="Context, tokens").press("ArrowRight")
    page.wait_for_url(re.compile("context=4096"))
    expect(said).not_to_have_text(before)
    expect(page.locator("[data-testid=stPlotlyChart] .js-plotly-plot")).to_have_count(4)


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_does_not_scroll_sideways(replay_server: RunningServer, open_page: OpenPage, name: str) -> None:
    page = open_page(replay_server.url + PAGES[name][0], width=390, height=844, theme="dark")
    expect(page.locator("[data-testid=stMain]")).to_contain_text(PAGES[name][1], timeout=30_000)
    stage = Stage(page)
    stage.root.scroll_into_view_if_needed()  # out of sight it draws nothing
    stage.expect("state", re.compile("playing|paused|ended"), 30_000)
    no_sideways_scroll(page)


def test_an_own_device_stays_in_this_browser_and_in_no_file(replay_server: RunningServer, open_page: OpenPage) -> None:
    page = open_page(replay_server.url + "simulate")
    page.get_by_text("Your own device or model").click(timeout=30_000)
    form = page.locator("[data-testid=stForm]").first
    for label, value in {"Name": "Card of mine", "Memory, GiB": "48", "Bandwidth, GB/s": "1200"}.items():
        form.get_by_label(label, exact=True).fill(value)
    form.get_by_label("16-bit dense, TFLOP/s").fill("200")
    page.get_by_role("button", name="Add the device").click()
    page.wait_for_url(re.compile("own="))
    expect(page.get_by_role("heading", name="Card of mine")).to_be_visible()
    again = page.context.new_page()
    again.goto(replay_server.url + "simulate")
    again.wait_for_url(re.compile("own=.*Card"), timeout=30_000)
    kept = [path for path in replay_server.runs.parent.rglob("*.jsonl") if "Card of mine" in path.read_text()]
    assert not kept
