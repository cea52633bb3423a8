"""GGUF's weight formats: stored blocks to numbers, and 4-bit blocks to codes, scales and minima without rounding.

The ``gguf`` package decodes every format, in numpy and slowly; the formats that fill most files are decoded here in
torch, several times faster, and come out equal bit for bit (a test compares both). Q4_0 and Q4_1 can also stay 4-bit:
the kernels take codes, scales and minima as the file has them, so nothing is quantised twice.

Layouts are ggml's (ggml-common.h): a block of 32 is an f16 scale, for Q4_1 an f16 minimum, then codes; in the 4-bit
formats low nibbles hold elements 0 to 15 and high nibbles 16 to 31. Not covered: writing any of these formats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

BLOCK = 32
F32, F16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K, BF16 = 0, 1, 2, 3, 8, 12, 14, 30
# ggml type -> (name, elements a block, bytes a block)
FORMATS: dict[int, tuple[str, int, int]] = {
    F32: ("F32", 1, 4),
    F16: ("F16", 1, 2),
    Q4_0: ("Q4_0", 32, 18),
    Q4_1: ("Q4_1", 32, 20),
    Q8_0: ("Q8_0", 32, 34),
    Q4_K: ("Q4_K", 256, 144),
    Q6_K: ("Q6_K", 256, 210),
    BF16: ("BF16", 1, 2),
}


@dataclass(frozen=True, slots=True)
class Int4Groups:
    """A 4-bit weight in groups of 32 along its columns: ``code * scale + minimum``.

    ``codes`` (R, C) uint8 0 to 15; ``scale`` and ``minimum`` (R, C / 32) float32.
    """

    codes: torch.Tensor
    scale: torch.Tensor
    minimum: torch.Tensor

    def dense(self) -> torch.Tensor:
        """The numbers that the codes stand for, (R, C) float32."""
        groups = self.codes.view(*self.scale.shape, BLOCK).float()
        return (groups * self.scale[..., None] + self.minimum[..., None]).view_as(self.codes)

    def reordered(self, rows: torch.Tensor) -> Int4Groups:
        """The same weight with its rows in the order of ``rows`` (R,)."""
        return Int4Groups(self.codes[rows], self.scale[rows], self.minimum[rows])


def row_bytes(kind: int, columns: int) -> int:
    """Bytes that one row of ``columns`` elements takes in format ``kind``."""
    _, block, block_bytes = FORMATS[kind]
    return columns // block * block_bytes


def dequantise(raw: torch.Tensor, kind: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Rows as stored, (R, row bytes) uint8, as numbers (R, C). Equal to ``gguf.quants.dequantize`` in float32."""
    rows = raw.shape[0]
    if kind in (F32, F16, BF16):
        plain = {F32: torch.float32, F16: torch.float16, BF16: torch.bfloat16}[kind]
        return raw.contiguous().view(plain).to(dtype)
    if kind == Q8_0:
        blocks = raw.reshape(-1, 34)
        return blocks[:, 2:].view(torch.int8).float().mul_(_half(blocks, 0)).view(rows, -1).to(dtype)
    if kind in (Q4_0, Q4_1):
        return _four_bit(raw, kind).to(dtype)
    from gguf.quants import GGMLQuantizationType, dequantize

    return torch.from_numpy(np.ascontiguousarray(dequantize(raw.numpy(), GGMLQuantizationType(kind)))).to(dtype)


def int4_groups(raw: torch.Tensor, kind: int) -> Int4Groups:
    """A Q4_0 or Q4_1 tensor, (R, row bytes) uint8, as its own codes. Q4_0 has no minimum: it is -8 scales."""
    rows = raw.shape[0]
    blocks = raw.reshape(-1, FORMATS[kind][2])
    scale = _half(blocks, 0)
    minimum = _half(blocks, 2) if kind == Q4_1 else -8 * scale
    return Int4Groups(_nibbles(blocks[:, -16:]).view(rows, -1), scale.view(rows, -1), minimum.view(rows, -1))


def _four_bit(raw: torch.Tensor, kind: int) -> torch.Tensor:
    blocks = raw.reshape(-1, FORMATS[kind][2])
    codes = _nibbles(blocks[:, -16:])
    if kind == Q4_0:
        values = (codes.view(torch.int8) - 8).float().mul_(_half(blocks, 0))
    else:
        values = codes.float().mul_(_half(blocks, 0)).add_(_half(blocks, 2))
    return values.view(raw.shape[0], -1)


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    """(B, 16) bytes to (B, 32) codes: low nibbles first."""
    codes = torch.empty(packed.shape[0], BLOCK, dtype=torch.uint8)
    torch.bitwise_and(packed, 15, out=codes[:, :16])
    torch.bitwise_right_shift(packed, 4, out=codes[:, 16:])
    return codes


def _half(blocks: torch.Tensor, offset: int) -> torch.Tensor:
    """The f16 at ``offset`` of each block, (B, 1) float32."""
    return blocks[:, offset : offset + 2].contiguous().view(torch.float16).float()
