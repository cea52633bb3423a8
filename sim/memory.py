"""Does it fit? Weights, KV cache and the activations of a step, against what a device has, in bytes.

Sizes are said in GiB (2^30), the unit of nvidia-smi; a "24 GB" card has 24 GiB, 25.77e9 bytes, and bandwidths stay in
GB (1e9). Drivers report up to 7 % less than the name says (ECC, reserved), and an engine takes some for itself: a CUDA
context is about 0.5 GiB, servers leave a tenth free. Neither is taken off here, so "fits" with a tenth or less to spare
means: try.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from sim.checks import MOST_SEQUENCES, check_count
from sim.costs import kv_cache_bytes
from sim.formats import WeightFormat
from sim.shape import ceil_share
from sim.specs import HardwareSpec, ModelSpec
from sim.weights import stored_bytes, weight_bytes

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes that one device must hold. ``available_bytes`` and ``fits`` are None where its memory is unknown."""

    weights_bytes: int
    kv_bytes: int
    activation_bytes: int
    available_bytes: int | None

    @property
    def needed_bytes(self) -> int:
        return self.weights_bytes + self.kv_bytes + self.activation_bytes

    @property
    def fits(self) -> bool | None:
        return None if self.available_bytes is None else self.needed_bytes <= self.available_bytes

    @property
    def missing_bytes(self) -> int:
        """By how much it does not fit; 0 where it does, or where nothing is known of the device."""
        return 0 if self.available_bytes is None else max(0, self.needed_bytes - self.available_bytes)

    def sentence(self) -> str:
        """The verdict in one sentence."""
        needed = f"{self.needed_bytes / GIB:.1f} GiB"
        if self.available_bytes is None:
            return f"It needs {needed}; how much memory this device has is not known."
        if self.fits:
            return f"It fits: {needed} of {self.available_bytes / GIB:.1f} GiB."
        return (
            f"It does not fit by {self.missing_bytes / GIB:.1f} GiB: it needs {needed} "
            f"and the device has {self.available_bytes / GIB:.1f} GiB."
        )


def memory_needed(
    spec: ModelSpec,
    weights: float | WeightFormat,
    kv_bytes_per_element: float,
    context_tokens: int,
    batch: int = 1,
    hardware: HardwareSpec | None = None,
    tensor_parallel: int = 1,
    chunk_tokens: int = 512,
) -> MemoryNeed:
    """What each of ``tensor_parallel`` devices holds for ``batch`` sequences of ``context_tokens`` (prompt and answer).

    ``chunk_tokens``: new tokens in the largest pass, whose widest product in 16 bit is the activations' share.
    Raises ValueError with one sentence for counts that are no whole numbers from 1 on.
    """
    check_count("The batch", batch, MOST_SEQUENCES)
    check_count("The context", context_tokens)
    check_count("A chunk", chunk_tokens)
    if not (isfinite(kv_bytes_per_element) and 0 < kv_bytes_per_element <= 8):
        raise ValueError(f"A cached element takes more than 0 and at most 8 bytes, not {kv_bytes_per_element}.")
    stored = stored_bytes(spec, weight_bytes(spec, weights, tensor_parallel))
    widest = max(2 * ceil_share(spec.intermediate, tensor_parallel), spec.hidden) + 2 * spec.hidden
    rows = max(batch, min(chunk_tokens, context_tokens))
    return MemoryNeed(
        weights_bytes=stored,
        kv_bytes=batch * kv_cache_bytes(spec, context_tokens, kv_bytes_per_element, tensor_parallel),
        activation_bytes=2 * rows * widest + 4 * batch * ceil_share(spec.vocab, tensor_parallel),
        available_bytes=hardware.memory_bytes if hardware else None,
    )


def kv_tokens_that_fit(
    spec: ModelSpec,
    weights: float | WeightFormat,
    kv_bytes_per_element: float,
    hardware: HardwareSpec,
    batch: int = 1,
    tensor_parallel: int = 1,
) -> int | None:
    """Cached tokens that each of ``batch`` sequences may have beside the weights; None for a device of unknown memory.

    0 where the weights alone do not fit. Found by halving, since windowed layers stop growing.
    """
    if hardware.memory_bytes is None:
        return None

    def fits(tokens: int) -> bool:
        need = memory_needed(spec, weights, kv_bytes_per_element, tokens, batch, hardware, tensor_parallel, 1)
        return need.fits is True

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
