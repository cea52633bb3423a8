"""What is checked, section by section. A section yields its rows as it finds them; what is missing is a row too."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from engine import ceilings
from engine.devicecheck import counters
from engine.devicecheck.models import SPECS, TINY, recipe
from engine.devicecheck.rows import Row
from engine.devicecheck.trial import Trial, differences, run_trial
from engine.failures import sentence
from engine.machine import Machine, this_machine
from sim.costs import parameter_count
from sim.specs import ModelSpec
from telemetry.events import Peak

OPTIONAL = ("triton", "pynvml", "psutil", "transformers", "tokenizers", "safetensors", "gguf", "jinja2")
CAPACITY_TOKENS = 1024
HEADROOM = 1.25  # memory needed beside the weights, as a factor


@dataclass(frozen=True, slots=True)
class Settings:
    device: str
    tiny: bool
    out: Path


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    limit_s: float
    rows: Callable[[Settings], Iterator[Row]]


def environment(settings: Settings) -> Iterator[Row]:
    machine = this_machine(settings.device)
    yield Row("environment", "device", machine.name)
    yield Row("environment", "memory", _giga(machine.memory_bytes), "GB")
    yield Row("environment", "last-level cache", _mega(machine.last_level_cache_bytes), "MB")
    yield Row("environment", "torch", torch.__version__)
    yield Row("environment", "CUDA of torch", torch.version.cuda, note="" if torch.version.cuda else "a CPU build")
    yield Row("environment", "python", platform.python_version())
    for package in OPTIONAL:
        present = importlib.util.find_spec(package) is not None
        yield Row("environment", package, "present" if present else None, note="" if present else "not installed")


def measured_ceilings(settings: Settings) -> Iterator[Row]:
    machine = this_machine(settings.device)
    for peak in (*ceilings.published(machine), *_peaks(machine, settings)):
        scale, unit = (1e12, "TFLOP/s") if peak.quantity == "flops" else (1e9, "GB/s")
        yield Row("ceilings", f"{peak.provenance}, {peak.label}", peak.value / scale, unit)


def counter_rows(settings: Settings) -> Iterator[Row]:
    yield from counters.rows(this_machine(settings.device), settings.tiny)


def one_billion(settings: Settings) -> Iterator[Row]:
    """bf16 with and without a graph, then fewer bits: each must write faster than bf16 to be worth offering."""
    yield from _graph_against_eager("1B", settings)
    for precision in ("int8", "int4"):
        yield from _one("1B", precision, settings)


def eight_billion(settings: Settings) -> Iterator[Row]:
    yield from _graph_against_eager("8B", settings)


def seventy_billion(settings: Settings) -> Iterator[Row]:
    yield from _one("70B", "int8", settings)


SECTIONS = (
    Section("environment", 30, environment),
    Section("ceilings", 45, measured_ceilings),
    Section("counters", 45, counter_rows),
    Section("1B", 70, one_billion),
    Section("8B", 80, eight_billion),
    Section("70B", 110, seventy_billion),
)


def run_section(name: str, settings: Settings, add: Callable[[Row], None]) -> None:
    """All rows of a section; an error ends it with a row that says what happened."""
    section = next(s for s in SECTIONS if s.name == name)
    try:
        for row in section.rows(settings):
            add(row)
    except Exception as error:  # the section's edge: the others still have to run
        add(Row(name, "broken off", None, note=sentence(error)))


def _graph_against_eager(name: str, settings: Settings) -> Iterator[Row]:
    """The same model twice: a captured step must say what the launched one says, and how much faster it is."""
    eager = yield from _timed(name, "bf16", settings, graph=False)
    graph = yield from _timed(name, "bf16", settings, graph=True)
    if eager is None or graph is None:
        return
    worst, same = differences(eager, graph)
    yield Row(name, "graph against eager: greatest difference of a logit", worst)
    yield Row(name, "graph against eager: same choice", same, note="share of steps, the same tokens fed to both")
    if eager.decode_tok_s and graph.decode_tok_s:
        yield Row(name, "graph against eager: decode", graph.decode_tok_s / eager.decode_tok_s, "times")


def _one(name: str, precision: str, settings: Settings) -> Iterator[Row]:
    yield from _timed(name, precision, settings, graph=True)


def _timed(name: str, precision: str, settings: Settings, *, graph: bool) -> Generator[Row, None, Trial | None]:
    """Yields rows; returns the trial, or None where this could not be run."""
    machine = this_machine(settings.device)
    spec = TINY if settings.tiny else SPECS[name]
    label = f"{precision}, {'graph' if graph else 'eager'}"
    model = recipe(spec, machine.device)
    support = next(s for s in model.precisions(machine.device) if s.precision == precision)
    why_not = support.reason or _too_big(spec, precision, machine)
    if why_not is not None:
        yield Row(name, label, None, note=why_not)
        return None
    try:
        backend = model.build(precision, machine.device, CAPACITY_TOKENS, graph, lambda doing, share: None)
    except (RuntimeError, MemoryError, ValueError) as error:
        yield Row(name, label, None, note=sentence(error))
        return None
    path = settings.out / f"{name}-{precision}-{'graph' if graph else 'eager'}.jsonl"
    trial = run_trial(backend, machine, _peaks(machine, settings), path, tiny=settings.tiny, cuda_graph=graph)
    backend.close()
    yield from _speed_rows(name, label, trial)
    return trial


def _speed_rows(name: str, label: str, trial: Trial) -> Iterator[Row]:
    yield Row(name, f"{label}: prefill", trial.prefill_tok_s, "tok/s")
    yield Row(name, f"{label}: decode", trial.decode_tok_s, "tok/s")
    yield Row(name, f"{label}: prefill's share of the compute ceiling", trial.prefill_share)
    yield Row(name, f"{label}: decode's share of the memory ceiling", trial.decode_share)
    yield Row(name, f"{label}: clock residual", trial.residual_s, "s")


def _too_big(spec: ModelSpec, precision: str, machine: Machine) -> str | None:
    weight = {"fp32": 4.0, "bf16": 2.0, "int8": 1.0, "int4": 0.6}[precision]
    needed = parameter_count(spec) * weight * HEADROOM
    if machine.memory_bytes is None or needed <= machine.memory_bytes:
        return None
    return f"it needs some {needed / 1e9:.0f} GB and the device has {machine.memory_bytes / 1e9:.0f} GB"


def _peaks(machine: Machine, settings: Settings) -> tuple[Peak, ...]:
    """Measured by whichever section comes first, then read back."""
    spec = TINY if settings.tiny else SPECS["8B"]
    plan = ceilings.full_plan(machine.device, spec)
    if settings.tiny:
        plan = ceilings.Plan((1 << 20,), (64,), 8, 1e-3, 0.2, 0.1, 0.05)
    shapes = ceilings.own_shapes(spec)
    return (*ceilings.published(machine), *ceilings.measured(machine, shapes, plan, settings.out / "cache"))


def _giga(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else n_bytes / 1e9


def _mega(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else n_bytes / 1e6
