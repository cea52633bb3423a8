"""Measured rows, read as work on a setting: what calibration fits and what the score predicts.

A row says "llama.cpp CUDA on an RTX 4090 decoded Llama-2-7b in Q4_0 at 290 tok/s". Read here, it is the time that a
number of steps took: decode is one step a token at the mean context; a prefill is its chunks; a static batch is its
prefill and then one step a token. All are sums of steps, so all are (mechanisms,) vectors of what was asked, and one
model of a step has to explain every one of them. What cannot be read so is skipped with the reason.

Conventions of the files (a column may be missing or empty): ``prompt_len`` 0 is an empty context; a decode row is at
the mean context over its answer; ``weights_GB`` scales the computed bytes of the weights to the file's true size;
``parallel`` TP or layer-split; notes say the depth, the chunk ("ubatch") and how attention ran.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim.efficiency import Metric, seconds_per_unit, serial_share
from sim.engines import Setting, bandwidth_bytes_per_s, dies, find_engine
from sim.formats import WeightFormat, find_format, find_kv_format
from sim.hardware import GIB, find_hardware
from sim.models import find_model
from sim.schedule import LLAMA_CHUNK_TOKENS
from sim.specs import HardwareSpec, ModelSpec
from sim.weights import WeightBytes, stored_bytes, weight_bytes
from sim.work import MECHANISMS, Work, work_of

FloatArray = NDArray[np.float64]

SHORT_CHAT_TOKENS = 400  # prompt and answer of a row that does not say
KV_BYTES_PER_ELEMENT = 2.0

RawRow = Mapping[str, str]


class Skipped(ValueError):
    """A row that cannot be predicted; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Observation:
    """``asked``: (mechanisms,) of all steps together; ``asked_alone``: of what a layer split could have overlapped
    with other stages but, by the serial share, does not. ``tokens`` over a time is the row's value.

    ``roofline_s``: the time at the published 16-bit rate and bandwidth, whichever is the longer for each step.
    """

    metric: Metric
    device: str
    setting: Setting
    reliability: str
    devices: int
    tokens: float
    seconds: float
    asked: FloatArray
    asked_alone: FloatArray
    roofline_s: float
    fingerprint: tuple[str, ...]
    weight: float = 1.0

    def predicted_s(self, constants: Mapping[str, float]) -> float:
        """Seconds by the time model."""
        units = seconds_per_unit(self.setting, constants)
        alone = serial_share(self.setting, constants) * float(units @ self.asked_alone) if self.asked_alone.any() else 0
        return float(units @ self.asked) + alone


def read_rows(path: Path) -> list[RawRow]:
    """The rows of a CSV file as dicts of strings. Raises ValueError with a sentence for what is none."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows: list[RawRow] = [{k: v or "" for k, v in row.items() if k} for row in csv.DictReader(file)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name} is not a CSV file in UTF-8.") from error
    if not rows:
        raise ValueError(f"{path.name} has no rows under a line of column names.")
    return rows


def observe(row: RawRow) -> Observation:
    """A row of the measured or batching files. Raises Skipped with the reason."""
    metric = _metric(row)
    setting, spec = _setting(row), _spec(row)
    weights = _weights(row, setting, spec)
    value = number(row, "value")
    if value is None or value <= 0:
        raise Skipped("no value")
    steps, tokens = _steps(row, setting, spec)
    seconds = tokens / (value * _devices_counted(row))
    if row.get("metric") == "ttft_ms":
        seconds = value / 1e3
    elif row.get("metric") == "tpot_ms":
        seconds, tokens = value / 1e3, 1.0
    return _assemble(metric, row, setting, spec, weights, steps, tokens, seconds)


def observe_kernel(row: RawRow) -> Observation:
    """A row of kernel times (products of one layer, no attention, no head). Raises Skipped."""
    device = _hardware(row)
    tokens, weights = float(row["num_tokens"]), float(row["weights_per_layer_per_gpu"])
    form = find_format(row["dtype"])
    setting = Setting(device, find_engine("server", device), form)
    flops, moved = 2 * weights * tokens, weights * form.bits / 8
    asked = {
        "weights": moved,
        "unpack": weights,
        "products": flops,
        "launches": 1.0,
    }
    return Observation(
        metric="batching",
        device=device.name,
        setting=setting,
        reliability="A",
        devices=1,
        tokens=tokens,
        seconds=float(row["gemm_ms_per_layer"]) / 1e3,
        asked=np.array([asked.get(m, 0.0) for m in MECHANISMS]),
        asked_alone=np.zeros(len(MECHANISMS)),
        roofline_s=max(moved / bandwidth_bytes_per_s(device), flops / _half_rate(device)),
        fingerprint=(),
    )


def fingerprint(row: RawRow) -> tuple[str, ...]:
    """What makes a measurement itself, wherever its row stands."""
    columns = ("hardware", "engine", "model", "weight_format", "n_devices", "batch", "prompt_len", "gen_len", "metric")
    return (*(row.get(c, "").strip().lower() for c in columns), f"{number(row, 'value') or 0:.6g}")


def number(row: RawRow, column: str) -> float | None:
    """A cell as a finite number, or None."""
    try:
        value = float(row.get(column, ""))
    except ValueError:
        return None
    return value if isfinite(value) else None


@dataclass(frozen=True, slots=True)
class _Steps:
    """``count`` steps of ``batch`` rows of ``n_tokens`` on ``context``; ``chunks`` that a layer split can overlap."""

    count: float
    batch: float
    n_tokens: float
    context: float
    chunks: float = 1.0


_METRICS: dict[str, Metric] = {
    "decode_tok_s": "decode",
    "tpot_ms": "decode",
    "prefill_tok_s": "prefill",
    "ttft_ms": "prefill",
    "throughput_tok_s": "batching",
    "decode_total_tok_s": "batching",
    "prefill_total_tok_s": "batching",
    "prefill_tok_s_at_ubatch": "batching",
}


def _metric(row: RawRow) -> Metric:
    name = row.get("metric", "")
    if name not in _METRICS:
        raise Skipped(f"metric {name or 'not given'}")
    if row.get("value_basis") == "unclear":
        raise Skipped("basis of the value unclear")
    return "batching" if row.get("curve_id") else _METRICS[name]


def _setting(row: RawRow) -> Setting:
    hardware = _hardware(row)
    engine = find_engine(row.get("engine", ""), hardware, row.get("notes", ""))
    form = _format(row, engine.family == "llama.cpp")
    devices = int(number(row, "n_devices") or 1)
    parallel = row.get("parallel", "").lower() or ("tp" if devices > 1 else "none")
    if "offload" in parallel:
        raise Skipped("weights partly in host memory")
    if devices == 1 or parallel == "none":
        return Setting(hardware, engine, form)
    if parallel == "tp":
        return Setting(hardware, engine, form, tensor_parallel=devices)
    if parallel == "layer-split":
        return Setting(hardware, engine, form, stages=devices)
    raise Skipped(f"parallelism {parallel}")


def _hardware(row: RawRow) -> HardwareSpec:
    return _device(row.get("hardware", ""))


@cache
def _device(name: str) -> HardwareSpec:
    try:
        return find_hardware(name)
    except LookupError:
        pass
    shorter, found = re.sub(r" (\d+) ?GB$", "", name), re.search(r" (\d+) ?GB$", name)
    try:  # a size that the catalog does not name, if it is the size that the catalog has
        device = find_hardware(shorter)
    except LookupError as error:
        raise Skipped("device not in the catalog") from error
    memory = device.memory_bytes or 0
    if not found or abs(int(found[1]) - memory / GIB) > 1:
        raise Skipped("device not in the catalog")
    return device


def _spec(row: RawRow) -> ModelSpec:
    return _model(row.get("model", ""))


@cache
def _model(name: str) -> ModelSpec:
    try:
        return find_model(name)
    except LookupError as error:
        raise Skipped("model not in the catalog") from error


def _format(row: RawRow, ggml: bool) -> WeightFormat:
    name = row.get("weight_format", "")
    mixed = re.match(r"(?:UD-)?(Q\d_K)(?:_X?L)$", name)
    if mixed:
        name = f"{mixed[1]}_M"  # a mix by hand, near the medium one
    elif ggml and name.upper() == "MXFP4":
        name = "MXFP4_MOE"
    try:
        return find_format(name)
    except LookupError as error:
        raise Skipped("weight format not known") from error


def _weights(row: RawRow, setting: Setting, spec: ModelSpec) -> WeightBytes:
    try:
        computed = weight_bytes(spec, setting.weights, setting.tensor_parallel)
    except ValueError as error:
        raise Skipped("the devices cannot share the model's heads") from error
    file_gb = number(row, "weights_GB")
    if not file_gb or setting.tensor_parallel > 1 or setting.engine.family != "llama.cpp":
        return computed  # other engines' sizes are of what they read, or of all ranks
    share = file_gb * 1e9 / stored_bytes(spec, computed)
    return replace(
        computed,
        layers=round(computed.layers * share),
        head=round(computed.head * share),
        experts=round(computed.experts * share),
    )


def _steps(row: RawRow, setting: Setting, spec: ModelSpec) -> tuple[list[_Steps], float]:
    """The steps of a row, and the tokens that its value counts."""
    name, batch = row["metric"], number(row, "batch")
    prompt, answer = number(row, "prompt_len"), number(row, "gen_len")
    if batch is None:
        raise Skipped("batch not a number")
    if name in ("decode_tok_s", "tpot_ms"):
        if batch != 1:
            raise Skipped("batch above 1 outside a curve")
        return [_Steps(1, 1, 1, _mean_context(prompt, answer))], 1.0
    if name == "decode_total_tok_s":
        return [_Steps(1, batch, 1, _mean_context(prompt, answer))], batch
    if not prompt:
        raise Skipped("prompt length not a number")
    if name == "prefill_tok_s_at_ubatch":
        return [_chunks(1, prompt, min(batch, prompt), 0)], prompt
    if name in ("prefill_tok_s", "ttft_ms", "prefill_total_tok_s"):
        if name != "prefill_total_tok_s" and batch != 1:
            raise Skipped("batch above 1 outside a curve")
        chunk = _chunk_tokens(row, setting)
        return [_chunks(batch, prompt, chunk, _depth(row))], batch * prompt
    if answer is None or answer < 1:
        raise Skipped("answer length not a number")
    counted = answer + (prompt if row.get("value_basis") == "in+out" else 0)
    return [
        _Steps(1, batch, prompt, 0),
        _Steps(answer - 1, batch, 1, prompt + answer / 2),
    ], batch * counted


def _mean_context(prompt: float | None, answer: float | None) -> float:
    if prompt is None and answer is None:
        return SHORT_CHAT_TOKENS / 2
    return (prompt or 0.0) + (answer or 0.0) / 2


def _chunks(batch: float, prompt: float, chunk: float, depth: float) -> _Steps:
    """A prefill in passes of ``chunk`` tokens: several short prompts share one, a long prompt takes several."""
    rows = max(1.0, min(batch, chunk // prompt))
    each = min(prompt, chunk)
    count = batch * prompt / (rows * each)
    return _Steps(count, rows, each, depth + (prompt - each) / 2, chunks=prompt / each)


def _chunk_tokens(row: RawRow, setting: Setting) -> float:
    stated = re.search(r"ubatch (\d+)", row.get("notes", ""))
    if stated:
        return float(stated[1])
    benched = re.search(r"\bpp(\d+) at depth", row.get("notes", ""))  # llama-bench runs these with as large a ubatch
    if benched:
        return float(benched[1])
    return LLAMA_CHUNK_TOKENS if setting.engine.family == "llama.cpp" else float("inf")


def _depth(row: RawRow) -> float:
    found = re.search(r"\bpp\d+ at depth (\d+)", row.get("notes", ""))
    return float(found[1]) if found else 0.0


def _devices_counted(row: RawRow) -> float:
    return (number(row, "n_devices") or 1.0) if row.get("value_basis") == "per_gpu" else 1.0


def _assemble(
    metric: Metric,
    row: RawRow,
    setting: Setting,
    spec: ModelSpec,
    weights: WeightBytes,
    steps: Iterable[_Steps],
    tokens: float,
    seconds: float,
) -> Observation:
    kv_bytes = _kv_bytes(row.get("kv_format", ""))
    asked, alone, roofline = np.zeros(len(MECHANISMS)), np.zeros(len(MECHANISMS)), 0.0
    for s in steps:
        work = work_of(
            spec,
            s.batch,
            s.n_tokens,
            s.context,
            weights,
            kv_bytes,
            tensor_parallel=setting.tensor_parallel,
            stages=setting.stages,
        )
        overlapped = _overlapped_share(setting.stages, s.chunks)
        asked = asked + s.count * overlapped * work.asked[:, 0]
        alone = alone + s.count * (1 - overlapped) * work.asked[:, 0]
        roofline += s.count * _roofline_s(work, setting)
    return Observation(
        metric,
        setting.hardware.name,
        setting,
        row.get("reliability", "") or "A",
        max(setting.tensor_parallel, setting.stages),
        tokens,
        seconds,
        asked,
        alone,
        roofline,
        fingerprint(row),
    )


def _kv_bytes(name: str) -> float:
    try:
        return find_kv_format(name) if name else KV_BYTES_PER_ELEMENT
    except LookupError as error:
        raise Skipped("KV format not known") from error


def _overlapped_share(stages: int, chunks: float) -> float:
    """Time of a pipeline of equal stages over the time one after the other: (c + s - 1) / (c s) for c chunks."""
    if stages == 1 or chunks <= 1:
        return 1.0
    return (chunks + stages - 1) / (chunks * stages)


def _roofline_s(work: Work, setting: Setting) -> float:
    memory = float(work.moved_bytes[0]) / bandwidth_bytes_per_s(setting.hardware)
    return max(memory, float(work.flops[0]) / _half_rate(setting.hardware))


def _half_rate(hardware: HardwareSpec) -> float:
    rate = hardware.fp16_flops or hardware.fp32_flops
    if not rate:
        raise Skipped("no arithmetic rate of the device known")
    return rate / dies(hardware)
