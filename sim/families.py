"""What a model family adds to the common decoder: norms, biases, an MLP without a gate.

These are under 1 % of a model's weights, but a parameter count that is to equal the published one needs them. A shape
of a family that is not listed is priced as Llama's, the commonest. The figures are those of the families' reference
implementations in Hugging Face transformers, against which a test holds the counts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """``norms``: of the hidden width, in one layer. ``norm_vectors``: 2 where a norm has a bias beside its scale.

    ``gated``: gate, up, down; otherwise up and down only. ``sinks``: one learned score a head (gpt-oss).
    """

    norms: int = 2
    norm_vectors: int = 1
    query_key_norm: bool = False
    gated: bool = True
    output_bias: bool = False
    mlp_bias: bool = False
    router_bias: bool = False
    head_bias: bool = False
    sinks: bool = False


LLAMA = Family()

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "mixtral": LLAMA,
    "qwen": LLAMA,
    "qwen2": LLAMA,
    "qwen3": Family(query_key_norm=True),
    "qwen3_moe": Family(query_key_norm=True),
    "gemma2": Family(norms=4),
    "gemma3": Family(norms=4, query_key_norm=True),
    "phi": Family(
        norms=1, norm_vectors=2, gated=False, output_bias=True, mlp_bias=True, head_bias=True
    ),  # attention and MLP side by side behind one norm
    "phi3": LLAMA,
    "gptj": Family(norms=1, norm_vectors=2, gated=False, mlp_bias=True, head_bias=True),
    "falcon": Family(norms=2, norm_vectors=2, gated=False),  # the 40B and 180B layout
    "deepseek_v3": LLAMA,
    "gpt_oss": Family(output_bias=True, mlp_bias=True, router_bias=True, sinks=True),
}


def family_of(name: str) -> Family:
    """The family of a ``ModelSpec.family``; Llama's where it is not listed."""
    return FAMILIES.get(name, LLAMA)
