"""Weight and KV formats: how many bits a weight really takes, scales included, and what arithmetic multiplies it.

"4-bit" is never 4.0 bits: every block of weights brings its scale. ggml's block layouts are counted byte by byte
(ggml-common.h); a file "Q4_K_M" is a mix in which llama.cpp keeps some tensors richer (llama-quant.cpp), so its bits
depend on the model. Formats of other engines quantise the layers' matrices and keep embedding and, mostly, head in
16 bits. ``arithmetic`` names the units that multiply in large products: llama.cpp's CUDA kernels multiply quantised
weights by activations quantised to int8, weight-only formats are dequantised first.

Not covered: mixes made by an importance matrix or by hand ("UD-..."), whose bits stand in their files only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sim.names import plain, resolve
from sim.specs import ModelSpec

Arithmetic = Literal["fp32", "bf16", "fp16", "fp8", "int8", "fp4"]

# Bytes of a block and weights in it, as ggml-common.h lays them out.
_GGML_BLOCKS: dict[str, tuple[int, int]] = {
    "Q4_0": (2 + 16, 32),
    "Q4_1": (2 + 2 + 16, 32),
    "Q5_0": (2 + 4 + 16, 32),
    "Q5_1": (2 + 2 + 4 + 16, 32),
    "Q8_0": (2 + 32, 32),
    "Q2_K": (16 + 64 + 2 + 2, 256),
    "Q3_K": (32 + 64 + 12 + 2, 256),
    "Q4_K": (2 + 2 + 12 + 128, 256),
    "Q5_K": (2 + 2 + 12 + 32 + 128, 256),
    "Q6_K": (128 + 64 + 16 + 2, 256),
    "IQ4_XS": (2 + 2 + 4 + 128, 256),
    "IQ4_NL": (2 + 16, 32),
    "MXFP4": (1 + 16, 32),
}
BLOCK_BITS = {name: 8 * size / weights for name, (size, weights) in _GGML_BLOCKS.items()}
# What llama.cpp takes instead when a row is no multiple of the 256 weights of a K block.
_FALLBACK = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """``bits``: of the layers' matrices, group scales included; ``row_bits``: of a scale for each output row.

    ``head_bits`` and ``embedding_bits``: of the LM head and the embedding table. ``experts_only``: in a mixture of
    experts all other matrices stay at ``other_bits``. ``mix``: llama.cpp's block for a role, ``rich``: the block that
    about half of the layers (``_more_bits``) take for it; for these formats ``block`` is the base.
    """

    name: str
    bits: float
    arithmetic: Arithmetic
    head_bits: float
    embedding_bits: float
    row_bits: float = 0.0
    experts_only: bool = False
    other_bits: float = 16.0
    block: str | None = None
    mix: Mapping[str, str] = field(default_factory=dict, hash=False)
    rich: Mapping[str, str] = field(default_factory=dict, hash=False)


def _plain(name: str, bits: float, arithmetic: Arithmetic) -> WeightFormat:
    return WeightFormat(name, bits, arithmetic, head_bits=bits, embedding_bits=bits)


def _ggml(
    name: str, block: str, mix: Mapping[str, str] | None = None, rich: Mapping[str, str] | None = None
) -> WeightFormat:
    bits = BLOCK_BITS[block]
    head = bits if block == "Q8_0" else BLOCK_BITS["Q6_K"]
    return WeightFormat(name, bits, "int8", head, bits, block=block, mix=mix or {}, rich=rich or {})


_VALUE_DOWN = ("value", "down", "shared_down", "expert_down")
_FORMATS = (
    _plain("fp32", 32, "fp32"),
    _plain("bf16", 16, "bf16"),
    _plain("fp16", 16, "fp16"),
    WeightFormat("fp8", 8, "fp8", head_bits=16, embedding_bits=16, row_bits=32),
    # Weight-only, a 16-bit scale a row, head too: gpt-fast. W8A8 multiplies in int8 and leaves the head alone.
    WeightFormat("int8", 8, "bf16", head_bits=8, embedding_bits=16, row_bits=16),
    WeightFormat("w8a8", 8, "int8", head_bits=16, embedding_bits=16, row_bits=32),
    # gpt-fast: a 16-bit scale and a 16-bit zero for 32 weights, head too. AWQ and GPTQ: 16 + 4 bits for 128.
    WeightFormat("int4-g32", 4 + 32 / 32, "bf16", head_bits=5, embedding_bits=16),
    WeightFormat("int4-g128", 4 + 20 / 128, "fp16", head_bits=16, embedding_bits=16),
    # OCP microscaling: 8-bit scale for 32. As gpt-oss is published, only its experts are in it.
    WeightFormat("MXFP4", BLOCK_BITS["MXFP4"], "bf16", head_bits=16, embedding_bits=16, experts_only=True),
    # The same in llama.cpp, which stores the rest in Q8_0.
    WeightFormat("MXFP4_MOE", BLOCK_BITS["MXFP4"], "int8", 8.5, 8.5, experts_only=True, other_bits=8.5),
    # 8-bit scale for 16 weights (NVIDIA Blackwell).
    WeightFormat("NVFP4", 4 + 8 / 16, "fp4", head_bits=16, embedding_bits=16),
    *(_ggml(name, name) for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q6_K", "IQ4_XS", "IQ4_NL")),
    _ggml("Q2_K", "Q2_K", {"value": "Q4_K", "output": "Q3_K", **dict.fromkeys(_VALUE_DOWN[1:], "Q3_K")}),
    _ggml("Q3_K_M", "Q3_K", {"output": "Q4_K", **dict.fromkeys(_VALUE_DOWN, "Q4_K")}),
    _ggml("Q4_K_S", "Q4_K"),
    _ggml("Q4_K_M", "Q4_K", rich=dict.fromkeys(_VALUE_DOWN, "Q6_K")),
    _ggml("Q5_K_S", "Q5_K"),
    _ggml("Q5_K_M", "Q5_K", rich=dict.fromkeys(_VALUE_DOWN, "Q6_K")),
)
FORMATS: dict[str, WeightFormat] = {f.name: f for f in _FORMATS}
_ALIASES = {
    "f32": "fp32",
    "float32": "fp32",
    "f16": "fp16",
    "float16": "fp16",
    "bfloat16": "bf16",
    "8bit": "int8",
    "4bit": "int4-g32",
    "int4": "int4-g32",
    "awq": "int4-g128",
    "gptq": "int4-g128",
    "fp4": "NVFP4",
}
_BITS_ALONE = re.compile(r"([1-9]\d?(?:\.\d+)?) ?bpw$")

# Bytes of one cached element.
KV_BYTES_PER_ELEMENT: dict[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "q8_0": BLOCK_BITS["Q8_0"] / 8,
    "q5_0": BLOCK_BITS["Q5_0"] / 8,
    "q4_0": BLOCK_BITS["Q4_0"] / 8,
}


def find_format(name: str) -> WeightFormat:
    """The weight format of a name ("q4_k_m", "INT4", "F16"), or of bits alone ("2.5bpw", as exllama states them).

    Raises LookupError with the nearest names.
    """
    if stated := _BITS_ALONE.match(name.strip().lower()):
        return WeightFormat(name, float(stated[1]), "fp16", head_bits=6, embedding_bits=16)
    return FORMATS[resolve(_ALIASES.get(plain(name), name), FORMATS, "weight format")]


def find_kv_format(name: str) -> float:
    """Bytes of one cached element. Raises LookupError with the nearest names."""
    wanted = _ALIASES.get(plain(name), name)
    return KV_BYTES_PER_ELEMENT[resolve(wanted, KV_BYTES_PER_ELEMENT, "KV cache format")]


def matrix_bits(form: WeightFormat, spec: ModelSpec, role: str, part: str, n_in: int) -> float:
    """Bits a weight of one matrix, averaged over the layers; ``n_in`` decides whether K blocks fit its rows."""
    if form.experts_only and spec.experts is not None and part != "experts":
        return 16.0 if role == "router" else form.other_bits
    if role == "router":
        return max(form.bits, 16.0)  # every format leaves the router in 16 bits or more
    if form.block is None:
        return form.bits + form.row_bits / n_in
    base = _block_bits(_fixed_block(form, spec, role), n_in)
    richer = form.rich.get(role)
    if richer is None or (role == "value" and _has_eight_experts(spec)):
        return base
    share = _share_of_richer_layers(spec.n_layers)
    return share * _block_bits(richer, n_in) + (1 - share) * base


def head_bits(form: WeightFormat, spec: ModelSpec) -> float:
    """Bits a weight of the LM head. A tied one is the embedding table, which a quantising engine stores as its head."""
    if form.block is not None and form.block != "Q8_0":
        return _block_bits("Q6_K", spec.hidden)
    return form.embedding_bits if spec.tied and form.block is None else form.head_bits


def embedding_bits(form: WeightFormat, spec: ModelSpec) -> float:
    """Bits a weight of the embedding table; of the head where they are one."""
    if spec.tied:
        return head_bits(form, spec)
    return form.embedding_bits if form.block is None else _block_bits(form.block, spec.hidden)


def _fixed_block(form: WeightFormat, spec: ModelSpec, role: str) -> str:
    assert form.block is not None
    if form.block.endswith("_K") and form.block != "Q6_K":
        if _has_eight_experts(spec) and role in ("key", "value"):
            return "Q8_0"
        if role == "value" and form.name == "Q4_K_M" and spec.n_layers == 80:
            return "Q5_K"  # a 70B: eight query heads share a value head, which is small and precious
    return form.mix.get(role, form.block)


def _has_eight_experts(spec: ModelSpec) -> bool:
    return spec.experts is not None and spec.experts.count == 8


def _block_bits(block: str, n_in: int) -> float:
    _, weights = _GGML_BLOCKS[block]
    return BLOCK_BITS[block if n_in % weights == 0 else _FALLBACK.get(block, "Q4_0")]


def _share_of_richer_layers(n_layers: int) -> float:
    """llama.cpp's ``use_more_bits``: the first and last eighth of the layers and every third between."""
    eighth = n_layers // 8
    rich = sum(i < eighth or i >= 7 * n_layers // 8 or (i - eighth) % 3 == 2 for i in range(n_layers))
    return rich / n_layers
