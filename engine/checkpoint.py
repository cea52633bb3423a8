"""A Hugging Face checkpoint: config.json and safetensors, one file or several by an index. Never pickle, never code.

A hub id is resolved to a local directory through huggingface_hub where the network allows. Tensors are read one at a
time from the mapped files. Not covered: quantised checkpoints, adapters.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from engine.blocks import Int4Groups
from engine.embedding import DenseRows
from engine.tokenizer import read_json

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
HUB_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "*.jinja")


class CheckpointWeights:
    """A checkpoint's weights (see ``weights.WeightSource``). Raises ValueError where files are missing or broken."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, Any] = {}
        self._stack = ExitStack()
        self.size_bytes = 0
        for path in _weight_files(directory):
            try:
                file = self._stack.enter_context(safe_open(path, framework="pt"))
            except (SafetensorError, OSError) as error:
                raise ValueError(f"{path.name} of {directory.name} is missing, damaged or cut short.") from error
            self.size_bytes += path.stat().st_size
            self._files |= dict.fromkeys(file.keys(), file)

    def has(self, name: str) -> bool:
        return name in self._files

    def dense(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        return self._tensor(name).to(dtype)

    def int4(self, name: str) -> Int4Groups | None:
        return None

    def rows(self, name: str) -> DenseRows:
        return DenseRows(self._tensor(name))

    def rope_factors(self) -> torch.Tensor | None:
        return None

    def _tensor(self, name: str) -> torch.Tensor:
        if name not in self._files:
            raise ValueError(f"{self._directory.name} has no tensor {name}.")
        tensor: torch.Tensor = self._files[name].get_tensor(name)
        if not tensor.is_floating_point():
            raise ValueError(f"{self._directory.name} stores {name} quantised, in a way that is not supported.")
        return tensor


def is_checkpoint(directory: Path) -> bool:
    """Whether the directory looks like a checkpoint at all."""
    return (directory / "config.json").is_file()


def fetch(hub_id: str) -> Path:
    """Download a model of the hub, safetensors only. Raises ValueError with one sentence where that does not work."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=[*HUB_FILES, "*.safetensors", INDEX]))
    except HFValidationError as error:
        raise ValueError(f"{hub_id!r} is neither a model file, nor a directory, nor a hub id.") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(f"The model {hub_id!r} could not be fetched from the hub, and is not on this disk.") from error


def _weight_files(directory: Path) -> Iterable[Path]:
    if (directory / SINGLE).is_file():
        return [directory / SINGLE]
    files = set((read_json(directory / INDEX).get("weight_map") or {}).values())
    if not files:
        raise ValueError(f"{directory.name} has no safetensors; pickled weights are never loaded.")
    if any(not isinstance(name, str) or Path(name).name != name for name in files):
        raise ValueError(f"The index of {directory.name} names files outside of it.")
    return [directory / name for name in sorted(files)]
