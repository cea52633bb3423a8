"""Any other causal language model, through transformers with a static cache: the ``generic path``.

It is slower than the native forward and the page says which path a run took. Models come from a local directory, as
safetensors, and never bring code of their own. Figures derived from its shape treat it as a dense decoder of the Llama
family, which its note says. Precisions are fp32 and bf16: the model's own layers run as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.backend import Progress, StepKind, check_fits
from engine.native import COMPUTE_TYPES, PREFILL_CHUNK_CPU, PREFILL_CHUNK_CUDA
from engine.precisions import LABELS, PRECISIONS, PrecisionSupport
from sim.costs import WeightBytes
from sim.specs import ModelSpec

_REASON = "This model runs on the generic path, which knows fp32 and bf16 only."
_NOTE = "This model runs through transformers; its derived figures treat it as a dense decoder of the Llama family."
_EAGER_NOTE = "On the generic path no CUDA graph is captured: launching each operation is part of every step."


class GenericBackend:
    """See ``backend.Backend``. Positions only ever follow on: transformers' cache counts its own length."""

    path: str = "generic path"

    def __init__(self, model: Any, spec: ModelSpec, precision: str, device: torch.device, capacity_tokens: int) -> None:
        from transformers import StaticCache

        self.spec, self.precision, self.device, self.capacity_tokens = spec, precision, device, capacity_tokens
        self.prefill_chunk = PREFILL_CHUNK_CPU if device.type == "cpu" else PREFILL_CHUNK_CUDA
        element_bytes = COMPUTE_TYPES[precision].itemsize
        self.kv_bytes_per_element = self.activation_bytes_per_element = float(element_bytes)
        self.kv_bytes_per_token = 2 * spec.n_layers * spec.n_kv_heads * spec.head_dim * element_bytes
        self.options: Mapping[str, Any] = {"cuda_graph": False}
        self.notes: tuple[str, ...] = (_NOTE, _EAGER_NOTE) if device.type == "cuda" else (_NOTE,)
        self._model = model
        self._cache = StaticCache(config=model.config, max_cache_len=capacity_tokens)
        # transformers 5 renames the argument model by model.
        renamed = "cache" in inspect.signature(model.forward).parameters
        self._cache_argument = {"cache" if renamed else "past_key_values": self._cache}
        self._length = 0

    def weight_bytes(self, kind: StepKind) -> WeightBytes:
        embedding = self._model.get_input_embeddings().weight
        head = self._model.get_output_embeddings().weight
        matrices = {id(p): p for p in self._model.parameters() if p.dim() > 1}
        outside = {id(embedding): embedding, id(head): head}
        return WeightBytes(
            layers=sum(p.nbytes for key, p in matrices.items() if key not in outside),
            head=head.nbytes,
            norms=sum(p.nbytes for p in self._model.parameters() if p.dim() == 1),
            embedding_row=embedding.shape[1] * embedding.element_size(),
        )

    def compute_dtype(self, kind: StepKind) -> str:
        return self.precision

    @torch.inference_mode()
    def reset(self) -> None:
        """Empty the cache."""
        self._cache.reset()
        self._length = 0

    def prefill(self, ids: torch.Tensor, position: int) -> torch.Tensor:
        return self._step(ids.to(self.device), position)

    def decode(self, token: int, position: int) -> torch.Tensor:
        return self._step(torch.tensor([token], device=self.device), position)

    def close(self) -> None:
        """See ``Backend.close``."""
        del self._model, self._cache, self._cache_argument

    @torch.inference_mode()
    def _step(self, ids: torch.Tensor, position: int) -> torch.Tensor:
        check_fits(position, ids.numel(), self.capacity_tokens)
        if position == 0:
            self.reset()
        if position != self._length:
            raise ValueError(f"The generic path is at position {self._length} and cannot go on at {position}.")
        logits: torch.Tensor = self._model(ids[None], **self._cache_argument, logits_to_keep=1).logits
        self._length += ids.numel()
        return logits[0, -1].float()


@dataclass(frozen=True, slots=True)
class GenericRecipe:
    """How ``LoadedModel`` builds this path."""

    directory: Path
    spec: ModelSpec

    def precisions(self, device: torch.device) -> tuple[PrecisionSupport, ...]:
        offered = ("fp32", "bf16")
        return tuple(
            PrecisionSupport(p, LABELS[p], p in offered, None if p in offered else _REASON) for p in PRECISIONS
        )

    def build(
        self, precision: str, device: torch.device, capacity_tokens: int, cuda_graph: bool, progress: Progress
    ) -> GenericBackend:
        """Load the weights. Raises ValueError where transformers cannot."""
        from transformers import AutoModelForCausalLM

        progress(f"Loading {self.spec.name} through transformers", None)
        try:
            model = AutoModelForCausalLM.from_pretrained(
                self.directory,
                dtype=COMPUTE_TYPES[precision],
                trust_remote_code=False,
                use_safetensors=True,
                local_files_only=True,
            )
        except (OSError, KeyError, RuntimeError) as error:
            raise ValueError(f"transformers cannot load {self.spec.name}: {str(error).splitlines()[0]}") from error
        return GenericBackend(model.to(device).eval(), self.spec, precision, device, capacity_tokens)


def spec_from_directory(directory: Path, name: str) -> ModelSpec:
    """The shape as far as transformers' configuration tells it. Raises ValueError for a model it does not know."""
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    try:
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False, local_files_only=True)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{name} is of a kind that transformers does not know.") from error
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise ValueError(f"{name} is not a causal language model.")
    config = config.get_text_config()
    hidden, heads = int(config.hidden_size), int(config.num_attention_heads)
    return ModelSpec(
        name=name,
        family="other",
        n_layers=int(config.num_hidden_layers),
        hidden=hidden,
        n_heads=heads,
        n_kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(config, "head_dim", None) or hidden // heads),
        intermediate=int(getattr(config, "intermediate_size", None) or 4 * hidden),
        vocab=int(config.vocab_size),
        tied=bool(getattr(config, "tie_word_embeddings", True)),
        max_context_tokens=int(config.max_position_embeddings),
        source="config.json",
    )
