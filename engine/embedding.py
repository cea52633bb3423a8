"""The embedding table: rows looked up by token, kept as small as the model's file has them.

A look-up reads one row a token, so nothing is gained by keeping the table as numbers: a GGUF's table stays in the
mapped file, packed, and only the rows asked for are decoded (the same bits as decoding all of it). This saves 113 MB of
memory for the embedded model in fp32.
"""

from __future__ import annotations

from typing import Protocol

import torch

from engine.blocks import dequantise


class RowTable(Protocol):
    """Rows of numbers by index."""

    row_bytes: int  # bytes that one look-up reads

    def rows(self, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """``ids`` (T,) int64 to (T, H) of ``dtype``, on the table's device."""
        ...


class StoredRows:
    """A table of packed rows, (V, row bytes) uint8 on the CPU, in one of GGUF's formats."""

    def __init__(self, raw: torch.Tensor, kind: int) -> None:
        self._raw = raw
        self._kind = kind
        self.row_bytes = raw.shape[1]

    def rows(self, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return dequantise(self._raw[ids], self._kind, dtype)


class DenseRows:
    """A table of numbers (V, H) in the type that it came in."""

    def __init__(self, table: torch.Tensor) -> None:
        self.table = table
        self.row_bytes = table.shape[1] * table.element_size()

    def rows(self, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return self.table[ids].to(dtype)
