"""From a location to a model that can be built at a precision: the engine's front door.

A location is a GGUF file, a directory with config.json and safetensors, or a hub id. ``open_model`` reads headers,
configuration and tokenizer (well under a second); ``LoadedModel.build`` reads the weights. One precision is held at a
time. Whatever is not a model is refused with one sentence that says what was wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch

from engine import checkpoint, families, generic, tokenizer
from engine.backend import Backend, Progress
from engine.catalog import HUB_ID
from engine.generic import GenericRecipe
from engine.gguf import GgufFile, GgufWeights
from engine.memory import return_freed_memory
from engine.native import NativeRecipe
from engine.precisions import PrecisionSupport
from engine.tokenizer import TokenizerData
from sim.specs import ModelSpec


class Recipe(Protocol):
    """How one kind of model is built; ``LoadedModel`` holds one."""

    def precisions(self, device: torch.device) -> tuple[PrecisionSupport, ...]: ...

    def build(
        self, precision: str, device: torch.device, capacity_tokens: int, cuda_graph: bool, progress: Progress
    ) -> Backend: ...


class LoadedModel:
    """A model whose configuration and tokenizer are read. It owns the one backend that is built at a time."""

    def __init__(
        self,
        name: str,
        revision: str | None,
        spec: ModelSpec,
        text: TokenizerData,
        size_bytes: int,
        recipe: Recipe,
    ) -> None:
        self.name, self.revision, self.spec = name, revision, spec
        self.tokenizer, self.chat_template = text.tokenizer, text.chat_template
        self.bos_token, self.eos_token, self.bos_id = text.bos_token, text.eos_token, text.bos_id
        self.eos_ids, self.special_ids = text.eos_ids, text.special_ids
        self.size_bytes = size_bytes
        self._recipe = recipe
        self._backend: Backend | None = None

    def precisions(self, device: torch.device) -> tuple[PrecisionSupport, ...]:
        """All four precisions, in order of falling bytes a weight."""
        return self._recipe.precisions(device)

    def build(
        self,
        precision: str,
        device: torch.device,
        capacity_tokens: int,
        *,
        cuda_graph: bool = True,
        progress: Progress | None = None,
    ) -> Backend:
        """A backend at ``precision``. The previous one is closed first, so its tensors are never held beside these.

        Raises ValueError for a precision that is not available here.
        """
        support = next((s for s in self.precisions(device) if s.precision == precision), None)
        if support is None or not support.available:
            raise ValueError(f"{precision} is not available: {support.reason if support else 'it is not known.'}")
        self.close()
        capacity = min(capacity_tokens, self.spec.max_context_tokens)
        self._backend = self._recipe.build(precision, device, capacity, cuda_graph, progress or (lambda *_: None))
        return self._backend

    def close(self) -> None:
        """Free the backend's memory, if one was built."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None
            return_freed_memory()


def open_model(location: str | Path, progress: Progress) -> LoadedModel:
    """Read what a model is. Raises ValueError with one sentence for a location that is not a model we can run."""
    path = Path(location)
    if path.is_file():
        return _open_gguf(path, progress)
    if path.is_dir():
        return _open_directory(path, progress)
    if isinstance(location, str) and HUB_ID.fullmatch(location):
        progress(f"Fetching {location} from the hub", None)
        directory = checkpoint.fetch(location)
        return _open_directory(directory, progress, name=location, revision=directory.name)
    raise ValueError(f"There is no model at {location}: no such file or directory.")


def _open_gguf(path: Path, progress: Progress) -> LoadedModel:
    progress(f"Reading {path.name}", None)
    file = GgufFile(path)
    name = path.stem
    if "token_embd.weight" not in file.tensors:
        raise ValueError(f"{path.name} has no embedding table: it is not a whole language model.")
    config = families.from_gguf(
        file.metadata,
        name,
        tied="output.weight" not in file.tensors,
        vocab=file.tensors["token_embd.weight"].shape[0],
        qkv_bias="blk.0.attn_q.bias" in file.tensors,
    )
    interleaved = file.metadata["general.architecture"] == "llama"
    heads = {"q_proj": config.spec.n_heads, "k_proj": config.spec.n_kv_heads} if interleaved else {}
    recipe = NativeRecipe(config, GgufWeights(file, heads))
    text = tokenizer.from_gguf(file.metadata)
    return LoadedModel(name, None, config.spec, text, file.size_bytes, recipe)


def _open_directory(
    directory: Path, progress: Progress, name: str | None = None, revision: str | None = None
) -> LoadedModel:
    name = name or directory.name
    progress(f"Reading {name}", None)
    if not checkpoint.is_checkpoint(directory):
        raise ValueError(f"{name} is not a model: the directory has no config.json.")
    raw = tokenizer.read_json(directory / "config.json")
    weights = checkpoint.CheckpointWeights(directory)
    text = tokenizer.from_directory(directory, raw)
    recipe: Recipe
    try:
        config = families.from_hugging_face(raw, name, has_head=weights.has("lm_head.weight"))
        spec, recipe = config.spec, NativeRecipe(config, weights)
    except families.UnsupportedModel:
        spec = generic.spec_from_directory(directory, name)
        recipe = GenericRecipe(directory, spec)
    return LoadedModel(name, revision, spec, text, weights.size_bytes, recipe)
