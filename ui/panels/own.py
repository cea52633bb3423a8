"""Forms for a person's own device and model, and for a model's config.json. What they make is kept by ``ui.own``."""

from __future__ import annotations

import streamlit as st

from sim.catalog_file import MOST_BYTES, fields_of_model, parse_catalog
from sim.families import FAMILIES
from ui import own, simulator
from ui.panels import problem

# Column of the catalog: what the form calls it.
DEVICE = {
    "name": "Name",
    "memory_GiB": "Memory, GiB",
    "bandwidth_GBps": "Bandwidth, GB/s",
    "fp16_dense_TFLOPS": "16-bit dense, TFLOP/s",
    "int8_dense_TOPS": "8-bit dense, TOP/s",
    "fp32_TFLOPS": "fp32, TFLOP/s",
}
MODEL = {
    "name": "Name",
    "n_layers": "Layers",
    "hidden": "Hidden width",
    "n_heads": "Attention heads",
    "n_kv_heads": "KV heads",
    "head_dim": "Head width",
    "intermediate": "MLP width",
    "vocab": "Vocabulary",
    "max_context_tokens": "Context, tokens",
    "experts": "Experts",
    "experts_per_token": "Experts a token",
    "expert_intermediate": "Expert width",
}
KINDS = ("gpu", "cpu", "tpu", "apu")
REFUSAL = "own_refusal"
CONFIG = "own_config"
CONFIG_NAME = "own_config_name"


def draw() -> None:
    """The three ways to add something, in one expander."""
    mine = own.catalog()
    n_own = len(mine.devices) + len(mine.models)
    with st.expander("Your own device or model", icon=":material/add:", expanded=_refusal() is not None):
        st.caption("Kept in this browser and in the page's address, never on the server.")
        problem.say("own", _refusal() or own.problem())
        device, model, config = st.tabs(["A device", "A model", "A config.json"])
        with device, st.form("own_device"):
            _fields("device", DEVICE)
            st.selectbox("Kind", KINDS, key=_key("device", "kind"))
            st.form_submit_button("Add the device", on_click=_add_device)
        with model, st.form("own_model"):
            _fields("model", MODEL)
            st.selectbox("Family", list(FAMILIES), key=_key("model", "family"))
            st.checkbox("LM head tied to the embedding", key=_key("model", "tied"))
            st.form_submit_button("Add the model", on_click=_add_model)
        with config:
            st.text_input("Name of the model", key=CONFIG_NAME, max_chars=80)
            st.file_uploader("config.json", key=CONFIG, on_change=_add_config)
        if n_own:
            st.button("Forget my devices and models", on_click=own.forget)


def _fields(what: str, columns: dict[str, str]) -> None:
    places = st.columns(3)
    for i, (column, label) in enumerate(columns.items()):
        places[i % 3].text_input(label, key=_key(what, column), max_chars=80)


def _key(what: str, column: str) -> str:
    return f"own_{what}_{column}"


def _refusal() -> str | None:
    said: str | None = st.session_state.get(REFUSAL)
    return said


def _add_device() -> None:
    fields = {column: st.session_state.get(_key("device", column)) for column in (*DEVICE, "kind")}
    _add("devices", "device", fields)


def _add_model() -> None:
    fields = {column: st.session_state.get(_key("model", column)) for column in (*MODEL, "family", "tied")}
    _add("models", "model", fields)


def _add_config() -> None:
    """The uploaded file as a model; taking the file away again changes nothing."""
    file = st.session_state.get(CONFIG)
    if file is None:
        return
    try:
        if file.size > MOST_BYTES:
            raise ValueError(f"A config.json is never larger than {MOST_BYTES:,} bytes.")
        name = str(st.session_state.get(CONFIG_NAME) or "").strip() or "my model"
        models = parse_catalog(_text(file.getvalue()), name).models
        if not models:
            raise ValueError("This file describes no model; devices are added by their form.")
    except ValueError as error:
        st.session_state[REFUSAL] = str(error.args[0])
        return
    for model in models:
        _add("models", "model", fields_of_model(model))


def _text(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("This file is not text in UTF-8, as a config.json is.") from None
    if not text.lstrip().startswith("{"):
        raise ValueError("This file is no JSON object, as a config.json is.")
    return text


def _add(kind: str, name: str, fields: dict[str, object]) -> None:
    """Keep it and choose it in the simulator, or say why not."""
    try:
        own.add(kind, fields)
    except ValueError as error:
        st.session_state[REFUSAL] = str(error.args[0])
        return
    st.session_state[REFUSAL] = None
    st.session_state[simulator.key(name)] = str(fields["name"]).strip()
