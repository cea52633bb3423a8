"""The script's side of a question: what a browser sends is one of the choices or nothing."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from server import Server


def ask() -> None:
    import streamlit as st

    from ui.panels.guess import guess

    st.text(f"answer to {guess('slower', 'How many times?', ['3', '30'])}")


@pytest.mark.usefixtures("desk")
def test_before_a_guess_there_is_no_answer() -> None:
    app = AppTest.from_function(ask).run()
    assert not app.exception
    assert app.text[0].value == "answer to None"
    (asked,) = app.get("bidi_component")
    data = json.loads(asked.proto.json)
    assert data["choices"] == ["3", "30"]
    assert data["question"] == "How many times?"


@pytest.mark.parametrize(("sent", "taken"), [("30", "30"), ("31", None), (None, None), ({"a": 1}, None)])
def test_only_a_choice_counts_as_a_guess(desk: Server, sent: object, taken: str | None) -> None:
    app = AppTest.from_function(ask)
    app.session_state["guess_slower"] = {"choice": sent}
    app.run()
    assert not app.exception
    assert app.text[0].value == f"answer to {taken}"
