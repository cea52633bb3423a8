"""Decode on CUDA: a step whose shapes and addresses never change, so that it can be captured once and replayed.

At one row a GPU finishes each kernel faster than Python can launch the next. A captured graph launches the whole step
at once. For that the step takes its token and its position from two device buffers, writes the cache by ``index_copy_``
at that position, and attends over a whole bucket of the cache with what lies ahead masked off. There is one graph a
bucket, because its length is a shape; all are captured before the first run, and share one memory pool.

The step itself runs anywhere: tests hold it against the dynamic path on a CPU, uncaptured. With capture off the same
step is launched kernel by kernel: that is the overhead-bound regime that the page can show.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.forward import Decoder, KvCache

SMALLEST_BUCKET_TOKENS = 256
_WARM_UP_STEPS = 3  # libraries choose their kernels, and Triton compiles, in the first calls


def bucket_lengths(capacity_tokens: int) -> list[int]:
    """Cache lengths to attend over: doubling from 256, the last being the capacity."""
    lengths = []
    length = SMALLEST_BUCKET_TOKENS
    while length < capacity_tokens:
        lengths.append(length)
        length *= 2
    return [*lengths, capacity_tokens]


class StaticStep:
    """One decode step on static buffers. ``table`` (V, H) is the embedding, on the decoder's device."""

    def __init__(self, decoder: Decoder, cache: KvCache, table: torch.Tensor) -> None:
        self._decoder, self._cache, self._table = decoder, cache, table
        self._token = torch.zeros(1, dtype=torch.int64, device=table.device)
        self._position = torch.zeros(1, dtype=torch.int64, device=table.device)
        self._slots = torch.arange(cache.data.shape[2], device=table.device)

    def set_inputs(self, token: int, position: int) -> None:
        """Write the buffers that the next ``run``, or replay of it, reads."""
        self._token.fill_(token)
        self._position.fill_(position)

    def run(self, bucket_tokens: int) -> torch.Tensor:
        """The step over the first ``bucket_tokens`` of the cache, which the position must lie in: logits (V,)."""
        decoder, position = self._decoder, self._position
        x = self._table[self._token].float()
        cos, sin = decoder.rope.cos[position], decoder.rope.sin[position]
        mask = self._mask(bucket_tokens)
        for layer, kv in zip(decoder.layers, self._cache.data.unbind(0), strict=True):
            heads = layer.decode.qkv(decoder.norm(x, layer.input_norm)).view(decoder.n_all_heads, -1)
            decoder.place(layer, heads, cos, sin)
            kv.index_copy_(1, position, heads[decoder.config.spec.n_heads :, None])
            x = x + layer.decode.o(self._attend(heads, kv[:, :bucket_tokens], mask))
            x = x + layer.decode.mlp(decoder.norm(x, layer.mlp_norm))
        return decoder.head(decoder.norm(x, decoder.final_norm))[0].float()

    def _mask(self, bucket_tokens: int) -> torch.Tensor:
        """Additive (1, 1, 1, bucket): what lies past the position is off."""
        ahead = self._slots[:bucket_tokens] > self._position
        zeros = torch.zeros(bucket_tokens, dtype=self._decoder.dtype, device=ahead.device)
        return zeros.masked_fill(ahead, float("-inf"))[None, None, None]

    def _attend(self, heads: torch.Tensor, kv: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """A group's queries are the rows: (1, N D), no key or value expanded."""
        n_heads, kv_heads = self._decoder.config.spec.n_heads, kv.shape[0] // 2
        query = heads[:n_heads].view(1, kv_heads, n_heads // kv_heads, -1)
        rows = mask.expand(1, kv_heads, query.shape[2], -1)
        mixed = F.scaled_dot_product_attention(query, kv[None, :kv_heads], kv[None, kv_heads:], attn_mask=rows)
        return mixed.reshape(1, -1)


class GraphedDecode:
    """Runs a ``StaticStep``: replayed from a graph for each bucket when ``captured``, else launched each time."""

    def __init__(self, step: StaticStep, capacity_tokens: int, *, captured: bool) -> None:
        self._step = step
        self._buckets = bucket_lengths(capacity_tokens)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, torch.Tensor]] = {}
        if captured:
            self._capture()

    def __call__(self, token: int, position: int) -> torch.Tensor:
        """Logits (V,) float32 on the device, valid until the next call."""
        bucket = next(b for b in self._buckets if position < b)
        self._step.set_inputs(token, position)
        if bucket not in self._graphs:
            return self._step.run(bucket)
        graph, logits = self._graphs[bucket]
        graph.replay()
        return logits

    def _capture(self) -> None:
        """Warm up and capture every bucket, longest first so that its memory serves the others.

        Both write position 0 of the cache, which the next prompt overwrites; nothing counts steps, so nothing is left.
        """
        self._step.set_inputs(0, 0)
        pool = None
        for bucket in reversed(self._buckets):
            self._warm_up(bucket)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                logits = self._step.run(bucket)
            pool = graph.pool()
            self._graphs[bucket] = graph, logits

    def _warm_up(self, bucket_tokens: int) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP_STEPS):
                self._step.run(bucket_tokens)
        torch.cuda.current_stream().wait_stream(side)
