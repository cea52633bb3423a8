"""GPU, TPU or CPU: the same model and prompt on each, by roofline, speed, joules and price."""

from __future__ import annotations

import streamlit as st

from sim.engines import bandwidth_bytes_per_s, compute_path
from sim.ledger.claim import TOKENS_READ, TOKENS_WRITTEN
from sim.ledger.serving import price_of_a_million_tokens
from sim.predict import Prediction
from sim.scenario import Scenario, find_scenario
from sim.words import gb, rate
from ui.lessons import charts, drawn
from ui.lessons.charts import Roof
from ui.lessons.ground import Ground
from ui.lessons.numbers import UNKNOWN, price, three, times
from ui.lessons.text import phrase

MODEL, WEIGHTS = "Meta-Llama-3-8B", "bf16"
MODELS = ("Llama-3.2-1B", MODEL)
GPU, TPU, CPU, APPLE = "H100 SXM5 80GB", "TPU v6e", "EPYC 9654 (1 socket)", "Apple M4 Max (40-core GPU)"
MACHINES = (GPU, TPU, CPU, APPLE)


def figures(ground: Ground) -> dict[str, str]:
    """How the kinds compare on the story's model and prompt."""
    gpu, cpu = (_scenario(MODEL, machine).predict() for machine in (GPU, CPU))
    return {
        "model": MODEL,
        "gpu": GPU,
        "cpu": CPU,
        "read_faster": times((gpu.prefill_tok_s or 0.0) / (cpu.prefill_tok_s or 1.0)),
        "write_faster": times((gpu.decode_tok_s or 0.0) / (cpu.decode_tok_s or 1.0)),
        "cpu_writes": rate(cpu.decode_tok_s),
        "cpu_small": rate(_scenario(MODELS[0], CPU).predict().decode_tok_s),
        "small": MODELS[0],
        "prompt": f"{TOKENS_READ:,}",
    }


def panel(ground: Ground) -> None:
    """A column a machine: its roofline, the learner's price, what it reads and writes for it."""
    model = st.segmented_control(
        phrase("machines.model"),
        MODELS,
        default=MODEL,
        required=True,
        key="machines_model",
        label_visibility="collapsed",
    )
    scenarios = [_scenario(model or MODEL, machine) for machine in MACHINES]
    roofs = [_roof(scenario) for scenario in scenarios]
    xs = _span([p[0] for r in roofs for p in (r.reading, r.writing)])
    ys = _span([y for r in roofs for y in (r.writing[1], r.flops_per_s)])
    for i, (scenario, roof, place) in enumerate(zip(scenarios, roofs, st.columns(len(roofs)), strict=True)):
        with place:
            charts.show(charts.roofline(roof, xs, ys), f"machines_roof_{i}")
            _column(i, scenario, roof)


def _span(values: list[float]) -> tuple[float, float]:
    """From half the least to twice the greatest."""
    return min(values) / 2, max(values) * 2


def _column(i: int, scenario: Scenario, roof: Roof) -> None:
    hour = st.number_input(
        phrase("machines.price", device=roof.name), 0.01, 1000.0, 1.0, 0.1, key=f"machines_price_{i}"
    )
    found, watts = scenario.predict(), scenario.setting.hardware.tdp_w
    speed = found.decode_tok_s
    rows = (
        ("compute", f"{three(roof.flops_per_s / 1e12)} TFLOP/s"),
        ("stream", f"{gb(roof.bytes_per_s)}/s"),
        ("reads", rate(found.prefill_tok_s)),
        ("writes", rate(speed)),
        ("joule", three(speed / watts) if speed and watts else UNKNOWN),
        ("million", price(price_of_a_million_tokens(hour, speed)) if speed else UNKNOWN),
    )
    said = "".join(f"<p><b>{figure}</b> {drawn.text(phrase(f'machines.{name}'))}</p>" for name, figure in rows)
    st.html(drawn.again(0, said))


def _scenario(model: str, machine: str) -> Scenario:
    return find_scenario(model, machine, WEIGHTS, TOKENS_READ, TOKENS_WRITTEN)


def _roof(scenario: Scenario) -> Roof:
    found, setting = scenario.predict(), scenario.setting
    flops, stream = compute_path(setting).flops_per_s, bandwidth_bytes_per_s(setting.hardware)
    name = setting.hardware.name.partition(" (")[0].removeprefix("Apple ")
    return Roof(name, flops, stream, _reading(found, flops), _writing(found, stream))


def _reading(found: Prediction, flops_per_s: float) -> tuple[float, float]:
    return found.prefill_intensity, (found.mfu or 0.0) * flops_per_s


def _writing(found: Prediction, bytes_per_s: float) -> tuple[float, float]:
    return found.decode_intensity, found.decode_intensity * (found.mbu or 0.0) * bytes_per_s
