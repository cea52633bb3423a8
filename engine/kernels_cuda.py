"""The Linears of a CUDA device: cuBLAS for dense weights, tinygemm for 4 bits, our Triton product for 8.

8-bit weights are held once, 4-bit ones in tinygemm's layout and as plain nibbles. At a few rows the quantised product
reads them as they are; above that a product is bound by compute, so the weight is turned into bf16 for the length of
one call and cuBLAS multiplies. Each format is compared with its dequantised result on the device before it is offered.
None of this has a CPU path; what can be tested without a device is the arithmetic of ``dequantised``.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from engine.blocks import BLOCK, Int4Groups
from engine.kernels import KernelSet, PlainLinear, relative_error, scale_and_zero
from engine.weights import quantise_int4, quantise_int8

_INNER_TILES = (8, 4, 2)  # tinygemm's layouts: columns must divide by 16 times this
_TINYGEMM_ROWS = 16  # one tile of activations; beyond it the weight would be read again
_PROBE_SHAPE = (1536, 576)  # out, in
_TOLERANCE = 2e-2


class Int8CudaLinear:
    """int8 codes and a bf16 scale a row; ``weight`` (out, in) is on the device already."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        from engine.triton_gemv import int8_gemv

        self._gemv = int8_gemv
        self._codes, self._scale = quantise_int8(weight)
        self._bias = bias
        self.stored_bytes = self._codes.numel() + 2 * self._scale.numel() + (0 if bias is None else bias.nbytes)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 1:
            return F.linear(x, self.dequantised(), self._bias)
        product = self._gemv(x.contiguous(), self._codes, self._scale)
        return product if self._bias is None else product.add_(self._bias)

    def dequantised(self) -> torch.Tensor:
        """(out, in) bf16, made for one call."""
        return self._codes.to(torch.bfloat16).mul_(self._scale[:, None])


class Int4CudaLinear:
    """tinygemm's layout for a few rows, and the plain nibbles for many."""

    def __init__(self, groups: Int4Groups, bias: torch.Tensor | None, device: torch.device) -> None:
        codes = groups.codes.to(device)
        self._nibbles = (codes[:, ::2] << 4) | codes[:, 1::2]  # tinygemm wants the even column high
        tiles = next(t for t in _INNER_TILES if codes.shape[1] % (16 * t) == 0)
        self._packed = torch.ops.aten._convert_weight_to_int4pack(self._nibbles.contiguous(), tiles)
        self._scale_zero = scale_and_zero(groups).to(device)
        self._bias = bias
        self.stored_bytes = self._nibbles.nbytes + self._scale_zero.nbytes + (0 if bias is None else bias.nbytes)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > _TINYGEMM_ROWS:
            return F.linear(x, dequantised_nibbles(self._nibbles, self._scale_zero), self._bias)
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm(x, self._packed, BLOCK, self._scale_zero)
        return product if self._bias is None else product.add_(self._bias)


def dequantised_nibbles(nibbles: torch.Tensor, scale_zero: torch.Tensor) -> torch.Tensor:
    """``nibbles`` (R, C / 2), even column high, and ``scale_zero`` (C / 32, R, 2) bf16 to weights (R, C) bf16."""
    codes = torch.stack([nibbles >> 4, nibbles & 15], -1).view(nibbles.shape[0], -1, BLOCK)
    scale, zero = scale_zero.transpose(0, 1).unbind(-1)
    return ((codes.to(torch.bfloat16) - 8) * scale[..., None] + zero[..., None]).view(nibbles.shape[0], -1)


def int4_fits(out_features: int, in_features: int) -> bool:
    """Whether tinygemm takes this shape."""
    return out_features % 8 == 0 and in_features % (16 * _INNER_TILES[-1]) == 0


def cuda_kernels(device: torch.device) -> KernelSet:
    """The products for ``device``. Gate and up are fused: fewer launches, and strided halves cost nothing there."""
    return KernelSet(
        dense=PlainLinear,
        int8=Int8CudaLinear,
        int4=lambda groups, bias: Int4CudaLinear(groups, bias, device),
        int4_fits=int4_fits,
        fused_dense_gate_up=True,
        dense_prefill=False,
    )


@functools.cache
def int8_problem(device: torch.device) -> str | None:
    """Why the 8-bit product cannot be offered on ``device``, or None where it gives what its codes stand for."""
    weight = torch.randn(_PROBE_SHAPE, generator=torch.Generator().manual_seed(0)).to(device)
    try:
        wrong = relative_error(Int8CudaLinear(weight), weight) > _TOLERANCE
    except ImportError:
        return "The 8-bit product needs triton, which is not installed."
    except (RuntimeError, AttributeError):
        return "The 8-bit product does not run on this device."
    return "The 8-bit product gives wrong results on this device." if wrong else None


@functools.cache
def int4_problem(device: torch.device) -> str | None:
    """Why the 4-bit product cannot be offered on ``device``, or None where it gives what its codes stand for."""
    groups = quantise_int4(torch.randn(_PROBE_SHAPE, generator=torch.Generator().manual_seed(0)))
    try:
        wrong = relative_error(Int4CudaLinear(groups, None, device), groups.dense().to(device)) > _TOLERANCE
    except (RuntimeError, AttributeError):
        return "The 4-bit product does not run on this device."
    return "The 4-bit product gives wrong results on this device." if wrong else None
