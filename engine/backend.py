"""The seam between a model that can run and everything that runs it: one interface, whatever lies behind.

Two kinds stand behind it: ``native`` (our own forward, for the Llama family) and ``generic path`` (transformers, for
any other causal LM). A backend holds one sequence: prompts go in by ``prefill``, chunk after chunk, then ``decode``
goes one token at a time. Timing, sampling, stopping and text are the runner's business; a backend only computes logits,
and says which bytes it reads to do so. It is not thread-safe: one engine thread owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import torch

from sim.costs import WeightBytes
from sim.specs import ModelSpec

StepKind = Literal["prefill", "decode"]
Progress = Callable[[str, float | None], None]  # a sentence, and a share or None


class Backend(Protocol):
    """A loaded model at one precision on one device, with a static KV cache of ``capacity_tokens``.

    Attributes are fixed for the life of the backend, ``notes`` included: sentences for the person about what was probed
    and what fell back. ``options`` goes into a trace's header (kernels chosen, ``cuda_graph``).
    """

    spec: ModelSpec
    path: str  # "native" | "generic path"
    device: torch.device
    precision: str  # fp32 | bf16 | int8 | int4
    capacity_tokens: int
    prefill_chunk: int  # the most tokens that one prefill call should carry
    kv_bytes_per_token: int
    kv_bytes_per_element: float
    activation_bytes_per_element: float
    options: Mapping[str, Any]
    notes: tuple[str, ...]

    def weight_bytes(self, kind: StepKind) -> WeightBytes:
        """Bytes of the weights as stored that one step of this kind really reads."""
        ...

    def compute_dtype(self, kind: StepKind) -> str:
        """``fp32`` or ``bf16``: the arithmetic of this kind of step, hence the compute ceiling that applies."""
        ...

    def reset(self) -> None:
        """Forget the sequence. The next call is ``prefill`` at position 0."""
        ...

    def prefill(self, ids: torch.Tensor, position: int) -> torch.Tensor:
        """Run ``ids`` (T,) int64 on the CPU, T >= 1, at ``position`` onwards.

        Returns the last position's logits (V,) float32 on the device, valid until the next call. Raises ValueError when
        ``position + T`` passes the capacity.
        """
        ...

    def decode(self, token: int, position: int) -> torch.Tensor:
        """Run one token at ``position``. Returns logits (V,) float32 on the device, valid until the next call.

        Raises ValueError when ``position`` is past the capacity.
        """
        ...

    def close(self) -> None:
        """Free weights and cache. Nothing but reading the plain attributes may follow."""
        ...


def check_fits(position: int, count: int, capacity_tokens: int) -> None:
    """Raise the ValueError of :class:`Backend` when ``count`` tokens at ``position`` do not fit the cache."""
    if count < 1:
        raise ValueError("A step needs at least one token.")
    if position < 0 or position + count > capacity_tokens:
        raise ValueError(
            f"{position + count} tokens do not fit the cache of {capacity_tokens}: shorten the prompt or the answer."
        )
