"""The roofline's own answers: what a device could do at best, or at a stated share of its published rates.

No calibration enters: a time here is the longer of FLOPs over peak and bytes over bandwidth (Williams, Waterman,
Patterson 2009), so that a claim can be tested against physics before it is tested against engines. What engines reach
is ``timing.py``'s matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.costs import StepCost, step_cost, weight_bytes
from sim.formats import WeightFormat, find_format
from sim.hardware import find_hardware
from sim.models import find_model
from sim.specs import HardwareSpec, ModelSpec

CACHED_BYTES = ACTIVATION_BYTES = 2.0  # 16-bit KV cache and activations


@dataclass(frozen=True, slots=True)
class Bound:
    """One model on one device in one weight format."""

    spec: ModelSpec
    hardware: HardwareSpec
    form: WeightFormat

    @property
    def bytes_per_s(self) -> float:
        """Published bandwidth. Raises ValueError where the catalog has none."""
        return _known(self.hardware, self.hardware.bandwidth_bytes_per_s, "bandwidth")

    @property
    def flops_per_s(self) -> float:
        """Published dense 16-bit rate with fp32 accumulation. Raises ValueError where the catalog has none."""
        return _known(self.hardware, self.hardware.fp16_flops, "16-bit rate")

    @property
    def ridge_flops_per_byte(self) -> float:
        """The intensity from which compute is the limit."""
        return self.flops_per_s / self.bytes_per_s

    def cost(self, n_tokens: int, context: int = 0, batch: int = 1) -> StepCost:
        """The step of ``batch`` equal rows."""
        weights = weight_bytes(self.spec, self.form)
        return step_cost(self.spec, [(n_tokens, context)] * batch, weights, CACHED_BYTES, ACTIVATION_BYTES)

    def read_bytes(self, context: int = 0, batch: int = 1) -> int:
        """Weights and cache that one decode step reads."""
        cost = self.cost(1, context, batch)
        return cost.weights_bytes + cost.kv_read_bytes

    def compute_s(self, n_tokens: int, share: float = 1.0) -> float:
        """Seconds of a prompt's FLOPs at ``share`` of the peak."""
        return self.cost(n_tokens).flops / (self.flops_per_s * share)

    def decode_s(self, context: int = 0, batch: int = 1, share: float = 1.0) -> float:
        """Seconds of a decode step's reads at ``share`` of the bandwidth."""
        return self.read_bytes(context, batch) / (self.bytes_per_s * share)

    def step_s(self, n_tokens: int, context: int = 0, batch: int = 1) -> float:
        """The bound of any step: the longer of compute and memory."""
        cost = self.cost(n_tokens, context, batch)
        return max(cost.flops / self.flops_per_s, cost.total_bytes / self.bytes_per_s)

    def is_compute_bound(self, n_tokens: int, context: int = 0, batch: int = 1) -> bool:
        """Whether the step lies right of the ridge."""
        return self.cost(n_tokens, context, batch).intensity_flops_per_byte > self.ridge_flops_per_byte


def bound(model: str, hardware: str, weights: str) -> Bound:
    """By name. Raises LookupError with the nearest names."""
    return Bound(find_model(model), find_hardware(hardware), find_format(weights))


def _known(hardware: HardwareSpec, value: float | None, what: str) -> float:
    if value is None:
        raise ValueError(f"The {what} of {hardware.name} is not known.")
    return value
