"""Models in real shapes with random weights, made on the device: nothing to download, and no slower for being noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.blocks import Int4Groups
from engine.embedding import DenseRows, RowTable
from engine.families import DecoderConfig
from engine.native import NativeRecipe
from sim.specs import ModelSpec

SPREAD = 0.02  # standard deviation of the weights, as models are initialised


def llama(name: str, layers: int, hidden: int, heads: int, head_dim: int, inner: int, *, tied: bool) -> ModelSpec:
    """Shapes of Llama 3.x (Meta's model cards and config.json files): 8 KV heads, 128,256 tokens."""
    return ModelSpec(
        name, "llama", layers, hidden, heads, 8, head_dim, inner, 128_256, tied, 131_072, "Llama 3 config.json"
    )


SPECS = {
    "1B": llama("random weights, Llama 3.2 1B shape", 16, 2048, 32, 64, 8192, tied=True),
    "8B": llama("random weights, Llama 3.1 8B shape", 32, 4096, 32, 128, 14_336, tied=False),
    "70B": llama("random weights, Llama 3.1 70B shape", 80, 8192, 64, 128, 28_672, tied=False),
}
TINY = ModelSpec("random weights, tiny shape", "llama", 2, 64, 4, 2, 16, 128, 512, False, 2048, "made up")


@dataclass(frozen=True, slots=True)
class RandomWeights:
    """A ``WeightSource`` of noise. The same seed gives the same model on the same device."""

    spec: ModelSpec
    device: torch.device
    generator: torch.Generator

    @classmethod
    def seeded(cls, spec: ModelSpec, device: torch.device) -> RandomWeights:
        return cls(spec, device, torch.Generator(device).manual_seed(1))

    def has(self, name: str) -> bool:
        return name.endswith(".weight") and not (self.spec.tied and name.startswith("lm_head"))

    def dense(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        shape = self._shape(name)
        if len(shape) == 1:
            return torch.ones(shape, dtype=dtype, device=self.device)
        # Drawn in bf16 whatever is asked for: a quantised build holds one weight twice as it is.
        noise = torch.empty(shape, dtype=torch.bfloat16, device=self.device)
        return noise.normal_(0.0, SPREAD, generator=self.generator).to(dtype)

    def int4(self, name: str) -> Int4Groups | None:
        return None

    def rows(self, name: str) -> RowTable:
        return DenseRows(self.dense(name, torch.bfloat16).cpu())

    def rope_factors(self) -> torch.Tensor | None:
        return None

    def _shape(self, name: str) -> tuple[int, ...]:
        spec = self.spec
        queries, keys = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "embed_tokens": (spec.vocab, spec.hidden),
            "lm_head": (spec.vocab, spec.hidden),
            "q_proj": (queries, spec.hidden),
            "k_proj": (keys, spec.hidden),
            "v_proj": (keys, spec.hidden),
            "o_proj": (spec.hidden, queries),
            "gate_proj": (spec.intermediate, spec.hidden),
            "up_proj": (spec.intermediate, spec.hidden),
            "down_proj": (spec.hidden, spec.intermediate),
        }
        return shapes.get(name.split(".")[-2], (spec.hidden,))


def recipe(spec: ModelSpec, device: torch.device) -> NativeRecipe:
    """How every model of ours is built, with random weights made on ``device``."""
    return NativeRecipe(DecoderConfig(spec, norm_eps=1e-5, rope_theta=500_000.0), RandomWeights.seeded(spec, device))
