"""A run, predicted: time to the first token, time a token, the bytes behind them, what binds, and how sure that is.

The passes of ``schedule.py`` are priced by ``timing.py``. Intervals are what predictions of devices left out of the
calibration were off by, tenth to ninetieth: in four runs of five the truth lay between. What does not fit in the memory
is told by how much and gets no speed, for it would not run.

Definitions as in docs/trace.md: TTFT ends with the last sequence's first token, TPOT is the mean time of a decode pass,
MFU the prefill's useful FLOP/s over the peak of the kernels' own units, MBU the decode's bytes/s over the bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.checks import MOST_SEQUENCES, check_count, context_warning
from sim.costs import kv_bytes_per_token
from sim.efficiency import Calibration, Metric, calibration, serial_share
from sim.engines import Setting, bandwidth_bytes_per_s, compute_path
from sim.memory import MemoryNeed, memory_needed
from sim.roofline import RegimeName
from sim.schedule import Passes, chunk_tokens, prefill_passes
from sim.specs import ModelSpec
from sim.timing import StepTimes, step_times
from sim.weights import weight_bytes
from sim.work import Work, work_of

FloatArray = NDArray[np.float64]

MOST_DECODE_SAMPLES = 4096  # contexts at which a longer answer is priced


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes by part."""

    weights: float
    kv_read: float
    kv_write: float
    activations: float

    @property
    def total(self) -> float:
        return self.weights + self.kv_read + self.kv_write + self.activations


@dataclass(frozen=True, slots=True)
class Prediction:
    """Times in seconds, None where it does not fit. ``bytes_per_token`` and intensities of all ranks together.

    Rates are of all sequences together. ``warnings``: sentences about the request that do not stop it.
    """

    ttft_s: float | None
    tpot_s: float | None
    ttft_interval_s: tuple[float, float] | None
    tpot_interval_s: tuple[float, float] | None
    prefill_tok_s: float | None
    decode_tok_s: float | None
    bytes_per_token: Bytes
    kv_bytes_per_token: int
    prefill_intensity: float
    decode_intensity: float
    prefill_bound: RegimeName
    decode_bound: RegimeName
    mfu: float | None
    mbu: float | None
    memory: MemoryNeed
    devices: int
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The figures by name; None is unknown."""
        b = self.bytes_per_token
        return {
            "ttft_s": self.ttft_s,
            "tpot_s": self.tpot_s,
            "prefill_tok_s": self.prefill_tok_s,
            "decode_tok_s": self.decode_tok_s,
            "bytes_per_token": {
                "weights": b.weights,
                "kv_read": b.kv_read,
                "kv_write": b.kv_write,
                "activations": b.activations,
            },
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "intensity": {"prefill": self.prefill_intensity, "decode": self.decode_intensity},
            "bound": {"prefill": self.prefill_bound, "decode": self.decode_bound},
            "mfu": self.mfu,
            "mbu": self.mbu,
            "fits": self.memory.fits,
            "memory_needed_bytes": self.memory.needed_bytes,
            "memory_available_bytes": self.memory.available_bytes,
            "interval": {
                "ttft_s": list(self.ttft_interval_s) if self.ttft_interval_s else None,
                "tpot_s": list(self.tpot_interval_s) if self.tpot_interval_s else None,
            },
        }


def predict(
    spec: ModelSpec,
    setting: Setting,
    prompt_tokens: int,
    new_tokens: int,
    batch: int = 1,
    kv_bytes_per_element: float = 2.0,
    chunk: int | None = None,
    constants: Calibration | None = None,
) -> Prediction:
    """What ``batch`` equal requests take. ``chunk``: new tokens a prefill pass, by default the engine's.

    Raises ValueError with one sentence for counts that are no whole numbers from 1 on, heads that the ranks cannot
    share, or a device without published rates.
    """
    check_count("The answer", new_tokens)
    check_count("The batch", batch, MOST_SEQUENCES)
    check_count("The prompt", prompt_tokens)
    found = constants or calibration()
    chunk = chunk or chunk_tokens(setting, prompt_tokens)
    passes = prefill_passes(prompt_tokens, batch, chunk)
    prefill = _price(spec, setting, passes, kv_bytes_per_element, found)
    decode = _price(spec, setting, _decode_passes(prompt_tokens, new_tokens, batch), kv_bytes_per_element, found)
    memory = _memory(spec, setting, kv_bytes_per_element, prompt_tokens + new_tokens, batch, chunk)
    warning = context_warning(spec, prompt_tokens + new_tokens)
    runs = memory.fits is not False
    ttft = prefill.total_s * overlap_factor(setting, sum(p.count for p in passes), found) if runs else None
    tpot = decode.mean_s if runs else None
    ranks = setting.tensor_parallel
    return Prediction(
        ttft_s=ttft,
        tpot_s=tpot,
        ttft_interval_s=_interval(ttft, found, "prefill", setting),
        tpot_interval_s=_interval(tpot, found, "decode" if batch == 1 else "batching", setting),
        prefill_tok_s=batch * prompt_tokens / ttft if ttft else None,
        decode_tok_s=batch / tpot if tpot else None,
        bytes_per_token=decode.bytes_per_step(ranks / batch),
        kv_bytes_per_token=ranks * kv_bytes_per_token(spec, kv_bytes_per_element, ranks),
        prefill_intensity=prefill.flops / prefill.moved_bytes,
        decode_intensity=decode.flops / decode.moved_bytes,
        prefill_bound=prefill.bound,
        decode_bound=decode.bound,
        mfu=prefill.flops / ttft / compute_path(setting).flops_per_s / setting.stages if ttft else None,
        mbu=decode.moved_bytes / decode.count / tpot / bandwidth_bytes_per_s(setting.hardware) if tpot else None,
        memory=memory,
        devices=ranks * setting.stages,
        warnings=(warning,) if warning else (),
    )


@dataclass(frozen=True, slots=True)
class Priced:
    """Passes with their work and times; sums are over all of them, per rank."""

    counts: FloatArray
    work: Work
    times: StepTimes

    @property
    def count(self) -> float:
        return float(self.counts.sum())

    @property
    def total_s(self) -> float:
        return float(self.counts @ self.times.total_s)

    @property
    def mean_s(self) -> float:
        return self.total_s / self.count

    @property
    def flops(self) -> float:
        return float(self.counts @ self.work.flops)

    @property
    def moved_bytes(self) -> float:
        return float(self.counts @ self.work.moved_bytes)

    @property
    def bound(self) -> RegimeName:
        """What most of the time of all passes goes to."""
        names: tuple[RegimeName, ...] = ("compute", "memory", "overhead")
        return max(names, key=lambda name: float(self.counts @ self.times.group_s(name)))

    def bytes_per_step(self, share: float) -> Bytes:
        """Mean bytes of a pass by part, times ``share``."""
        costs = self.work.costs
        parts = (costs.weights_bytes, costs.kv_read_bytes, costs.kv_write_bytes, costs.activation_bytes)
        return Bytes(*(float(self.counts @ part) / self.count * share for part in parts))


def price(
    spec: ModelSpec,
    setting: Setting,
    passes: list[Passes],
    kv_bytes_per_element: float = 2.0,
    constants: Calibration | None = None,
) -> Priced:
    """Passes with their work and times, one rank's. Raises ValueError as ``predict`` does."""
    return _price(spec, setting, passes, kv_bytes_per_element, constants or calibration())


def _price(
    spec: ModelSpec, setting: Setting, passes: list[Passes], kv_bytes_per_element: float, constants: Calibration
) -> Priced:
    laid = np.array([(p.count, p.rows, p.n_tokens, p.context) for p in passes], dtype=np.float64)
    work = work_of(
        spec,
        laid[:, 1],
        laid[:, 2],
        laid[:, 3],
        weight_bytes(spec, setting.weights, setting.tensor_parallel),
        kv_bytes_per_element,
        tensor_parallel=setting.tensor_parallel,
        stages=setting.stages,
    )
    return Priced(laid[:, 0], work, step_times(work, setting, constants.values))


def _decode_passes(prompt_tokens: int, new_tokens: int, batch: int) -> list[Passes]:
    """One pass a token after the first; an answer of one token is priced as if it had a second."""
    last = max(1, new_tokens - 1)
    every = -(-last // MOST_DECODE_SAMPLES)
    return [Passes(min(every, last - i), batch, 1, prompt_tokens + i) for i in range(0, last, every)]


def overlap_factor(setting: Setting, chunks: int, constants: Calibration) -> float:
    """Time of a prefill in ``chunks`` passes over the sum of its passes: less than 1 where the devices of a layer split
    work on different chunks at once, but for the share that they do not overlap."""
    stages = setting.stages
    if stages == 1 or chunks == 1:
        return 1.0
    overlapped = (chunks + stages - 1) / (chunks * stages)
    return overlapped + serial_share(setting, constants.values) * (1 - overlapped)


def _interval(
    seconds: float | None, constants: Calibration, metric: Metric, setting: Setting
) -> tuple[float, float] | None:
    if seconds is None:
        return None
    spread = constants.spread(metric, setting)
    return seconds * spread.p10, seconds * spread.p90


def _memory(
    spec: ModelSpec, setting: Setting, kv_bytes_per_element: float, context: int, batch: int, chunk: int
) -> MemoryNeed:
    """One rank's need against one device; a layer split's whole need against all of its devices."""
    need = memory_needed(
        spec,
        setting.weights,
        kv_bytes_per_element,
        context,
        batch,
        setting.hardware,
        setting.tensor_parallel,
        min(chunk, context),
    )
    if setting.stages == 1 or need.available_bytes is None:
        return need
    return MemoryNeed(need.weights_bytes, need.kv_bytes, need.activation_bytes, need.available_bytes * setting.stages)
