"""The script as a whole: what it draws, that nothing piles up, and what a viewer's choices turn into."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import server
from server import Server
from telemetry.protocol import State
from tests.ui.conftest import ScriptedSource
from ui.selection import NOT_HERE, NOTHING_SHIPPED, OPENING

TraceText = Callable[..., str]


def stages(app: AppTest) -> list[Any]:
    return list(app.get("bidi_component"))


def told(app: AppTest) -> dict[str, Any]:
    """The data that the one stage was given."""
    (stage,) = stages(app)
    data: dict[str, Any] = json.loads(stage.proto.json)
    return data


def test_the_opening_recording_is_on_the_stage_without_any_click(app: AppTest) -> None:
    app.run()
    assert not app.exception
    data = told(app)
    assert data["run"]["id"] == OPENING
    assert data["run"]["recorded"] is True
    assert data["density"] == "hero"
    assert data["message"] is None


def test_the_script_needs_no_torch(app: AppTest) -> None:
    before = set(sys.modules)
    app.run()
    assert not {name for name in set(sys.modules) - before if name.split(".")[0] in ("torch", "transformers")}


def test_many_equal_runs_of_the_script_draw_one_stage_each_and_never_complain(app: AppTest) -> None:
    for _ in range(20):
        app.run()
        assert not app.exception
        assert len(stages(app)) == 1


def test_the_density_reaches_the_stage_and_the_address(app: AppTest) -> None:
    app.run()
    app.segmented_control(key="density").set_value("lab").run()
    assert told(app)["density"] == "lab"


def test_a_link_says_run_and_instant(app: AppTest, desk: Server, trace_text: TraceText) -> None:
    app.query_params["run"] = OPENING
    app.query_params["t"] = "0.25"
    app.run()
    assert told(app)["t"] == 0.25
    assert app.query_params["run"] == OPENING


@pytest.mark.parametrize("t", ["nan", "1e999", "soon", ""])
def test_a_link_with_a_senseless_instant_begins_at_the_start(app: AppTest, t: str) -> None:
    app.query_params["run"] = OPENING
    app.query_params["t"] = t
    app.run()
    assert not app.exception
    assert told(app)["t"] is None


def test_a_link_to_a_run_that_is_gone_says_so_and_plays_the_opening(app: AppTest) -> None:
    app.query_params["run"] = "../../etc/passwd"
    app.run()
    assert told(app)["message"] == NOT_HERE
    assert told(app)["run"]["id"] == OPENING


def test_without_any_recording_there_is_a_sentence(app: AppTest, tmp_path: Path) -> None:
    (tmp_path / "shipped" / f"{OPENING}.jsonl").unlink()
    app.run()
    assert not app.exception
    assert told(app)["run"] is None
    assert told(app)["message"] == NOTHING_SHIPPED


def test_a_precision_that_is_not_offered_is_named_with_its_reason(app: AppTest) -> None:
    app.run()
    precision = app.selectbox(key="run_precision")
    assert precision.options == ["Fastest prefill here", "fp32: full", "int4: bf16 prefill, 4-bit decode"]
    assert "int8 is not offered here: A decode step is slower than in bf16 here." in [text.value for text in app.text]


def test_a_choice_keeps_its_text_when_the_engine_becomes_ready(app: AppTest, source: ScriptedSource) -> None:
    """The browser sends the text that it was shown; a click may cross the redraw that follows the engine."""
    ready, source.state = source.state, State("loading", device="AMD EPYC", device_kind="cpu")
    app.run()
    before = app.selectbox(key="run_precision").options
    source.state = ready
    app.run()
    assert set(before) <= set(app.selectbox(key="run_precision").options)


def test_the_cuda_switch_is_there_only_where_cuda_is(app: AppTest, source: ScriptedSource) -> None:
    app.run()
    assert "run_graph" not in [toggle.key for toggle in app.toggle]
    source.state = State("ready", device="NVIDIA H100 80GB HBM3", device_kind="cuda")
    app.run()
    assert "run_graph" in [toggle.key for toggle in app.toggle]


def test_a_chosen_precision_that_vanishes_falls_back_to_the_default(app: AppTest, source: ScriptedSource) -> None:
    app.run()
    app.selectbox(key="run_precision").set_value("int4").run()
    source.state = State("ready", device="AMD EPYC", device_kind="cpu")
    app.run()
    assert not app.exception
    assert app.selectbox(key="run_precision").value == "default"


def test_recordings_lists_facts_and_plays(app: AppTest, desk: Server, tmp_path: Path, trace_text: TraceText) -> None:
    with (tmp_path / "a.jsonl").open("wb+") as file:
        file.write(trace_text(step_s=0.02).encode())
        file.seek(0)
        added = desk.add_recording("a :red[b] $c$ <b>.jsonl", file)
    page = AppTest.from_function(_recordings_page, default_timeout=20).run()
    assert not page.exception
    texts = [text.value for text in page.text]
    assert "a :red[b] $c$ <b>.jsonl" in texts
    # 19 gaps of 20 ms: 50 tokens a second.
    assert any("hand-made machine" in text and "fp32" in text and "50 tok/s" in text for text in texts)
    page.button(key=f"play_{added.id}").click().run()
    assert page.session_state["run"] == added.id
    assert not page.exception


def _recordings_page() -> None:
    import streamlit as st

    from ui.chapters import recordings

    def home() -> None:
        pass

    def listing() -> None:
        recordings.page(stage)

    stage = st.Page(home, title="The stage")
    st.navigation([st.Page(listing, title="Recordings", default=True), stage]).run()


def test_the_method_page_shows_ceilings_and_sums_of_the_run_on_the_stage(desk: Server) -> None:
    page = AppTest.from_function(_method_page, default_timeout=20).run()
    assert not page.exception
    sums, ceilings = page.dataframe[0].value, page.dataframe[1].value
    assert dict(zip(sums["figure"], sums["value"], strict=True))["Decode"] == "50"
    assert list(ceilings["ceiling"]) == ["470", "470", "55"]
    assert list(ceilings["from"]) == ["measured"] * 3


def _method_page() -> None:
    from ui.chapters import method

    method.page()


def _press_run() -> None:
    import streamlit as st

    from ui import actions, selection

    if st.button("Run", on_click=actions.start_run):
        pass
    st.session_state["shown"] = selection.shown()


def press(state: dict[str, Any] | None = None) -> AppTest:
    page = AppTest.from_function(_press_run, default_timeout=20)
    for key, value in (state or {}).items():
        page.session_state[key] = value
    page.run()
    page.button[0].click().run()
    assert not page.exception
    return page


def test_run_starts_what_the_settings_say(desk: Server, source: ScriptedSource) -> None:
    page = press({"run_preset": "own", "run_text": "Hello", "run_stop": "\\nUser:\n", "run_seed": 7})
    (request,) = source.requests
    assert (request.prompt, request.prompt_tokens, request.seed) == ("Hello", None, 7)
    assert request.stop == ("\nUser:",)
    shown = page.session_state["shown"]
    assert shown.live
    assert shown.run_id == desk.status().busy_run_id
    assert shown.key


def test_settings_that_were_never_drawn_have_their_defaults(desk: Server, source: ScriptedSource) -> None:
    press()
    (request,) = source.requests
    assert (request.prompt_tokens, request.precision, request.max_new_tokens) == (500, None, 64)


def test_who_comes_second_watches_the_first(desk: Server, source: ScriptedSource) -> None:
    first, second = press(), press()
    assert len(source.requests) == 1
    shown = second.session_state["shown"]
    assert shown.run_id == first.session_state["shown"].run_id
    assert (shown.live, shown.key) == (True, None)


def test_a_refusal_is_a_sentence_and_the_stage_keeps_what_it_shows(desk: Server, source: ScriptedSource) -> None:
    source.refusal = "The prompt is empty."
    shown = press().session_state["shown"]
    assert (shown.run_id, shown.message) == (OPENING, "The prompt is empty.")
    source.refusal = None
    assert press().session_state["shown"].message is None


def test_a_run_that_has_not_said_its_first_line_is_not_taken_for_lost(desk: Server, source: ScriptedSource) -> None:
    page = press()
    run_id = page.session_state["shown"].run_id
    desk.runs.store.path(run_id).unlink()
    page.run()
    assert page.session_state["shown"].run_id == run_id
    assert page.session_state["shown"].live


def test_without_its_server_the_page_says_how_to_start_it() -> None:
    server.install(None)
    with pytest.raises(LookupError, match=r"streamlit run app\.py"):
        server.current()


def test_moving_the_settings_loads_and_runs_nothing(app: AppTest, source: ScriptedSource) -> None:
    app.run()
    for temperature in (0.2, 0.4, 0.6, 0.8, 1.0):
        app.slider(key="run_temperature").set_value(temperature).run()
    assert app.slider(key="run_temperature").value == 1.0
    assert source.requests == []
