"""What a run should take on one very machine: the calibrated model on the ceilings that were measured there.

The rates of the catalog are a maker's; here they give way to what this machine's own products and reads reach, so a
machine that is in no catalog can be predicted too. The constants stay those of the engine family whose kernels ours are
most like, and the interval stays that of devices which the constants had not seen. Reading and writing may use
different weights (a 4-bit model that reads its prompt in 16 bit), so each phase is predicted with its own.

Not covered: clocks that fall with heat, and another process on the machine; both show as error afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from sim.engines import Backend, Engine, Setting
from sim.formats import find_format
from sim.hardware import find
from sim.predict import Prediction, predict
from sim.specs import Experts, HardwareSpec, LatentAttention, ModelSpec

_BACKENDS: dict[str, Backend] = {"cuda": "cuda", "mps": "metal", "cpu": "cpu"}


@dataclass(frozen=True, slots=True)
class Basis:
    """What is known of a machine and a built model before a run.

    ``kind``: cpu, cuda or mps. ``native``: our own kernels, not transformers'. ``graphs``: a decode step is launched as
    one recorded graph. ``*_weights``: weight formats. ``*_flops_per_s`` and ``bytes_per_s``: the measured ceilings.
    """

    spec: ModelSpec
    machine: str
    kind: str
    memory_bytes: int | None
    native: bool
    graphs: bool
    prefill_weights: str
    decode_weights: str
    prefill_flops_per_s: float
    decode_flops_per_s: float
    bytes_per_s: float
    chunk_tokens: int
    kv_bytes_per_element: float

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_json(cls, payload: Mapping[str, Any]) -> Basis:
        """``to_json`` read back. Raises ValueError where a field is absent."""
        try:
            values = {f.name: payload[f.name] for f in fields(cls)}
            return cls(**values | {"spec": _spec(values["spec"])})
        except (KeyError, TypeError) as error:
            raise ValueError(f"What a prediction rests on lacks a field ({error}).") from None

    def predict(self, prompt_tokens: int, new_tokens: int) -> Prediction:
        """Raises ValueError with one sentence for counts that are no whole numbers from 1 on."""

        def of(weights: str, flops_per_s: float) -> Prediction:
            setting = Setting(self._device(flops_per_s), self._engine(), find_format(weights))
            return predict(
                self.spec, setting, prompt_tokens, new_tokens, 1, self.kv_bytes_per_element, self.chunk_tokens
            )

        read, written = (
            of(self.prefill_weights, self.prefill_flops_per_s),
            of(self.decode_weights, self.decode_flops_per_s),
        )
        return replace(
            written,
            ttft_s=read.ttft_s,
            ttft_interval_s=read.ttft_interval_s,
            prefill_tok_s=read.prefill_tok_s,
            prefill_intensity=read.prefill_intensity,
            prefill_bound=read.prefill_bound,
            mfu=read.mfu,
        )

    def _engine(self) -> Engine:
        backend = _BACKENDS.get(self.kind, "cpu")
        if not self.native:
            return Engine("eager", backend, graphs=False)
        return Engine("llama.cpp" if backend == "cpu" else "compiled", backend, graphs=self.graphs or backend == "cpu")

    def _device(self, flops_per_s: float) -> HardwareSpec:
        """The catalog's row, where there is one, with the measured rates in it."""
        kind = "cpu" if self.kind == "cpu" else "gpu"
        bare = HardwareSpec(
            self.machine, "", kind, None, None, None, None, flops_per_s, None, None, "measured here", ""
        )
        known = bare if kind == "cpu" else find(self.machine, self.memory_bytes) or bare
        return replace(
            known,
            memory_bytes=self.memory_bytes,
            bandwidth_bytes_per_s=self.bytes_per_s,
            bf16_flops=flops_per_s,
            fp16_flops=flops_per_s,
        )


def _spec(payload: Mapping[str, Any]) -> ModelSpec:
    experts, latent = payload["experts"], payload["latent"]
    parts = {"experts": experts and Experts(**experts), "latent": latent and LatentAttention(**latent)}
    return ModelSpec(**{**payload, **parts})
