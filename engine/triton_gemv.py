"""Our one Triton kernel: one row of activations times an int8 matrix with a scale a row, for CUDA.

At one row a product is a read of the weight and little else. PyTorch has no int8 weight-only product for CUDA that
reads bytes and multiplies in float, so this one does: each program owns a few rows of the weight and walks along them,
sums in float32, and scales once at the end. Imported only where a CUDA device is in use, because it needs triton.
Not covered: more than one row of activations (a dense product is right there).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_BLOCK_ROWS = 4
_BLOCK_COLUMNS = 512


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _gemv_kernel(x, weight, scale, out, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_inside = rows < n_rows
    starts = rows.to(tl.int64) * n_columns
    partial = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for first in range(0, n_columns, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        column_inside = columns < n_columns
        codes = tl.load(
            weight + starts[:, None] + columns[None, :], mask=row_inside[:, None] & column_inside[None, :], other=0
        )
        inputs = tl.load(x + columns, mask=column_inside, other=0.0).to(tl.float32)
        partial += codes.to(tl.float32) * inputs[None, :]
    scales = tl.load(scale + rows, mask=row_inside, other=0.0).to(tl.float32)
    sums = tl.sum(partial, axis=1) * scales
    tl.store(out + rows, sums.to(out.dtype.element_ty), mask=row_inside)


def int8_gemv(x: torch.Tensor, codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """``x`` (1, C) bf16, ``codes`` (R, C) int8, ``scale`` (R,) bf16, contiguous on one CUDA device: (1, R) bf16."""
    n_rows, n_columns = codes.shape
    out = torch.empty(1, n_rows, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n_rows, _BLOCK_ROWS),)
    _gemv_kernel[grid](x, codes, scale, out, n_rows, n_columns, ROWS=_BLOCK_ROWS, COLUMNS=_BLOCK_COLUMNS)
    return out
