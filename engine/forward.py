"""The forward pass of a dense Llama-family decoder: one sequence, a static KV cache, prefill by chunks, decode by one.

Written out rather than taken from transformers because each operator costs some microseconds of dispatch, and at one
row those, not the matrix products, become the limit: here a decode step is about 20 calls a layer and moves no cache.
The arithmetic is that of transformers' LlamaForCausalLM and its siblings, which the tests hold it against.

Shapes: T rows, H hidden, N query heads, K key/value heads, G = N / K query heads a key/value head, D head_dim, C
capacity. Queries of one group share their keys: in decode the group is the row dimension of the attention, so keys and
values are read once and never expanded. On a CPU the residual stream stays float32 in every precision (it is small, and
rounding it sixty times a token costs accuracy); products take and give the compute type.

Not covered: several sequences at once, verification of drafts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.families import DecoderConfig
from engine.kernels import Linear
from engine.rope import RopeTables


@dataclass(frozen=True, slots=True)
class Projections:
    """One layer's products. ``gate_up`` is one product, or two where two are faster."""

    qkv: Linear
    o: Linear
    gate_up: tuple[Linear, ...]
    down: Linear

    def mlp(self, x: torch.Tensor) -> torch.Tensor:
        """SwiGLU: (T, H) to (T, H)."""
        if len(self.gate_up) == 2:
            gate, up = self.gate_up[0](x), self.gate_up[1](x)
        else:
            gate, up = self.gate_up[0](x).chunk(2, -1)
        return self.down(F.silu(gate).mul_(up))

    @property
    def stored_bytes(self) -> int:
        return sum(linear.stored_bytes for linear in (self.qkv, self.o, *self.gate_up, self.down))


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: norms (H,), per-head norms (D,) where the family has them, products for each kind of step."""

    input_norm: torch.Tensor
    mlp_norm: torch.Tensor
    prefill: Projections
    decode: Projections
    q_norm: torch.Tensor | None = None
    k_norm: torch.Tensor | None = None


class KvCache:
    """Keys and values of one sequence, allocated once: (layers, 2 K, C, D), keys first.

    Never cleared: what lies past the current length is not read. On a CPU untouched pages take no memory.
    """

    def __init__(self, config: DecoderConfig, capacity_tokens: int, dtype: torch.dtype, device: torch.device) -> None:
        spec = config.spec
        shape = (spec.n_layers, 2 * spec.n_kv_heads, capacity_tokens, spec.head_dim)
        # On a device, the static-shape step multiplies masked positions by zero: they must be numbers.
        make = torch.empty if device.type == "cpu" else torch.zeros
        self.data = make(shape, dtype=dtype, device=device)
        self.n_kv_heads = spec.n_kv_heads


class Decoder:
    """Layers, norms and head put together. ``dtype`` is the compute type of the products and of the cache."""

    def __init__(
        self,
        config: DecoderConfig,
        layers: list[Layer],
        final_norm: torch.Tensor,
        head: Linear,
        rope: RopeTables,
        dtype: torch.dtype,
    ) -> None:
        self.config, self.layers, self.final_norm, self.head, self.rope = config, layers, final_norm, head, rope
        self.dtype = dtype
        spec = config.spec
        # On a CPU in bf16 two batched products run on its bf16 units and beat the fused attention twice over.
        self._batched_products = dtype == torch.bfloat16 and final_norm.device.type == "cpu"
        self._rotated = spec.n_heads + spec.n_kv_heads  # heads of a qkv row that take a position
        self.n_all_heads = spec.n_heads + 2 * spec.n_kv_heads

    def prefill(self, x: torch.Tensor, position: int, cache: KvCache) -> torch.Tensor:
        """Embedded rows ``x`` (T, H) float32 at ``position`` onwards; writes the cache; logits (V,) of the last row."""
        count, end = x.shape[0], position + x.shape[0]
        cos, sin = self.rope.cos[position:end, None], self.rope.sin[position:end, None]
        mask = self._mask(count, position, x.device)
        for layer, kv in zip(self.layers, cache.data.unbind(0), strict=True):
            heads = layer.prefill.qkv(self.norm(x, layer.input_norm)).view(count, self.n_all_heads, -1)
            self.place(layer, heads, cos, sin)
            kv[:, position:end].copy_(heads[:, self.config.spec.n_heads :].transpose(0, 1))
            mixed = self._attend_rows(heads, kv[:, :end], mask)
            x.add_(layer.prefill.o(mixed))
            x.add_(layer.prefill.mlp(self.norm(x, layer.mlp_norm)))
        return self.head(self.norm(x[-1:], self.final_norm))[0].float()

    def decode(self, x: torch.Tensor, position: int, cache: KvCache) -> torch.Tensor:
        """One embedded row ``x`` (1, H) float32 at ``position``; writes the cache; logits (V,)."""
        cos, sin = self.rope.cos[position], self.rope.sin[position]
        n_heads, kv_heads = self.config.spec.n_heads, cache.n_kv_heads
        slots = cache.data[:, :, position].unbind(0)
        seen = cache.data[:, None, :, : position + 1]
        keys, values = seen[:, :, :kv_heads].unbind(0), seen[:, :, kv_heads:].unbind(0)
        for layer, slot, key, value in zip(self.layers, slots, keys, values, strict=True):
            heads = layer.decode.qkv(self._norm_row(x, layer.input_norm)).view(self.n_all_heads, -1)
            self.place(layer, heads, cos, sin)
            slot.copy_(heads[n_heads:])
            query = heads[:n_heads].view(1, kv_heads, n_heads // kv_heads, -1)
            mixed = F.scaled_dot_product_attention(query, key, value)
            x.add_(layer.decode.o(mixed.view(1, -1)))
            x.add_(layer.decode.mlp(self._norm_row(x, layer.mlp_norm)))
        return self.head(self._norm_row(x, self.final_norm))[0].float()

    def place(self, layer: Layer, heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
        """Norm queries and keys where the family does, and rotate them, in place: ``heads`` (…, N + 2 K, D)."""
        rotated = heads[..., : self._rotated, :]
        if layer.q_norm is not None and layer.k_norm is not None:
            n_heads, eps = self.config.spec.n_heads, self.config.norm_eps
            query, key = rotated[..., :n_heads, :], rotated[..., n_heads:, :]
            query.copy_(F.rms_norm(query.float(), query.shape[-1:], layer.q_norm, eps))
            key.copy_(F.rms_norm(key.float(), key.shape[-1:], layer.k_norm, eps))
        self.rope.rotate_(rotated, cos, sin)

    def _attend_rows(self, heads: torch.Tensor, kv: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Causal attention of T rows over the cache so far, ``kv`` (2 K, S, D): (T, N D)."""
        n_heads, kv_heads = self.config.spec.n_heads, kv.shape[0] // 2
        if self._batched_products and mask is not None:
            query = heads[:, :n_heads].transpose(0, 1).reshape(kv_heads, -1, kv.shape[-1])
            scores = torch.baddbmm(mask, query, kv[:kv_heads].transpose(1, 2), alpha=kv.shape[-1] ** -0.5)
            mixed = torch.bmm(scores.softmax(-1), kv[kv_heads:])
            return mixed.view(n_heads, heads.shape[0], -1).transpose(0, 1).reshape(heads.shape[0], -1)
        mixed = F.scaled_dot_product_attention(
            heads[:, :n_heads].transpose(0, 1)[None],
            kv[None, :kv_heads],
            kv[None, kv_heads:],
            attn_mask=mask,
            is_causal=mask is None,
            enable_gqa=n_heads != kv_heads,
        )
        return mixed[0].transpose(0, 1).reshape(heads.shape[0], -1)

    def _mask(self, count: int, position: int, device: torch.device) -> torch.Tensor | None:
        """Additive (T, S) or, for a group of query heads in the rows, (1, G T, S). None: plain causal says the same."""
        if position == 0 and not self._batched_products:
            return None
        mask = torch.full((count, position + count), float("-inf"), dtype=self.dtype, device=device)
        mask.triu_(position + 1)  # row i sees up to position + i
        if not self._batched_products:
            return mask
        return mask.repeat(self.config.spec.n_heads // self.config.spec.n_kv_heads, 1)[None]

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMS norm (Zhang and Sennrich 2019, arXiv:1910.07467) in float32, given in the compute type."""
        return F.rms_norm(x, weight.shape, weight, self.config.norm_eps).to(self.dtype)

    def _norm_row(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The same for one row on a CPU, by two calls instead of six: a dot product and a scaled product."""
        row = x[0]
        scale = (float(torch.dot(row, row)) / row.shape[0] + self.config.norm_eps) ** -0.5
        return torch.mul(x, weight).mul_(scale).to(self.dtype)
