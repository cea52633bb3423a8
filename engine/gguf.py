"""A GGUF file, mapped and not read: its metadata, and its tensors as weights under their Hugging Face names.

The header is parsed here and not by the ``gguf`` package's reader: that one builds an array object for every token and
merge and takes 1.7 s for a vocabulary of 49,000 (ours: under 0.1 s), more than half of the time a person should wait.
A test holds both against each other. Every length in the header is checked against the file before it is believed.

Covers little-endian GGUF 2 and 3, one file, tensors of 1 and 2 dimensions in the formats of ``blocks.FORMATS``.
Not covered: split files, big-endian files, mixture of experts.
"""

from __future__ import annotations

import mmap
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.blocks import FORMATS, Q4_0, Q4_1, Int4Groups, dequantise, int4_groups, row_bytes
from engine.embedding import StoredRows

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_DIMENSIONS = 4

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as the file has it. ``shape`` is (rows, columns), or (columns,) for a vector."""

    kind: int  # a key of blocks.FORMATS
    shape: tuple[int, ...]
    offset_bytes: int
    size_bytes: int


class GgufFile:
    """A mapped GGUF file. Raises ValueError with one sentence when it is not one, or is damaged or cut short."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError as error:
                raise ValueError(f"{path.name} is empty.") from error
        self.size_bytes = len(self._map)
        with warnings.catch_warnings():
            # torch warns that the map is read-only; nothing here writes to it.
            warnings.simplefilter("ignore", UserWarning)
            self._bytes = torch.from_numpy(np.frombuffer(self._map, np.uint8))
        self.metadata: dict[str, Any]
        self.tensors: dict[str, StoredTensor]
        self.metadata, self.tensors = _parse(self._map, path.name)

    def raw(self, name: str) -> torch.Tensor:
        """The stored rows of a tensor, (R, row bytes) uint8, as a view of the file (a vector is one row)."""
        tensor = self.tensors[name]
        rows = tensor.shape[0] if len(tensor.shape) > 1 else 1
        end = tensor.offset_bytes + tensor.size_bytes
        return self._bytes[tensor.offset_bytes : end].view(rows, -1)


class GgufWeights:
    """The weights of a GGUF file under Hugging Face names (see ``weights.WeightSource``).

    ``n_rotated_heads``: for the llama architecture, whose Q and K rows the converter interleaved, the head count of
    each such projection by its Hugging Face suffix; they are put back in order here. Empty for all others.
    """

    def __init__(self, file: GgufFile, n_rotated_heads: dict[str, int]) -> None:
        self._file = file
        self._heads = n_rotated_heads
        self._stored = {_hugging_face_name(name): name for name in file.tensors}

    def has(self, name: str) -> bool:
        return name in self._stored

    def dense(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        """The tensor as numbers: (R, C), or (C,) for a vector. Raises ValueError for a tensor that is not there."""
        stored = self._find(name)
        numbers = dequantise(self._file.raw(stored), self._file.tensors[stored].kind, dtype)
        order = self._row_order(name)
        return (numbers if order is None else numbers[order]).view(self._file.tensors[stored].shape)

    def int4(self, name: str) -> Int4Groups | None:
        """The tensor's own 4-bit codes, or None where the file holds another format."""
        stored = self._find(name)
        kind = self._file.tensors[stored].kind
        if kind not in (Q4_0, Q4_1):
            return None
        groups, order = int4_groups(self._file.raw(stored), kind), self._row_order(name)
        return groups if order is None else groups.reordered(order)

    def rows(self, name: str) -> StoredRows:
        """A table for row look-up that stays in the file, packed."""
        stored = self._find(name)
        return StoredRows(self._file.raw(stored), self._file.tensors[stored].kind)

    def rope_factors(self) -> torch.Tensor | None:
        """Llama 3's divisors of the rotary frequencies (head_dim / 2,), which GGUF stores as a tensor."""
        stored = "rope_freqs.weight"
        return dequantise(self._file.raw(stored), 0)[0] if stored in self._file.tensors else None

    def _find(self, name: str) -> str:
        if name not in self._stored:
            raise ValueError(f"{self._file.path.name} has no tensor {name}.")
        return self._stored[name]

    def _row_order(self, name: str) -> torch.Tensor | None:
        """Converters turned each head's rows from halves (0, D/2, …) to pairs (0, 1, …); this is the way back."""
        heads = next((n for suffix, n in self._heads.items() if f".{suffix}." in name), None)
        if heads is None:
            return None
        rows = self._file.tensors[self._stored[name]].shape[0]
        return torch.arange(rows).view(heads, -1, 2).transpose(1, 2).reshape(-1)


def _hugging_face_name(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    if stem in _OUTER_NAMES:
        return f"{_OUTER_NAMES[stem]}.{kind}"
    parts = stem.split(".")
    if len(parts) == 3 and parts[0] == "blk" and parts[2] in _LAYER_NAMES:
        return f"model.layers.{parts[1]}.{_LAYER_NAMES[parts[2]]}.{kind}"
    return name


class _Cursor:
    """A read position in the header that never passes the end of the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def text(self) -> str:
        return self.take(self.scalar("Q")).decode("utf-8", "replace")

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise struct.error("past the end")
        self.at += size
        return self.data[self.at - size : self.at]

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.scalar(_SCALARS[kind])
        item, count = self.scalar("I"), self.scalar("Q")
        if item == _STRING:
            return self._texts(count)
        dtype = np.dtype("<" + _SCALARS[item])
        return np.frombuffer(self.take(count * dtype.itemsize), dtype)

    def _texts(self, count: int) -> list[str]:
        # A loop over local names: this reads a hundred thousand tokens and merges.
        data, at, unpack, texts = self.data, self.at, struct.Struct("<Q").unpack_from, []
        for _ in range(count):
            (size,) = unpack(data, at)
            at += 8 + size
            if at > len(data):
                raise struct.error("past the end")
            texts.append(data[at - size : at].decode("utf-8", "replace"))
        self.at = at
        return texts


def _parse(data: mmap.mmap, name: str) -> tuple[dict[str, Any], dict[str, StoredTensor]]:
    if data[:4] != b"GGUF":
        raise ValueError(f"{name} is not a GGUF file.")
    cursor = _Cursor(data)
    cursor.at = 4
    try:
        version = cursor.scalar("I")
        if version not in (2, 3):
            raise ValueError(f"{name} is GGUF version {version}; this reader knows little-endian 2 and 3.")
        n_tensors, n_fields = cursor.scalar("Q"), cursor.scalar("Q")
        metadata = {cursor.text(): cursor.value(cursor.scalar("I")) for _ in range(n_fields)}
        infos = [_tensor_info(cursor) for _ in range(n_tensors)]
    except (struct.error, KeyError, OverflowError) as error:
        raise ValueError(f"{name} is damaged or cut short in its header.") from error
    alignment = int(metadata.get("general.alignment", 32)) or 32
    base = -(-cursor.at // alignment) * alignment
    tensors = {}
    for tensor_name, kind, shape, offset in infos:
        tensors[tensor_name] = _placed(name, tensor_name, kind, shape, base + offset, len(data))
    return metadata, tensors


def _tensor_info(cursor: _Cursor) -> tuple[str, int, tuple[int, ...], int]:
    name, n_dimensions = cursor.text(), cursor.scalar("I")
    if n_dimensions > _MAX_DIMENSIONS:
        raise struct.error("too many dimensions")
    shape = tuple(cursor.scalar("Q") for _ in range(n_dimensions))[::-1]  # stored fastest first
    return name, cursor.scalar("I"), shape, cursor.scalar("Q")


def _placed(file: str, name: str, kind: int, shape: tuple[int, ...], offset: int, file_bytes: int) -> StoredTensor:
    if kind not in FORMATS:
        known = ", ".join(sorted(label for label, _, _ in FORMATS.values()))
        raise ValueError(f"{file} stores {name} in a format (ggml type {kind}) that is not supported; known: {known}.")
    if not shape or len(shape) > 2 or shape[-1] % FORMATS[kind][1]:
        raise ValueError(f"{file} stores {name} in a shape that is not supported: {shape}.")
    rows = shape[0] if len(shape) > 1 else 1
    size = rows * row_bytes(kind, shape[-1])
    if offset + size > file_bytes:
        raise ValueError(f"{file} is cut short: {name} lies past its end.")
    return StoredTensor(kind, shape, offset, size)
