"""Where weights come from: one interface for GGUF and Hugging Face checkpoints, and rounding to 8 and 4 bits.

Names are Hugging Face's. Rounding is to nearest, without calibration data: enough to show what fewer bytes do.
"""

from __future__ import annotations

from typing import Protocol

import torch

from engine.blocks import BLOCK, Int4Groups
from engine.embedding import RowTable


class WeightSource(Protocol):
    """A model's tensors, read one at a time so that no second copy of the model is ever in memory."""

    def has(self, name: str) -> bool:
        """Whether the tensor is there (biases and untied heads often are not)."""
        ...

    def dense(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        """The tensor as numbers, (R, C) or (C,). Raises ValueError for a tensor that is not there."""
        ...

    def int4(self, name: str) -> Int4Groups | None:
        """The tensor's own 4-bit codes in groups of 32, or None where it is stored otherwise."""
        ...

    def rows(self, name: str) -> RowTable:
        """The tensor for row look-up."""
        ...

    def rope_factors(self) -> torch.Tensor | None:
        """Divisors of the rotary frequencies (head_dim / 2,) where the file stores them, else None."""
        ...


def quantise_int4(weight: torch.Tensor) -> Int4Groups:
    """Round (R, C) to 4 bits in groups of 32, each from its least to its greatest number (round to nearest).

    Scale, and the zero point in the middle, are rounded to bf16 first, because the products take them so: what the
    groups say is then exactly what is computed.
    """
    groups = weight.float().view(weight.shape[0], -1, BLOCK)
    minimum, maximum = groups.amin(-1), groups.amax(-1)
    scale = ((maximum - minimum) / 15).bfloat16().float()
    minimum = (minimum + 8 * scale).bfloat16().float() - 8 * scale
    codes = ((groups - minimum[..., None]) / _nonzero(scale)[..., None]).round_().clamp_(0, 15).to(torch.uint8)
    return Int4Groups(codes.view(weight.shape), scale, minimum)


def quantise_int8(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round (R, C) to int8 with one scale a row: codes (R, C) int8 and scales (R,) bf16 (symmetric, to nearest)."""
    scale = (weight.abs().amax(1).float() / 127).bfloat16()
    codes = (weight.float() / _nonzero(scale.float())[:, None]).round_().clamp_(-127, 127)
    return codes.to(torch.int8), scale


def _nonzero(scale: torch.Tensor) -> torch.Tensor:
    return torch.where(scale == 0, torch.ones_like(scale), scale)
