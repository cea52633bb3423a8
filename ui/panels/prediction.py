"""What the simulator predicts: the verdict, the times with how sure they are, and the bytes behind them.

Every figure is computed from the scenario; a model that does not fit gets the missing GiB in place of a speed.
"""

from __future__ import annotations

import streamlit as st

from sim.engines import compute_path
from sim.predict import Prediction
from sim.scenario import Scenario
from sim.words import INTERVAL, duration, gb, rate, share, verdict
from ui.figures import UNKNOWN
from ui.panels import problem

INTERVAL_HELP = f"The range is {INTERVAL}."


def say_verdict(scenario: Scenario) -> None:
    """What holds it up, in a sentence or two, and what is unusual about the request."""
    found = scenario.predict()
    st.text(verdict(scenario.spec, scenario.setting, found))
    for n, warning in enumerate(found.warnings):
        problem.say(f"warning_{n}", warning)


def draw(scenario: Scenario) -> None:
    """The figures of one scenario, under the name of its device."""
    found = scenario.predict()
    ranks = scenario.setting.tensor_parallel
    st.subheader(scenario.setting.hardware.name if ranks == 1 else f"{ranks} x {scenario.setting.hardware.name}")
    if found.memory.fits is not False:
        _times(scenario, found)
    st.text(found.memory.sentence())
    with st.expander("The bytes and FLOPs behind it"):
        st.dataframe(rows(scenario, found), hide_index=True, height="content")


def _times(scenario: Scenario, found: Prediction) -> None:
    each = " (all together)" if scenario.batch > 1 else ""
    first = st.columns(4)
    _metric(first[0], "Time to first token", duration(found.ttft_s or 0.0), _span(found.ttft_interval_s))
    _metric(first[1], "Time per token", duration(found.tpot_s or 0.0), _span(found.tpot_interval_s))
    tokens = scenario.batch * scenario.prompt_tokens
    _metric(first[2], f"Reading{each}", rate(found.prefill_tok_s), _rates(found.ttft_interval_s, tokens))
    _metric(first[3], f"Writing{each}", rate(found.decode_tok_s), _rates(found.tpot_interval_s, scenario.batch))


def _metric(place: st.delta_generator.DeltaGenerator, label: str, value: str, span: str) -> None:
    place.metric(label, value, span, delta_color="off", delta_arrow="off", help=INTERVAL_HELP)


def _span(interval: tuple[float, float] | None) -> str:
    return f"{duration(interval[0])} to {duration(interval[1])}" if interval else UNKNOWN


def _rates(interval: tuple[float, float] | None, tokens: int) -> str:
    return f"{rate(tokens / interval[1])} to {rate(tokens / interval[0])}" if interval else UNKNOWN


def rows(scenario: Scenario, found: Prediction) -> list[dict[str, str]]:
    """The byte ledger of a decode pass and what it means, one row a figure."""
    b, path = found.bytes_per_token, compute_path(scenario.setting)
    engine = scenario.setting.engine
    figures = {
        "weights, for each token": gb(b.weights),
        "KV cache read, for each token": gb(b.kv_read),
        "KV cache written, for each token": gb(b.kv_write),
        "activations, for each token": gb(b.activations),
        "KV cache that one token takes": f"{found.kv_bytes_per_token:,} bytes",
        "intensity of reading": f"{found.prefill_intensity:.3g} FLOP/byte",
        "intensity of writing": f"{found.decode_intensity:.3g} FLOP/byte",
        "what holds reading up": found.prefill_bound,
        "what holds writing up": found.decode_bound,
        "compute used while reading (MFU)": f"{share(found.mfu)} of {path.flops_per_s / 1e12:.4g} T/s ({path.name})",
        "bandwidth used while writing (MBU)": share(found.mbu),
        "engine that is assumed": f"{engine.family} ({engine.backend})",
        "source of the device's rates": f"{scenario.setting.hardware.source}; {scenario.setting.hardware.confidence}",
        "source of the model's shape": scenario.spec.source,
    }
    return [{"figure": name, "value": value} for name, value in figures.items()]
