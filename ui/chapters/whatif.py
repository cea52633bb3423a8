"""What if: sliders for batch, context and weights, and four figures that follow them.

The panel is a fragment, so that a slider's move runs it alone; the charts change only then. What it shows is computed
in ``ui.whatif`` and drawn in ``ui.panels.charts``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import plotly.graph_objects as go
import streamlit as st

from sim.catalog_file import OwnCatalog
from sim.checks import context_warning
from sim.formats import KV_BYTES_PER_ELEMENT, find_kv_format
from sim.hardware import all_hardware, find_hardware
from sim.models import all_models, find_model
from sim.names import resolve
from sim.scenario import usual_setting
from sim.words import INTERVAL
from ui import own, whatif
from ui.fields import count
from ui.panels import charts, problem

# From many bits a weight to few.
WEIGHTS = ("fp32", "bf16", "fp8", "int8", "Q6_K", "Q4_K_M", "int4-g32", "Q2_K")
# Of every class that people own or rent; a person's own device joins them.
COMPARED = (
    *("RTX 3060", "RTX 3090", "RTX 4090", "RTX 5090", "RTX PRO 6000 Blackwell", "L40S", "A100 SXM4 80GB"),
    *("H100 SXM5 80GB", "H200", "B200", "MI300X", "M4 Max", "DGX Spark GB10", "Ryzen AI Max+ 395", "EPYC 9654"),
)
CHART = {"displayModeBar": False}

T = TypeVar("T")


# Names in the address and of the widgets' keys: what each begins with.
DEFAULTS: dict[str, object] = {
    "model": "Meta-Llama-3-8B",
    "device": "RTX 4090",
    "kv": "fp16",
    "batch": 1,
    "context": 2048,
    "weights": "bf16",
}
PROBLEMS = "whatif_problems"


def page() -> None:
    """Draws the panel."""
    own.mount()
    st.fragment(_panel)()


def _panel() -> None:
    mine = own.catalog()
    if PROBLEMS not in st.session_state:  # a new session listens to the address; later it is we who write it
        st.session_state[PROBLEMS] = _enter(mine)
    question = _ask(mine)
    for name in DEFAULTS:
        st.query_params[name] = str(st.session_state[_key(name)])
    try:
        _answer(question, [device.name for device in mine.devices], mine)
    except ValueError as error:
        problem.say("whatif", str(error))


def _key(name: str) -> str:
    return f"whatif_{name}"


def _enter(mine: OwnCatalog) -> dict[str, str]:
    """Sets the widgets to what the address says; gives one sentence for each thing that it says wrongly."""
    problems: dict[str, str] = {}
    for name, read in _readers(mine).items():
        try:
            if name in st.query_params:
                st.session_state[_key(name)] = read(st.query_params[name])
        except (ValueError, LookupError) as error:
            problems[name] = str(error.args[0])
    return problems


def _readers(mine: OwnCatalog) -> dict[str, Callable[[str], object]]:
    return {
        "model": lambda text: find_model(text, mine.models).name,
        "device": lambda text: find_hardware(text, mine.devices).name,
        "kv": lambda text: resolve(text, KV_BYTES_PER_ELEMENT, "KV cache format"),
        "batch": lambda text: _one_of("The batch", count("The batch", text), whatif.BATCHES),
        "context": lambda text: _one_of("The context", count("The context", text), whatif.CONTEXTS),
        "weights": lambda text: resolve(text, WEIGHTS, "weight format on this slider"),
    }


def _one_of(what: str, value: int, stops: tuple[int, ...]) -> int:
    if value not in stops:
        raise ValueError(f"{what} on this slider is one of {', '.join(f'{stop:,}' for stop in stops)}, not {value:,}.")
    return value


def _ask(mine: OwnCatalog) -> whatif.Question:
    """The widgets, and what they ask."""
    for name, default in DEFAULTS.items():
        st.session_state.setdefault(_key(name), default)
    first, second = st.columns([2, 2, 1]), st.columns(3)
    model = _select(first[0], "model", "Model", [*(m.name for m in (*mine.models, *all_models()))])
    device = _select(first[1], "device", "Device", [*(d.name for d in (*mine.devices, *all_hardware()))])
    kv = _select(first[2], "kv", "KV cache", list(KV_BYTES_PER_ELEMENT))
    batch = _slide(second[0], "batch", "Batch", whatif.BATCHES)
    context = _slide(second[1], "context", "Context, tokens", whatif.CONTEXTS)
    weights = _slide(second[2], "weights", "Weights", WEIGHTS)
    setting = usual_setting(find_hardware(device, mine.devices), weights)
    return whatif.Question(find_model(model, mine.models), setting, find_kv_format(kv), batch, context)


def _select(place: st.delta_generator.DeltaGenerator, name: str, label: str, options: list[str]) -> str:
    with place:
        if st.session_state[_key(name)] not in options:  # an own one that was forgotten
            st.session_state[_key(name)] = DEFAULTS[name]
        chosen = st.selectbox(label, options, key=_key(name), persist_state="session", on_change=_settle, args=(name,))
        problem.say(_key(name), st.session_state[PROBLEMS].get(name))
    return chosen


def _slide(place: st.delta_generator.DeltaGenerator, name: str, label: str, stops: tuple[T, ...]) -> T:
    with place:
        chosen = st.select_slider(
            label,
            stops,
            key=_key(name),
            format_func=_shown,
            persist_state="session",
            on_change=_settle,
            args=(name,),
        )
        problem.say(_key(name), st.session_state[PROBLEMS].get(name))
    return chosen


def _settle(name: str) -> None:
    """What the address said wrongly is forgotten once a person has chosen."""
    st.session_state[PROBLEMS].pop(name, None)


def _shown(stop: object) -> str:
    return f"{stop:,}" if isinstance(stop, int) else str(stop)


def _answer(question: whatif.Question, own_devices: list[str], mine: OwnCatalog) -> None:
    chosen = question.setting.hardware.name
    names = dict.fromkeys([*own_devices, *(find_hardware(name).name for name in COMPARED), chosen])
    weights = question.setting.weights.name
    settings = [usual_setting(find_hardware(name, mine.devices), weights) for name in names]
    problem.say("whatif_context", context_warning(question.spec, question.context))
    left, right = st.columns(2)
    traffic = whatif.traffic(question)
    with left:
        st.subheader(f"Writing with {question.spec.name}")
        _chart(charts.speed_bars(whatif.speeds(question, settings), chosen), "whatif_speeds")
        st.caption(f"The thin line is {INTERVAL}.")
        need = whatif.need(question)
        st.subheader("Memory")
        st.text(need.sentence())
        _chart(charts.memory_bar(need), "whatif_memory")
    with right:
        st.subheader(f"The roofline of {chosen}")
        _chart(charts.roofline(whatif.roof(question)), "whatif_roofline")
        st.subheader("Weights or KV cache")
        st.text(takeover_sentence(traffic))
        _chart(charts.traffic_lines(traffic, question.batch), "whatif_traffic")


def takeover_sentence(traffic: whatif.Traffic) -> str:
    """From which batch the KV cache is the larger part of what a pass reads, and how many sequences fit."""
    if traffic.takeover <= 1:
        said = "The KV cache outweighs the weights from the first sequence on."
    elif math.isinf(traffic.takeover):
        said = "The KV cache never outweighs the weights."
    else:
        said = f"The KV cache outweighs the weights from a batch of {math.ceil(traffic.takeover):,} on."
    if traffic.most_that_fit is None:
        return said
    return f"{said} Memory holds a batch of {traffic.most_that_fit:,}."


def _chart(figure: go.Figure, key: str) -> None:
    st.plotly_chart(figure, key=key, config=CHART)
