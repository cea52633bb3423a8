"""One Linear for each way to store a weight on a CPU, each probed on this machine before it is used.

``linear(x)`` takes (T, in) and gives (T, out); ``stored_bytes`` is what one call reads of weights. On a CPU PyTorch's
own ``F.linear`` leaves a factor of two or three on the table at one row: oneDNN with its weight packed beforehand is
faster at one row and at hundreds, with one copy of the weight. The packed and the quantised products are private
operators of PyTorch, so each is looked for, compared with the plain product and timed before it is chosen, and the
plain one stands behind them all. CUDA's kernels are in ``kernels_cuda``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F

from engine.blocks import BLOCK, Int4Groups
from engine.weights import quantise_int4, quantise_int8

PACK_HINTS = (256, 1)  # rows for which oneDNN lays the weight out
_PROBE_SHAPE = (1536, 576)  # out, in
_COPIES = 16
_MARGIN = 1.25  # how much slower than the best so far a preferred candidate may be


class Linear(Protocol):
    """A matrix product with a stored weight."""

    stored_bytes: int

    def __call__(self, x: torch.Tensor) -> torch.Tensor: ...


class PlainLinear:
    """``F.linear`` on a dense weight (out, in)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.weight = weight.contiguous()
        self.bias = bias
        self.stored_bytes = _bytes(self.weight, bias)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)


class PackedLinear:
    """oneDNN's product with a weight packed at load."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, hint: int) -> None:
        self.stored_bytes = _bytes(weight, bias)  # packing permutes, and pads by a few rows at most
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), hint)
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")
        return product


class Int4Linear:
    """PyTorch's 4-bit product for CPUs: bf16 in and out, groups of 32, ``(code - 8) * scale + zero``.

    The operator takes scale and zero in bf16, so a file's f16 scales lose three bits here.
    """

    def __init__(self, groups: Int4Groups, bias: torch.Tensor | None = None) -> None:
        self._weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(groups.codes.int(), 1)
        self._scale_zero = scale_and_zero(groups)
        self._bias = bias
        self.stored_bytes = groups.codes.numel() // 2 + _bytes(self._scale_zero, bias)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x, self._weight, BLOCK, self._scale_zero)
        return product if self._bias is None else product.add_(self._bias)


class Int8Linear:
    """PyTorch's 8-bit product: bf16 in and out, one scale a row."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._codes, self._scale = quantise_int8(weight)
        self._bias = bias
        self.stored_bytes = _bytes(self._codes, self._scale) + _bytes(bias)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.aten._weight_int8pack_mm(x, self._codes, self._scale)
        return product if self._bias is None else product.add_(self._bias)


@dataclass(frozen=True, slots=True)
class KernelSet:
    """The products of one kind of device, and how a model is best put together from them."""

    dense: Callable[[torch.Tensor, torch.Tensor | None], Linear]
    int8: Callable[[torch.Tensor, torch.Tensor | None], Linear]
    int4: Callable[[Int4Groups, torch.Tensor | None], Linear]
    int4_fits: Callable[[int, int], bool]  # (out, in)
    fused_dense_gate_up: bool
    dense_prefill: bool  # int8 and int4 hold a dense copy for prefill


def scale_and_zero(groups: Int4Groups) -> torch.Tensor:
    """(C / 32, R, 2) bf16, as PyTorch's 4-bit products want it."""
    zero = groups.minimum + 8 * groups.scale
    return torch.stack([groups.scale, zero], -1).transpose(0, 1).to(torch.bfloat16).contiguous()


def int4_fits(out_features: int, in_features: int) -> bool:
    """Whether the 4-bit product takes this shape."""
    return out_features % 16 == 0 and in_features % BLOCK == 0


def dense_linear(weight: torch.Tensor, bias: torch.Tensor | None = None) -> Linear:
    """The fastest dense product here for a CPU weight (out, in) of float32 or bfloat16."""
    hint = dense_packing(weight.dtype)
    return PlainLinear(weight, bias) if hint is None else PackedLinear(weight, bias, hint)


CPU_KERNELS = KernelSet(
    dense=dense_linear,
    int8=Int8Linear,
    int4=Int4Linear,
    int4_fits=int4_fits,
    fused_dense_gate_up=False,  # one product of twice the width is no faster, and its halves are strided
    dense_prefill=True,
)
PLAIN_KERNELS = replace(CPU_KERNELS, dense=PlainLinear)  # of a device for which none was chosen (MPS)


@functools.cache
def dense_packing(dtype: torch.dtype) -> int | None:
    """The packing hint whose times at 1 and at 256 rows multiply to least, or None for the plain product.

    They are tried from the least preferred on; a preferred one wins unless it is slower by a margin, so that noise
    does not decide.
    """
    weight = torch.randn(_PROBE_SHAPE, generator=torch.Generator().manual_seed(0)).to(dtype)
    best, best_score = None, _score(lambda: PlainLinear(weight.clone()), dtype)
    for hint in reversed(PACK_HINTS):
        build = functools.partial(PackedLinear, weight, None, hint)
        if _working(build, weight, dtype, tolerance=1e-2) is None:
            continue
        score = _score(build, dtype)
        if score < best_score * _MARGIN:
            best, best_score = hint, score
    return best


def chosen(dtype: torch.dtype) -> dict[str, str]:
    """For a trace's header: which dense product runs for ``dtype`` on this CPU."""
    hint = dense_packing(dtype)
    return {"dense_product": "F.linear" if hint is None else f"oneDNN, weight packed for {hint} rows"}


@functools.cache
def int4_problem() -> str | None:
    """Why the 4-bit product cannot be offered on this CPU, or None where it gives what its codes stand for."""
    groups = quantise_int4(torch.randn(_PROBE_SHAPE, generator=torch.Generator().manual_seed(0)))
    working = _working(lambda: Int4Linear(groups), groups.dense(), torch.bfloat16, tolerance=2e-2)
    return "This PyTorch has no working 4-bit product for this CPU." if working is None else None


@functools.cache
def int8_problem() -> str | None:
    """Why the 8-bit product cannot be offered on this CPU, or None where it gives what its codes stand for."""
    weight = torch.randn(_PROBE_SHAPE, generator=torch.Generator().manual_seed(0))
    working = _working(lambda: Int8Linear(weight), weight, torch.bfloat16, tolerance=2e-2)
    return "This PyTorch has no working 8-bit product for this CPU." if working is None else None


def relative_error(linear: Linear, weight: torch.Tensor, rows: int = 1, dtype: torch.dtype = torch.bfloat16) -> float:
    """Root mean square difference to the float32 product with ``weight``, over that product's own root mean square.

    ``dtype`` is what ``linear`` takes as input.
    """
    x = torch.randn(rows, weight.shape[1], generator=torch.Generator().manual_seed(1)).to(weight.device, dtype)
    expected = F.linear(x.float(), weight.float())
    return float((linear(x).float() - expected).square().mean().sqrt() / expected.square().mean().sqrt())


def _working(build: Callable[[], Linear], weight: torch.Tensor, dtype: torch.dtype, tolerance: float) -> Linear | None:
    try:
        linear = build()
        wrong = max(relative_error(linear, weight, rows, dtype) for rows in (1, 3)) > tolerance
    except (AttributeError, RuntimeError):  # the operator is not in this build, or not for this CPU
        return None
    return None if wrong else linear


def _score(build: Callable[[], Linear], dtype: torch.dtype) -> float:
    """Seconds at one row times seconds at 256. One row walks over copies that no cache holds, as decode does."""
    copies = [build() for _ in range(_COPIES)]
    return _seconds(copies, 1, dtype) * _seconds(copies[:1], 256, dtype)


def _seconds(linears: list[Linear], rows: int, dtype: torch.dtype) -> float:
    x = torch.randn(rows, _PROBE_SHAPE[1]).to(dtype)
    times = []
    for _ in range(6):
        start = time.perf_counter()
        for linear in linears:
            linear(x)
        times.append(time.perf_counter() - start)
    return min(times)


def _bytes(*tensors: torch.Tensor | None) -> int:
    return sum(t.numel() * t.element_size() for t in tensors if t is not None)
