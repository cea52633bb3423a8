"""Presenter mode and links: what the address may say, what the stage is told, and what keys of the stage turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from ui import selection
from ui.selection import OPENING


def told(app: AppTest) -> dict[str, Any]:
    (stage,) = [one for one in app.get("bidi_component") if "density" in json.loads(one.proto.json)]
    data: dict[str, Any] = json.loads(stage.proto.json)
    return data


def test_a_link_presents_and_the_button_leaves(app: AppTest) -> None:
    app.query_params["present"] = "1"
    app.run()
    assert told(app)["present"] == "stage"
    app.button(key="present_stage").click().run()
    assert not app.exception
    assert told(app)["present"] is None
    assert "present" not in app.query_params
    app.button(key="present_stage").click().run()
    assert told(app)["present"] == "stage"
    assert app.query_params["present"] == "1"


@pytest.mark.parametrize("name", ["t", "density", "present"])
@pytest.mark.parametrize("value", ["soon", "-1", "", "1e999", "<b>"])
def test_a_senseless_value_means_the_usual_and_is_said_once(app: AppTest, name: str, value: str) -> None:
    app.query_params[name] = value
    app.run()
    assert not app.exception
    data = told(app)
    assert data["message"] == selection.NOT_UNDERSTOOD % name
    assert (data["t"], data["density"], data["present"]) == (None, "hero", None)
    again = AppTest.from_file(str(app._script_path), default_timeout=20)
    for key, kept in app.query_params.items():
        again.query_params[key] = kept
    again.run()
    assert told(again)["message"] is None


@pytest.mark.parametrize("density", ["lesson", "lab"])
def test_a_link_says_how_much_to_show(app: AppTest, density: str) -> None:
    app.query_params["density"] = density
    app.run()
    assert not app.exception
    assert not app.warning
    assert (told(app)["density"], told(app)["message"]) == (density, None)


def test_several_are_said_in_one_sentence(app: AppTest) -> None:
    for name in ("t", "density", "present"):
        app.query_params[name] = "soon"
    app.run()
    assert told(app)["message"] == selection.NOT_UNDERSTOOD % "density, present, t"


def test_a_moment_without_a_run_is_a_moment_of_the_opening_recording(app: AppTest) -> None:
    app.query_params["t"] = "0.25"
    app.run()
    data = told(app)
    assert (data["run"]["id"], data["t"], data["message"]) == (OPENING, 0.25, None)


def stand() -> None:
    import streamlit as st

    from ui import selection

    selection.shown()
    selection.stand_at(selection.OPENING, 0.125)
    st.text(str(selection.shown().run_id))


@pytest.mark.usefixtures("desk")
def test_whoever_stands_in_the_opening_recording_can_send_a_link() -> None:
    app = AppTest.from_function(stand).run()
    assert not app.exception
    assert app.text[0].value == OPENING
    assert (app.query_params["run"], app.query_params["t"]) == (OPENING, "0.125")
