"""The pages of the arithmetic, run by Streamlit's own harness: simulate, what if, claims, own devices and models."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from server import Server
from sim.claims import ledger
from sim.hardware import find_hardware
from sim.models import find_model
from sim.scenario import find_scenario
from ui.selection import OPENING

pytestmark = pytest.mark.usefixtures("desk")
SMALL_LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}


def _simulate_page() -> None:
    import streamlit as st

    from ui import selection, simulator
    from ui.chapters import simulate

    simulator.enter()
    st.session_state["shown"] = selection.shown()
    simulate.page()


def _claims_page() -> None:
    import streamlit as st

    from ui.chapters import claims

    def simulate() -> None:
        pass

    def listing() -> None:
        claims.page(page)

    page = st.Page(simulate, title="Simulate")
    st.navigation([st.Page(listing, title="Claims", default=True), page]).run()


def _whatif_page() -> None:
    from ui.chapters import whatif

    whatif.page()


def run(page: Any, **address: str) -> AppTest:
    app = AppTest.from_function(page, default_timeout=30)
    for name, value in address.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    return "\n".join(text.value for text in app.text)


def test_the_page_predicts_with_an_interval_and_plays_nothing_unasked(desk: Server) -> None:
    app = run(_simulate_page)
    assert app.session_state["shown"].run_id == OPENING
    labels = [metric.label for metric in app.metric]
    assert labels == ["Time to first token", "Time per token", "Reading", "Writing"]
    assert all(" to " in metric.delta for metric in app.metric)
    assert "memory-bound" in said(app) and "It fits:" in said(app)


def test_play_puts_a_simulation_on_the_stage_and_the_address_makes_it_again(desk: Server) -> None:
    app = run(_simulate_page)
    app.button(key="sim_play").click().run()
    app.run()
    shown = app.session_state["shown"]
    (made,) = [one for one in desk.recordings() if one.source == "simulated"]
    assert shown.run_id == made.id
    again = run(_simulate_page, **{name: str(app.query_params[name]) for name in ("model", "device", "prompt")})
    other = again.session_state["shown"].run_id
    assert other != made.id
    assert {one.model for one in desk.recordings() if one.source == "simulated"} == {"Meta-Llama-3-8B"}


def test_the_same_simulation_is_made_once_a_session(desk: Server) -> None:
    app = run(_simulate_page)
    for _ in range(3):
        app.button(key="sim_play").click().run()
    assert len([one for one in desk.recordings() if one.source == "simulated"]) == 1


def test_two_devices_stand_side_by_side(desk: Server) -> None:
    app = run(_simulate_page, model="llama-3-8b", device="4090", against="h100-sxm")
    shown = app.session_state["shown"]
    machines = {one.id: one.machine for one in desk.recordings()}
    assert machines[shown.run_id] == "RTX 4090"
    assert machines[shown.beside.run_id] == "H100 SXM5 80GB"
    assert app.query_params["beside"] == shown.beside.run_id
    assert len(app.metric) == 8


def test_a_recording_stands_beside_a_simulation(desk: Server) -> None:
    app = run(_simulate_page, model="smollm2-135m", against=f"run:{OPENING}")
    assert app.session_state["shown"].beside.run_id == OPENING


def test_a_link_keeps_its_instant() -> None:
    app = run(_simulate_page, model="llama-3-8b", t="0.25")
    assert app.session_state["shown"].t == 0.25


def test_what_does_not_fit_says_by_how_much_in_place_of_a_speed(desk: Server) -> None:
    app = run(_simulate_page, model="llama-3-70b", device="4090", weights="int8")
    assert "does not fit by" in said(app)
    assert not app.metric
    assert app.button(key="sim_play").disabled
    assert [one.source for one in desk.recordings()] == ["live"]


def test_more_tokens_than_can_be_played_are_predicted_and_refused_at_the_button() -> None:
    app = run(_simulate_page, model="smollm2-135m", device="h200", new="200000")
    assert app.metric
    assert "fewer new tokens" in said(app)
    app.text_input(key="sim_new").set_value("10").run()
    assert "fewer new tokens" not in said(app)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", "0"),
        ("new", "1.5"),
        ("batch", "nan"),
        ("gpus", "3"),
        ("model", "nope"),
        ("device", "<b>"),
        ("kv", "x"),
    ],
)
def test_a_bad_link_is_a_sentence_and_no_traceback(field: str, value: str) -> None:
    app = run(_simulate_page, **{field: value})
    assert app.session_state["shown"].run_id == OPENING
    assert not app.metric
    assert len(app.text) == 1


def test_an_own_device_is_kept_in_the_address_and_chosen() -> None:
    app = run(_simulate_page)
    for column, value in {"name": "My card", "memory_GiB": "48", "bandwidth_GBps": "1200"}.items():
        app.text_input(key=f"own_device_{column}").set_value(value)
    app.text_input(key="own_device_fp16_dense_TFLOPS").set_value("200")
    next(button for button in app.button if button.label == "Add the device").click().run()
    assert not app.exception
    assert app.selectbox(key="sim_device").value == "My card"
    held = json.loads(str(app.query_params["own"]))
    assert held["devices"][0]["name"] == "My card"
    again = run(_simulate_page, own=str(app.query_params["own"]), device="my card")
    assert again.session_state["shown"].run_id != OPENING


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "1e9", "much", ""])
def test_a_bad_own_device_is_one_sentence(bad: str) -> None:
    app = run(_simulate_page)
    app.text_input(key="own_device_name").set_value("My card")
    app.text_input(key="own_device_memory_GiB").set_value("24")
    app.text_input(key="own_device_bandwidth_GBps").set_value(bad)
    next(button for button in app.button if button.label == "Add the device").click().run()
    assert not app.exception
    assert "bandwidth_GBps" in said(app)
    assert "own" not in app.query_params


@pytest.mark.parametrize(
    "own", ["[]", "{}", "nonsense", '{"devices": 3}', '{"devices": [3]}', "{" * 5000, "x" * 30_000]
)
def test_a_broken_own_catalog_in_a_link_is_one_sentence(own: str) -> None:
    app = run(_simulate_page, own=own)
    assert app.metric  # the catalogs' own devices still work
    assert not app.exception


def upload(app: AppTest, text: bytes, name: str = "tiny") -> None:
    app.text_input(key="own_config_name").set_value(name)
    app.file_uploader(key="own_config").upload("config.json", text)
    app.run()
    assert not app.exception


def test_a_config_json_becomes_a_model() -> None:
    app = run(_simulate_page)
    upload(app, json.dumps(SMALL_LLAMA).encode())
    assert app.selectbox(key="sim_model").value == "tiny"
    assert json.loads(str(app.query_params["own"]))["models"][0]["hidden"] == 512
    assert app.metric


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"model_type": "mamba"}', "whose costs are not known"),
        (b'{"model_type": "llama"}', "does not say"),
        (json.dumps(SMALL_LLAMA | {"hidden_size": 0}).encode(), "hidden_size"),
        (json.dumps(SMALL_LLAMA | {"num_hidden_layers": 1.5}).encode(), "num_hidden_layers"),
        (b"\xff\xfe\x00", "not text"),
        (b"not json", "no JSON object"),
        (b"{" * 100_000, "neither"),
        (b"[]", "no JSON object"),
        (b'{"devices": []}', "describes no model"),
        (b" " * 1_000_001, "never larger"),
    ],
)
def test_a_bad_config_json_is_one_sentence(text: bytes, says: str) -> None:
    app = run(_simulate_page)
    upload(app, text)
    assert says in said(app)
    assert "own" not in app.query_params


def test_the_claims_are_all_there_with_verdict_and_computed_sentences() -> None:
    app = run(_claims_page)
    shown = said(app)
    for claim in ledger():
        assert claim.ours in shown
    assert len([button for button in app.button if button.key.startswith("play_")]) == len(ledger())


@pytest.mark.parametrize("claim_id", ["C9", "C11", "C14"])
def test_a_claims_button_sets_the_simulator_and_plays(desk: Server, claim_id: str) -> None:
    app = run(_claims_page)
    app.button(key=f"play_{claim_id}").click().run()
    assert not app.exception
    setting = next(claim.setting for claim in ledger() if claim.id == claim_id)
    made = next(one for one in desk.recordings() if one.source == "simulated")
    assert app.session_state["run"] == made.id
    assert (made.model, made.precision) == (find_model(setting.model).name, setting.weights)
    assert made.machine == find_hardware(setting.hardware).name


def test_what_if_draws_four_charts_without_a_senseless_number() -> None:
    app = run(_whatif_page, model="llama-3-70b", weights="int8", batch="64", context="8192", device="h100-sxm")
    charts = [chart.proto.spec for chart in app.get("plotly_chart")]
    assert len(charts) == 4
    assert not any(word in chart for chart in charts for word in ("NaN", "Infinity"))
    assert "The KV cache outweighs the weights from a batch of" in said(app)
    assert "does not fit by" in said(app)


@pytest.mark.parametrize(
    ("field", "value"),
    [("batch", "0"), ("batch", "3"), ("context", "-5"), ("context", "1e99"), ("model", "?"), ("weights", "0 bit")],
)
def test_what_if_tells_a_bad_link_at_the_field(field: str, value: str) -> None:
    app = run(_whatif_page, **{field: value})
    assert len(app.get("plotly_chart")) == 4
    assert any("not" in text.value or "No " in text.value for text in app.text[:1])


def test_moving_a_slider_moves_the_panel() -> None:
    app = run(_whatif_page)
    before = said(app)
    app.select_slider(key="whatif_context").set_value(32768).run()
    assert said(app) != before
    assert app.query_params["context"] == ["32768"] or app.query_params["context"] == "32768"


def test_a_recording_is_put_beside_the_one_on_the_stage(desk: Server) -> None:
    started = desk.simulate(find_scenario("llama-3-8b", "4090", "bf16", 10, 5))

    def page() -> None:
        import streamlit as st

        from ui.chapters import recordings

        def listing() -> None:
            recordings.page(stage)

        stage = st.Page(lambda: None, title="The stage", url_path="stage")
        st.session_state.setdefault("run", "smollm2-135m-fp32-500")
        st.navigation([st.Page(listing, title="Recordings", default=True), stage]).run()

    app = AppTest.from_function(page, default_timeout=30).run()
    assert [b.key for b in app.button if b.key.startswith("beside_")] == [f"beside_{started.run_id}"]
    app.button(key=f"beside_{started.run_id}").click().run()
    assert not app.exception
    assert (app.session_state["run"], app.session_state["beside"]) == (OPENING, started.run_id)


def test_what_the_browser_kept_comes_back_unless_the_address_has_its_own() -> None:
    def page() -> None:
        import streamlit as st

        from ui import own

        st.session_state[own.COMPONENT] = {"own": st.session_state.get("kept")}
        own._bring_back()

    kept = '{"devices":[{"name":"Mine","memory_GiB":24,"bandwidth_GBps":900}]}'
    app = AppTest.from_function(page)
    app.session_state["kept"] = kept
    assert app.run().session_state["sim_own"] == kept
    app.session_state["kept"] = '{"devices":[]}'
    assert app.run().session_state["sim_own"] == kept
    for broken in (None, 3, "", "{", '{"devices":[{}]}'):
        app = AppTest.from_function(page)
        app.session_state["kept"] = broken
        app.run()
        assert not app.exception and "sim_own" not in app.session_state
