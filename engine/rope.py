"""Rotary positions (RoFormer, arXiv:2104.09864): frequencies with their scaling, and tables for the forward.

The tables hold cos, and sin with its sign folded in, so that rotating is ``x * cos + roll(x, D/2) * sin``. They are
computed in float32 whatever the compute type, as transformers does. Not covered: YaRN, dynamic NTK, partial rotary.
"""

from __future__ import annotations

import math

import torch

from engine.families import DecoderConfig, RopeScaling


def inverse_frequencies(config: DecoderConfig, factors: torch.Tensor | None = None) -> torch.Tensor:
    """Radians a position, (D / 2,) float32. ``factors`` (D / 2,) are divisors that the weights' file brought along."""
    dim = config.spec.head_dim
    frequencies = 1.0 / (config.rope_theta ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
    if factors is not None:
        return frequencies / factors
    return frequencies if config.rope_scaling is None else _scaled(frequencies, config.rope_scaling)


def _scaled(frequencies: torch.Tensor, scaling: RopeScaling) -> torch.Tensor:
    """Linear: all slower by the factor. Llama 3.1: only the long waves, with a smooth passage between."""
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    wavelength = 2 * math.pi / frequencies
    turns = scaling.original_context_tokens / wavelength
    smooth = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    smooth = smooth.clamp(0.0, 1.0)
    return (1 - smooth) * frequencies / scaling.factor + smooth * frequencies


class RopeTables:
    """cos and signed sin for every position of the cache, each (C, D) of ``dtype``."""

    def __init__(
        self, frequencies: torch.Tensor, capacity_tokens: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        angles = torch.outer(torch.arange(capacity_tokens).float(), frequencies)
        sin = angles.sin()
        self.cos = torch.cat([angles.cos()] * 2, -1).to(device, dtype)
        self.sin = torch.cat([-sin, sin], -1).to(device, dtype)
        self.half = frequencies.numel()

    def rotate_(self, heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Rotate ``heads`` (…, D) in place; ``cos`` and ``sin`` broadcast to it."""
        rolled = heads.roll(self.half, -1)
        return heads.mul_(cos).addcmul_(rolled, sin)
