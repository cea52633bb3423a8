"""The native backend: weights from a source, packed for one precision on one device, behind the ``Backend`` seam.

Weights are read, converted and packed one at a time, so that memory peaks at the finished model plus one matrix.
int8 and int4 are weight-only. On a CPU their prefill runs bf16 products (quantised ones are slower at hundreds of rows)
and decode the quantised ones, so both copies are held. In int4 the head is 8-bit: its rounding shows most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine import kernels, kernels_cuda
from engine.backend import Progress, StepKind, check_fits
from engine.blocks import Int4Groups
from engine.cuda_graph import GraphedDecode, StaticStep
from engine.embedding import DenseRows, RowTable
from engine.families import DecoderConfig
from engine.forward import Decoder, KvCache, Layer, Projections
from engine.kernels import KernelSet, Linear
from engine.memory import return_freed_memory
from engine.precisions import LABELS, PRECISIONS, PrecisionSupport
from engine.rope import RopeTables, inverse_frequencies
from engine.weights import WeightSource, quantise_int4
from sim.costs import WeightBytes

NO_QUANTISED = "8-bit and 4-bit products are there for CPUs and CUDA only."
PREFILL_CHUNK_CPU = 256
PREFILL_CHUNK_CUDA = 4096
COMPUTE_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.bfloat16, "int4": torch.bfloat16}


class NativeBackend:
    """See ``backend.Backend``. Holds one sequence's cache and one precision's weights."""

    path: str = "native"

    def __init__(
        self,
        decoder: Decoder,
        embedding: RowTable,
        precision: str,
        device: torch.device,
        capacity_tokens: int,
        *,
        options: Mapping[str, Any],
        notes: Sequence[str] = (),
        cuda_graph: bool | None = None,
    ) -> None:
        """``cuda_graph``: None decodes by the dynamic path; else by static shapes, captured (CUDA only) or not.

        Static shapes need an ``embedding`` of numbers on the device.
        """
        self.spec = decoder.config.spec
        self.device, self.precision, self.capacity_tokens = device, precision, capacity_tokens
        self.prefill_chunk = PREFILL_CHUNK_CPU if device.type == "cpu" else PREFILL_CHUNK_CUDA
        element_bytes = decoder.dtype.itemsize
        self.kv_bytes_per_element = self.activation_bytes_per_element = float(element_bytes)
        self.kv_bytes_per_token = 2 * self.spec.n_layers * self.spec.n_kv_heads * self.spec.head_dim * element_bytes
        self.options: Mapping[str, Any] = dict(options)
        self.notes = tuple(notes)
        self._decoder, self._embedding = decoder, embedding
        self._cache = KvCache(decoder.config, capacity_tokens, decoder.dtype, device)
        self._static_decode: GraphedDecode | None = None
        if cuda_graph is not None and isinstance(embedding, DenseRows):
            with torch.inference_mode():
                step = StaticStep(decoder, self._cache, embedding.table)
                self._static_decode = GraphedDecode(step, capacity_tokens, captured=cuda_graph)

    def weight_bytes(self, kind: StepKind) -> WeightBytes:
        layers = self._decoder.layers
        products = [layer.prefill if kind == "prefill" else layer.decode for layer in layers]
        norms = [n for layer in layers for n in (layer.input_norm, layer.mlp_norm, layer.q_norm, layer.k_norm)]
        return WeightBytes(
            layers=sum(p.stored_bytes for p in products),
            head=self._decoder.head.stored_bytes,
            norms=sum(n.numel() * n.element_size() for n in (*norms, self._decoder.final_norm) if n is not None),
            embedding_row=self._embedding.row_bytes,
        )

    def compute_dtype(self, kind: StepKind) -> str:
        return "fp32" if self._decoder.dtype == torch.float32 else "bf16"

    def reset(self) -> None:
        """Nothing to clear: positions past the current one are never read."""

    @torch.inference_mode()
    def prefill(self, ids: torch.Tensor, position: int) -> torch.Tensor:
        check_fits(position, ids.numel(), self.capacity_tokens)
        return self._decoder.prefill(self._embed(ids), position, self._cache)

    @torch.inference_mode()
    def decode(self, token: int, position: int) -> torch.Tensor:
        check_fits(position, 1, self.capacity_tokens)
        if self._static_decode is not None:
            return self._static_decode(token, position)
        return self._decoder.decode(self._embed(torch.tensor([token])), position, self._cache)

    def close(self) -> None:
        """See ``Backend.close``: whoever still holds this object no longer holds its memory."""
        del self._decoder, self._embedding, self._cache, self._static_decode

    def _embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self._embedding.rows(ids, torch.float32).to(self.device)


@dataclass(frozen=True, slots=True)
class Assembly:
    """Puts a model together from a source, for one precision and one kind of device."""

    config: DecoderConfig
    source: WeightSource
    precision: str
    device: torch.device
    kernels: KernelSet

    @property
    def dtype(self) -> torch.dtype:
        return COMPUTE_TYPES[self.precision]

    @torch.inference_mode()
    def decoder(self, capacity_tokens: int, progress: Progress) -> Decoder:
        """All layers, head and rotary tables. Raises ValueError where the source lacks a tensor."""
        # The head is the largest matrix: first, while there is least beside its unpacked copy.
        head_name = "model.embed_tokens" if self.config.spec.tied else "lm_head"
        head = self._linear((head_name,), "int8" if self.precision == "int4" else self.precision)
        layers = []
        for i in range(self.config.spec.n_layers):
            layers.append(self._layer(f"model.layers.{i}."))
            return_freed_memory()
            progress(f"Packing the weights for {self.precision}", (i + 1) / self.config.spec.n_layers)
        rope = RopeTables(
            inverse_frequencies(self.config, self.source.rope_factors()), capacity_tokens, self.dtype, self.device
        )
        return Decoder(self.config, layers, self._norm("model.norm"), head, rope, self.dtype)

    def embedding(self) -> RowTable:
        """On a CPU the source's own rows; on a device numbers, because a captured step looks them up there."""
        if self.device.type == "cpu":
            return self.source.rows("model.embed_tokens.weight")
        return DenseRows(self._dense(("model.embed_tokens",), self.dtype))

    def _layer(self, prefix: str) -> Layer:
        quantised = self.precision in ("int8", "int4")
        decode = self._projections(prefix, self.precision, fused=quantised or self.kernels.fused_dense_gate_up)
        prefill = decode
        if quantised and self.kernels.dense_prefill:
            prefill = self._projections(prefix, "bf16", fused=self.kernels.fused_dense_gate_up)
        has_norms = self.config.qk_norm
        return Layer(
            input_norm=self._norm(prefix + "input_layernorm"),
            mlp_norm=self._norm(prefix + "post_attention_layernorm"),
            prefill=prefill,
            decode=decode,
            q_norm=self._norm(prefix + "self_attn.q_norm") if has_norms else None,
            k_norm=self._norm(prefix + "self_attn.k_norm") if has_norms else None,
        )

    def _projections(self, prefix: str, precision: str, *, fused: bool) -> Projections:
        gate, up = prefix + "mlp.gate_proj", prefix + "mlp.up_proj"
        return Projections(
            qkv=self._linear([f"{prefix}self_attn.{x}_proj" for x in "qkv"], precision),
            o=self._linear((prefix + "self_attn.o_proj",), precision),
            gate_up=tuple(self._linear(names, precision) for names in ([(gate, up)] if fused else [(gate,), (up,)])),
            down=self._linear((prefix + "mlp.down_proj",), precision),
        )

    def _linear(self, names: Sequence[str], precision: str) -> Linear:
        """One product from the rows of all ``names``, one after another."""
        bias = self._bias(names)
        if precision == "int4":
            return self._int4(names, bias)
        dtype = torch.float32 if precision == "int8" else COMPUTE_TYPES[precision]
        weight = self._dense(names, dtype)
        return self.kernels.int8(weight, bias) if precision == "int8" else self.kernels.dense(weight, bias)

    def _int4(self, names: Sequence[str], bias: torch.Tensor | None) -> Linear:
        stored = [self.source.int4(f"{name}.weight") for name in names]
        parts = [g or quantise_int4(self._dense((n,), torch.float32)) for g, n in zip(stored, names, strict=True)]
        groups = Int4Groups(
            torch.cat([g.codes for g in parts]),
            torch.cat([g.scale for g in parts]),
            torch.cat([g.minimum for g in parts]),
        )
        if self.kernels.int4_fits(*groups.codes.shape):
            return self.kernels.int4(groups, bias)
        return self.kernels.dense(groups.dense().to(self.dtype), bias)

    def _dense(self, names: Sequence[str], dtype: torch.dtype) -> torch.Tensor:
        parts = [self.source.dense(f"{name}.weight", dtype) for name in names]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(self.device)

    def _bias(self, names: Sequence[str]) -> torch.Tensor | None:
        stored = [f"{name}.bias" for name in names if self.source.has(f"{name}.bias")]
        if not stored:
            return None
        return torch.cat([self.source.dense(name, self.dtype) for name in stored]).to(self.device)

    def _norm(self, name: str) -> torch.Tensor:
        return self.source.dense(f"{name}.weight", torch.float32).to(self.device)


@dataclass(frozen=True, slots=True)
class NativeRecipe:
    """Our own forward over a source of weights."""

    config: DecoderConfig
    source: WeightSource

    def precisions(self, device: torch.device) -> tuple[PrecisionSupport, ...]:
        reasons: dict[str, str | None] = dict.fromkeys(PRECISIONS)
        if device.type == "cuda":
            reasons["int8"], reasons["int4"] = kernels_cuda.int8_problem(device), kernels_cuda.int4_problem(device)
        elif device.type == "cpu":
            reasons["int8"], reasons["int4"] = kernels.int8_problem(), kernels.int4_problem()
        else:
            reasons["int8"] = reasons["int4"] = NO_QUANTISED
        return tuple(PrecisionSupport(p, LABELS[p], reason is None, reason) for p, reason in reasons.items())

    def build(
        self, precision: str, device: torch.device, capacity_tokens: int, cuda_graph: bool, progress: Progress
    ) -> NativeBackend:
        on_cuda = device.type == "cuda"
        assembly = Assembly(self.config, self.source, precision, device, _products(device))
        decoder, embedding = assembly.decoder(capacity_tokens, progress), assembly.embedding()
        if on_cuda and cuda_graph:
            progress("Capturing the decode step", None)
        return NativeBackend(
            decoder,
            embedding,
            precision,
            device,
            capacity_tokens,
            options={"cuda_graph": on_cuda and cuda_graph, **_chosen(decoder)},
            cuda_graph=cuda_graph if on_cuda else None,
        )


def _products(device: torch.device) -> KernelSet:
    if device.type == "cuda":
        return kernels_cuda.cuda_kernels(device)
    return kernels.CPU_KERNELS if device.type == "cpu" else kernels.PLAIN_KERNELS


def _chosen(decoder: Decoder) -> dict[str, str]:
    """What was chosen by probing, which only a CPU needs."""
    return kernels.chosen(decoder.dtype) if decoder.final_norm.device.type == "cpu" else {}
