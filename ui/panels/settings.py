"""What to run: prompt, precision, length, sampling. Draws the widgets, and reads a request back from their values.

Reading is a plain function of a mapping, so the stage's button can use it in a callback, before anything is drawn,
and on a page where the settings are not shown. The rules of a request are the engine's; here are only its choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from server import Worker
from telemetry.protocol import RunRequest

PRESETS = {"500": "500 tokens of filler", "2000": "2,000 tokens of filler", "own": "My own text"}
DEFAULT_PRECISION = "default"
MOST_NEW_TOKENS = 2048
STOPS_HELP = r"One a line; \n is a newline."
LONGEST_PROMPT_CHARACTERS = 200_000


def request(values: Mapping[str, Any]) -> RunRequest:
    """The run that the widgets' values ask for; what was never drawn has its default."""
    preset = values.get("run_preset") or "500"
    precision = values.get("run_precision") or DEFAULT_PRECISION
    return RunRequest(
        model=values.get("run_model"),
        precision=None if precision == DEFAULT_PRECISION else precision,
        prompt=str(values.get("run_text") or "") if preset == "own" else None,
        prompt_tokens=None if preset == "own" else int(preset),
        max_new_tokens=int(values.get("run_new_tokens", 64)),
        temperature=float(values.get("run_temperature", 0.0)),
        top_p=float(values.get("run_top_p", 1.0)),
        seed=int(values.get("run_seed", 0)),
        stop=stops(str(values.get("run_stop") or "")),
        ignore_eos=preset != "own",
        stretch_prefill=bool(values.get("run_stretch", False)),
        cuda_graph=bool(values.get("run_graph", True)),
    )


def stops(text: str) -> tuple[str, ...]:
    """One stop string a line; ``\\n`` and ``\\t`` are written as in most programs. Empty lines mean nothing."""
    return tuple(line.replace("\\n", "\n").replace("\\t", "\t") for line in text.split("\n") if line)


def draw(worker: Worker) -> None:
    """The widgets, in three columns. Their keys outlive a change of page."""
    left, middle, right = st.columns(3)
    with left:
        _prompt()
    with middle:
        _model(worker)
    with right:
        _sampling(worker)


def _prompt() -> None:
    st.segmented_control(
        "Prompt",
        list(PRESETS),
        default="500",
        required=True,
        format_func=PRESETS.__getitem__,
        key="run_preset",
        persist_state="session",
    )
    if st.session_state["run_preset"] == "own":
        st.text_area("Text", key="run_text", max_chars=LONGEST_PROMPT_CHARACTERS, height=120, persist_state="session")
    else:
        st.caption("Plain English filler, cut to the exact number of tokens; the run goes on to its full length.")
    st.number_input("New tokens", 0, MOST_NEW_TOKENS, 64, key="run_new_tokens", persist_state="session")


def _model(worker: Worker) -> None:
    if len(worker.models) > 1:
        labels = {model.name: model.label for model in worker.models}
        st.selectbox("Model", list(labels), format_func=_from(labels), key="run_model", persist_state="session")
    offered = {offer.precision: offer.label for offer in worker.precisions if offer.offered}
    # The browser sends a choice back as its text, so this text never changes: a click would come with the old one.
    labels = {DEFAULT_PRECISION: "Fastest prefill here"} | offered
    if st.session_state.get("run_precision") not in labels:
        st.session_state["run_precision"] = DEFAULT_PRECISION
    st.selectbox("Precision", list(labels), format_func=_from(labels), key="run_precision", persist_state="session")
    if worker.default_precision:
        st.caption(f"The fastest prefill here is that of {worker.default_precision}.")
    for offer in worker.precisions:
        if not offer.offered:
            st.text(f"{offer.precision} is not offered here: {offer.reason}")
    st.toggle(
        "Stretch prefill",
        key="run_stretch",
        persist_state="session",
        help="Repeats the same prefill for at least a second, so that counters can see it. It enters no figure.",
    )


def _sampling(worker: Worker) -> None:
    st.slider(
        "Temperature",
        0.0,
        2.0,
        0.0,
        0.05,
        key="run_temperature",
        persist_state="session",
        help="0 always takes the likeliest token.",
    )
    st.slider("Top-p", 0.05, 1.0, 1.0, 0.05, key="run_top_p", persist_state="session")
    st.number_input("Seed", 0, 2**31 - 1, 0, key="run_seed", persist_state="session")
    st.text_area("Stop strings", key="run_stop", height=68, persist_state="session", help=STOPS_HELP)
    if worker.device_kind == "cuda":
        st.toggle(
            "CUDA graph",
            True,
            key="run_graph",
            persist_state="session",
            help="Off runs step by step, so that the overhead of launching each operation can be seen.",
        )


def _from(labels: Mapping[str, str]) -> Any:
    return lambda name: labels.get(name, name)
