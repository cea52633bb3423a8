"""Every product against the numbers that its stored weight stands for."""

from __future__ import annotations

import pytest
import torch

from engine import kernels, kernels_cuda
from engine.kernels import Int4Linear, Int8Linear, PackedLinear, PlainLinear, relative_error, scale_and_zero
from engine.weights import quantise_int4, quantise_int8

pytestmark = pytest.mark.engine
SHAPES = [(192, 576), (576, 1536), (64, 64)]


def weight(shape: tuple[int, int]) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 0.05


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", [1, 5])
def test_int4_multiplies_what_its_codes_stand_for(shape: tuple[int, int], rows: int) -> None:
    groups = quantise_int4(weight(shape))
    assert relative_error(Int4Linear(groups), groups.dense(), rows) < 0.01


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", [1, 5])
def test_int8_multiplies_what_its_codes_stand_for(shape: tuple[int, int], rows: int) -> None:
    codes, scale = quantise_int8(weight(shape))
    assert relative_error(Int8Linear(weight(shape)), codes.float() * scale.float()[:, None], rows) < 0.01


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.bfloat16, 0.01)])
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_packed_product_equals_the_plain_one(dtype: torch.dtype, bound: float, rows: int) -> None:
    for hint in kernels.PACK_HINTS:
        dense = weight((192, 576)).to(dtype)
        assert relative_error(PackedLinear(dense, None, hint), dense, rows, dtype) < bound


def test_biases_are_added() -> None:
    bias = torch.arange(64.0)
    dense = weight((64, 64))
    x = torch.zeros(1, 64)
    for linear in (PlainLinear(dense, bias), PackedLinear(dense, bias, 256)):
        torch.testing.assert_close(linear(x)[0], bias)
    low = bias.bfloat16()
    for quantised in (Int8Linear(dense, low), Int4Linear(quantise_int4(dense), low)):
        torch.testing.assert_close(quantised(x.bfloat16())[0], low)


def test_rounding_to_four_bits_is_within_half_a_step() -> None:
    dense = weight((64, 64))
    groups = quantise_int4(dense)
    # Half a step, and what rounding scale (2^-9) and zero point to bf16 moves the ends of the range by.
    allowed = groups.scale.repeat_interleave(32, 1) * 0.5 * 1.25
    assert ((groups.dense() - dense).abs() <= allowed).all()


def test_a_row_of_zeros_stays_zero() -> None:
    zeros = torch.zeros(16, 64)
    codes, scale = quantise_int8(zeros)
    assert not (codes.float() * scale.float()[:, None]).any()
    assert not quantise_int4(zeros).dense().any()


def test_nibbles_for_cuda_decode_to_the_same_weight() -> None:
    """The part of the CUDA path that needs no device: even columns high, (code - 8) * scale + zero."""
    groups = quantise_int4(weight((64, 128)))
    nibbles = (groups.codes[:, ::2] << 4) | groups.codes[:, 1::2]
    decoded = kernels_cuda.dequantised_nibbles(nibbles, scale_and_zero(groups))
    torch.testing.assert_close(decoded.float(), groups.dense(), atol=2e-3, rtol=0.02)


def test_shapes_that_do_not_fit_are_known() -> None:
    assert kernels.int4_fits(576, 1536) and not kernels.int4_fits(576, 100) and not kernels.int4_fits(100, 64)
    assert kernels_cuda.int4_fits(576, 576) and not kernels_cuda.int4_fits(576, 48)


def test_this_build_offers_its_quantised_products() -> None:
    """The pinned PyTorch has them on x86 and ARM; a probe that fails would take precisions off the page unseen."""
    assert kernels.int4_problem() is None
    assert kernels.int8_problem() is None


def test_relative_error_sees_a_wrong_weight() -> None:
    dense = weight((64, 64))
    assert relative_error(PlainLinear(dense.flip(0)), dense, dtype=torch.float32) > 0.5
