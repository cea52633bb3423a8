"""The stage as a component, outside Streamlit: mounted as Streamlit mounts it, its websockets scripted by the test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.browser.unit import traces
from tests.browser.unit.site import Site, serve_site

pytestmark = pytest.mark.browser

MARKUP = Path(__file__).resolve().parent.parent / "cases" / "a_output_markup.txt"
READY = {"k": "status", "install": None, "worker": {"state": "ready"}, "busy": None}
WORDS = [f" word{i}" for i in range(40)]
DENSITIES = ("hero", "lesson", "lab")

OpenStage = Callable[..., Page]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serve_site() as site:
        site.traces["plain"] = traces.plain_run(WORDS)
        yield site


@pytest.fixture
def open_stage(browser: Browser, site: Site) -> Iterator[OpenStage]:
    """Opens the harness page; any uncaught error on it fails the test."""
    pages: list[Page] = []
    errors: list[str] = []

    def open_one(
        query: str = "run=plain",
        status: Any = READY,
        on_run: Callable[[WebSocketRoute], None] | None = None,
        size: tuple[int, int] = (1280, 720),
        **context: Any,
    ) -> Page:
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, **context)
        pages.append(page)
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.route_web_socket(re.compile("/api/status"), lambda socket: socket.send(json.dumps(status)))
        if on_run is not None:
            page.route_web_socket(re.compile("/api/run"), on_run)
        page.goto(f"{site.url}harness.html?{query}")
        return page

    yield open_one
    for page in pages:
        page.close()
    assert not errors, "\n".join(errors)


def stage(page: Page) -> Any:
    return page.locator("div.stage")


def expect_data(page: Page, **wanted: str) -> None:
    for name, value in wanted.items():
        expect(stage(page)).to_have_attribute(f"data-{name}", value)


def t_of(page: Page) -> float:
    return float(stage(page).get_attribute("data-t") or "nan")


@pytest.mark.parametrize("density", DENSITIES)
def test_each_density_plays_to_its_end(open_stage: OpenStage, density: str) -> None:
    page = open_stage(f"run=plain&density={density}&t=1.1")
    expect_data(page, density=density, source="recorded", run="plain", state="paused", phase="decode")
    page.get_by_role("button", name="Play", exact=True).click()
    expect_data(page, state="ended", phase="done")
    expect(stage(page)).to_contain_text("RECORDED")


def test_the_sentence_has_the_figures_of_this_run(open_stage: OpenStage) -> None:
    page = open_stage()
    # 512 tokens in 0.4 s; a token each 0.02 s
    expect(page.locator(".headline")).to_have_text(
        re.compile(r"Reading: 0\.78\s?ms a token\. Writing: 20\s?ms a token\. 26 times slower, on the same chip\.")
    )
    expect(page.locator(".bytes")).to_contain_text(re.compile(r"500\s?MB.*for 256 tokens.*for 1 token", re.DOTALL))


def test_dials_are_meters_with_the_pass_and_the_ghost_of_the_other_phase(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.1")
    compute, memory = page.get_by_role("meter", name="Compute"), page.get_by_role("meter", name="Memory bus")
    # 256 x 2.4e8 FLOP in 0.2 s of 400e9 FLOP/s; decode 3e8 FLOP in 0.02 s
    expect(compute).to_have_attribute("aria-valuenow", "76.8")
    expect(compute).to_have_attribute("aria-valuetext", re.compile("reading 77.% of 400.GFLOP/s, measured here"))
    expect(compute).to_have_attribute("data-ghost", re.compile(r"writing 3\.8.%"))
    expect(memory).to_have_attribute("data-ghost", re.compile(r"writing 50.%"))
    expect(compute.locator(".needle.reading")).to_have_attribute("data-role", "active")
    expect(compute.locator(".needle.writing")).to_have_attribute("data-role", "ghost")


def test_without_ceilings_there_is_a_dash_with_its_reason(open_stage: OpenStage, site: Site) -> None:
    site.traces["bare"] = traces.plain_run(WORDS, ceilings=traces.Ceilings())
    page = open_stage("run=bare&t=0.1&density=lab")
    compute = page.get_by_role("img", name="Compute")  # a meter would need a value
    expect(compute).to_have_attribute("aria-label", re.compile("\u2013, the peak of this machine is not known"))
    assert compute.get_attribute("aria-valuenow") is None
    expect(compute).to_contain_text("GFLOP/s")
    expect(page.locator(".roofline")).to_contain_text("cannot be drawn")


def test_weights_from_the_cache_claim_nothing_about_memory(open_stage: OpenStage, site: Site) -> None:
    cached = traces.Ceilings(traces.FLOPS, traces.FLOPS, traces.READ, from_cache=True)
    site.traces["cached"] = traces.plain_run(WORDS, ceilings=cached)
    expect(open_stage("run=cached").get_by_role("meter", name="Memory bus, from cache")).to_be_visible()


def test_a_simulation_says_so_on_the_stage(open_stage: OpenStage, site: Site) -> None:
    site.traces["simulated"] = traces.plain_run(WORDS, source="simulated")
    page = open_stage("run=simulated")
    expect_data(page, source="simulated")
    expect(page.get_by_text("SIMULATED", exact=True)).to_be_visible()


def test_markup_in_prompt_and_answer_is_shown_as_characters(open_stage: OpenStage, site: Site) -> None:
    text = MARKUP.read_text(encoding="utf-8")
    site.traces["markup"] = traces.plain_run(re.findall(r"\S+\s*", text), model={"name": "<b>model</b>"})
    page = open_stage("run=markup&t=99&density=lab")
    assert page.locator(".typed-text").evaluate("text => text.textContent") == text
    expect(stage(page)).to_contain_text("<b>model</b>")
    assert stage(page).locator("script, img, b:has-text('bold')").count() == 0
    assert page.title() == "The stage outside Streamlit"


def test_withheld_text_is_drawn_as_blocks(open_stage: OpenStage, site: Site) -> None:
    site.traces["withheld"] = traces.plain_run(["", "", ""], text_withheld=True)
    page = open_stage("run=withheld&t=99")
    expect(page.locator(".typed-text")).to_have_text("■ ■ ■ ")


def test_a_long_answer_keeps_the_page_small(open_stage: OpenStage, site: Site) -> None:
    site.traces["long"] = traces.plain_run([f" w{i}" for i in range(5000)])
    page = open_stage("run=long&t=999")
    expect(page.locator(".typed-text")).to_contain_text("w4999")
    assert page.locator(".typed-text span").count() <= 800


def test_a_line_without_a_blank_stretches_nothing(open_stage: OpenStage, site: Site) -> None:
    line = "=" * 20_000
    site.traces["line"] = traces.plain_run([line[:19_990], *line[19_990:]])
    page = open_stage("run=line&t=999", size=(390, 844))
    expect(page.locator(".typed-text")).to_contain_text(line)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    box, whole = page.locator(".typed-text").bounding_box(), stage(page).bounding_box()
    assert box and whole and box["height"] < 844 and box["width"] <= whole["width"]


def test_the_keyboard_moves_the_clock_and_no_key_reaches_streamlit(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.3&density=lesson")
    page.evaluate("() => { window.seen = []; document.addEventListener('keydown', e => window.seen.push(e.key)); }")
    expect_data(page, state="paused", phase="prefill")
    stage(page).evaluate("stage => stage.focus()")
    for key, then in (("]", 0.401), ("ArrowRight", 0.421), ("ArrowRight", 0.441), ("ArrowLeft", 0.421), ("[", 0.401)):
        page.keyboard.press(key)
        expect_data(page, t=f"{then:.4f}")
    page.keyboard.press("Home")
    expect_data(page, t="0.0000")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Speed")).to_have_value("0.5")
    for key in ("r", "c", "Shift"):
        page.keyboard.press(key)
    page.keyboard.press(" ")
    expect_data(page, state=re.compile("playing|ended"))  # type: ignore[arg-type]
    assert page.evaluate("() => window.seen") == []


def test_pausing_and_seeking_tell_the_place_and_playing_does_not(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&density=lesson")
    expect_data(page, state="playing")
    assert page.evaluate("() => window.sent") == []
    page.get_by_label("Place in the run").fill("500")
    sent = page.evaluate("() => window.sent")
    assert [name for name, _ in sent] == ["pos"]
    assert sent[0][1]["run"] == "plain"
    assert sent[0][1]["t"] == pytest.approx(1.201 / 2)


def test_auto_pause_stops_at_the_first_token(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0&density=lesson")
    page.get_by_label("stop at phases").check()
    page.get_by_role("button", name="Next phase").click()
    page.get_by_role("button", name="Play", exact=True).click()
    expect_data(page, state="paused", phase="decode", t="0.4010")


def test_provenance_comes_by_hover_and_by_focus(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.5&density=lab")
    tip = page.get_by_role("tooltip")
    page.locator("[data-figure=flops]").hover()
    expect(tip).to_contain_text("derived")
    page.mouse.move(0, 0)
    page.locator("[data-figure=ttft]").focus()
    expect(tip).to_contain_text("measured")
    page.locator("[data-figure=energy]").focus()
    expect(tip).to_contain_text("No energy counter")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    without = stage(page).locator(".figure:not([data-tip]), .dial:not([data-tip]), .figure:not([tabindex])")
    assert without.count() == 0


def test_a_sensor_that_reads_nothing_says_why(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.7&density=lab")
    power = page.locator("[data-metric=power_w]")
    expect(power).to_contain_text("This machine has no NVIDIA GPU.")
    expect(power).to_contain_text("\u2013")
    expect(page.locator("[data-metric=cpu_busy]")).to_contain_text("driver busy time")


def test_nothing_scrolls_sideways(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.5")
    expect_data(page, state="paused")
    for density in DENSITIES:
        page.evaluate("density => window.show({ ...window.component.data, density })", density)
        for width in (1280, 390, 360):
            page.set_viewport_size({"width": width, "height": 844})
            frames = int(stage(page).get_attribute("data-frames") or 0)
            page.wait_for_function("frames => Number(stageElement().dataset.frames) > frames + 1", arg=frames)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width, f"{density} at {width}"


def test_hero_fits_a_small_screen(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.5")
    expect_data(page, state="paused")
    assert stage(page).evaluate("stage => stage.offsetHeight") < 640


def test_every_tick_is_legible(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.5&density=lab&plotly=1")
    page.wait_for_function("() => document.querySelector('#host').shadowRoot.querySelectorAll('.main-svg').length > 3")
    sizes = (
        stage(page)
        .locator(".main-svg text")
        .evaluate_all("all => all.map(t => parseFloat(getComputedStyle(t).fontSize))")
    )
    assert sizes
    assert min(sizes) >= 14


def test_a_growing_run_is_live_then_recorded(open_stage: OpenStage, site: Site) -> None:
    lines = site.traces["plain"].splitlines()
    sockets: list[WebSocketRoute] = []

    def on_run(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        if len(sockets) == 1:
            socket.send("\n".join(lines[:8]))

    page = open_stage("run=growing&live=1&density=lesson", on_run=on_run)
    expect_data(page, source="live", state="playing", phase="decode")
    expect(page.get_by_role("button", name="Live", exact=True)).to_have_attribute("aria-pressed", "true")
    sockets[0].close(code=1011)
    expect(page.get_by_text("nothing is lost")).to_be_visible()
    while len(sockets) < 2:
        page.wait_for_timeout(20)
    assert sockets[1].url.endswith("from=7")
    sockets[1].send("\n".join(lines[8:]))
    sockets[1].close(code=1000)
    expect_data(page, source="recorded", state="ended", phase="done")
    expect(page.locator(".typed-text")).to_have_text("".join(WORDS))


def test_a_run_that_fails_ends_with_its_sentence_and_keeps_what_came(open_stage: OpenStage, site: Site) -> None:
    cut = site.traces["plain"].splitlines()[:12]
    end = {"n": 11, "t": 0.45, "k": "end", "seq": None, "reason": "error", "message": "The model ran out of memory."}
    site.traces["failing"] = "\n".join([*cut, json.dumps(end)])
    page = open_stage("run=failing&t=99")
    expect(page.get_by_role("status").filter(has_text="The model ran out of memory.")).to_be_visible()
    expect(page.locator(".typed-text")).to_contain_text("word0")


def test_a_recording_that_is_gone_or_unreadable_is_a_sentence(open_stage: OpenStage, site: Site) -> None:
    page = open_stage("run=nowhere")
    expect_data(page, state="failed")
    expect(page.get_by_text("This recording is not here any more.")).to_be_visible()
    site.traces["foreign"] = '{"traceEvents": []}'
    foreign = open_stage("run=foreign")
    expect_data(foreign, state="failed")
    expect(foreign.get_by_text("This is not a trace file")).to_be_visible()


def test_no_run_is_an_empty_stage_with_a_sentence(open_stage: OpenStage) -> None:
    page = open_stage("run=")
    expect_data(page, state="empty")
    expect(page.get_by_text("No run is chosen yet.")).to_be_visible()


def test_the_button_starts_a_run(open_stage: OpenStage) -> None:
    page = open_stage()
    button = page.get_by_role("button", name="Run on this machine")
    expect(button).to_have_attribute("data-action", "run")
    button.click()
    assert [name for name, _ in page.evaluate("() => window.sent")] == ["run"]


def test_the_button_waits_for_the_installation(open_stage: OpenStage) -> None:
    install = {"state": "running", "doing": "torch", "share": 0.43, "bytes_done": 5e8, "bytes_total": 1.2e9}
    page = open_stage(status={**READY, "install": install})
    button = page.get_by_role("button", name=re.compile("Installing: 43 % of 1.20"))
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    assert page.evaluate("() => window.sent") == []


def test_a_superseded_clean_up_takes_nothing_down_and_a_real_one_does(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&density=lesson")
    expect_data(page, state=re.compile("playing|ended"))  # type: ignore[arg-type]
    page.evaluate("() => { window.cleanUp(); window.show({ ...window.component.data }); }")
    frames = int(stage(page).get_attribute("data-frames") or 0)
    page.wait_for_function("frames => Number(stageElement().dataset.frames) > frames + 5", arg=frames)
    assert stage(page).count() == 1
    page.evaluate("() => { window.old = stageElement(); document.getElementById('host').remove(); window.cleanUp(); }")
    page.wait_for_timeout(50)
    assert page.evaluate("() => window.old.isConnected") is False


def test_a_change_of_density_keeps_the_place(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.5&density=lesson")
    expect_data(page, state="paused", t="0.5000")
    page.evaluate("() => window.show({ ...window.component.data, density: 'lab' })")
    expect_data(page, density="lab", t="0.5000")
    expect(page.locator(".ledger")).to_be_visible()


def test_a_change_of_theme_is_followed(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&t=0.5")
    expect(stage(page)).to_have_attribute("data-theme", "light")
    page.evaluate("() => { document.body.className = 'dark'; window.show({ ...window.component.data }); }")
    expect(stage(page)).to_have_attribute("data-theme", "dark")


def test_with_reduced_motion_the_stage_opens_at_rest_on_both_phases(open_stage: OpenStage) -> None:
    page = open_stage("run=plain", reduced_motion="reduce")
    expect_data(page, state="ended", phase="done")
    expect(page.locator(".dial-number[data-role=active]")).to_have_count(4)


def test_a_phase_change_is_spoken(open_stage: OpenStage) -> None:
    page = open_stage("run=plain&density=lesson&t=0.3")
    expect_data(page, state="paused")
    page.keyboard.press("Tab")
    page.keyboard.press("]")
    expect(page.locator("[aria-live=polite]")).to_have_text(re.compile("Reading is done: compute 77"))


def test_frames_go_on_while_it_plays(open_stage: OpenStage, site: Site) -> None:
    site.traces["steady"] = traces.plain_run([f" w{i}" for i in range(3000)])
    page = open_stage("run=steady&density=lab")
    expect_data(page, state="playing")
    frames = int(stage(page).get_attribute("data-frames") or 0)
    page.wait_for_function("frames => Number(stageElement().dataset.frames) > frames + 30", arg=frames)
    assert t_of(page) > 0
