"""Reading a request back from widget values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ui.panels.settings import request, stops


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "run_preset": st.sampled_from(["500", "2000", "own"]),
            "run_text": st.text(),
            "run_precision": st.sampled_from(["default", "fp32", "int4"]),
            "run_new_tokens": st.integers(0, 2048),
            "run_temperature": st.floats(0, 2),
            "run_stop": st.text(),
            "stage": st.none() | st.dictionaries(st.text(), st.integers()),
        },
    )
)
def test_every_state_of_the_widgets_is_exactly_one_kind_of_prompt(values: dict[str, object]) -> None:
    asked = request(values)
    assert (asked.prompt is None) != (asked.prompt_tokens is None)
    assert asked.precision != "default"
    assert "" not in asked.stop


def test_stop_strings_are_lines_with_the_usual_escapes() -> None:
    assert stops("\\nUser:\n\nSTOP\n<\\t>") == ("\nUser:", "STOP", "<\t>")
    assert stops("") == ()


def test_a_preset_runs_to_its_full_length_and_own_text_may_end() -> None:
    assert request({"run_preset": "2000"}).ignore_eos
    assert not request({"run_preset": "own", "run_text": "x"}).ignore_eos
