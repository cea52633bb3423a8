"""The first line of a run's trace: what ran, on what, and what its percentages are shares of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import torch

from engine import ceilings
from engine.backend import Backend
from engine.host import cpu_name
from engine.machine import Machine
from sim.specs import ModelSpec
from telemetry.events import Device, Header, Peak
from telemetry.protocol import RunRequest

ENGINE_NAME, ENGINE_VERSION = "siliconscope", "0.1.0"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run finds when it arrives; a time that was not taken is None.

    ``cold``: the first run since this backend was built.
    """

    machine: Machine
    peaks: tuple[Peak, ...]
    model_name: str
    revision: str | None
    spec: ModelSpec
    backend: Backend
    cuda_graph: bool
    load_s: float | None
    warmup_s: float | None
    cold: bool


def make_header(
    run_id: str,
    request: RunRequest,
    setting: Setting,
    sensors: Sequence[Mapping[str, Any]],
    clock: Mapping[str, Any],
    arrived: datetime,
    title: str | None = None,
    prediction: Mapping[str, Any] | None = None,
) -> Header:
    """The header of a live run. ``arrived``: the wall clock at t = 0, its only reading in a run."""
    backend, devices = setting.backend, devices_of(setting)
    return Header(
        id=run_id,
        created=arrived.isoformat(timespec="milliseconds"),
        source="live",
        model={"name": setting.model_name, "revision": setting.revision, "spec": asdict(setting.spec)},
        precision=backend.precision,
        devices=devices,
        ceilings=ceilings.choose(
            devices[0],
            backend.compute_dtype("prefill"),
            backend.compute_dtype("decode"),
            weights_read(backend),
        ),
        engine=_engine(setting),
        kv_bytes_per_token=backend.kv_bytes_per_token,
        kv_capacity_tokens=backend.capacity_tokens,
        sampling=_sampling(request),
        sensors=tuple(sensors),
        clock=dict(clock),
        load_s=setting.load_s,
        warmup_s=setting.warmup_s,
        prediction=prediction,
        text_withheld=request.text_withheld,
        title=title,
    )


def weights_read(backend: Backend) -> int:
    """Bytes of weights that a decode step reads, but for the row of the embedding."""
    weights = backend.weight_bytes("decode")
    return weights.layers + weights.head + weights.norms


def devices_of(setting: Setting) -> tuple[Device, ...]:
    """The device that runs the model first; beside a GPU, the processor that drives it."""
    machine = setting.machine
    own = Device(
        machine.name,
        machine.device.type,
        machine.uuid,
        machine.memory_bytes,
        machine.last_level_cache_bytes,
        setting.peaks,
    )
    return (own,) if machine.device.type == "cpu" else (own, Device(cpu_name(), "cpu"))


def _engine(setting: Setting) -> dict[str, Any]:
    options = {"threads": setting.machine.threads, "cuda_graph": setting.cuda_graph}
    return {
        "name": ENGINE_NAME,
        "version": ENGINE_VERSION,
        "torch": torch.__version__,
        "path": setting.backend.path,
        "cold": setting.cold,
        "options": {**options, **setting.backend.options},
    }


def _sampling(request: RunRequest) -> dict[str, Any]:
    return {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed,
        "stop": [] if request.text_withheld else list(request.stop),
        "ignore_eos": request.ignore_eos,
    }
