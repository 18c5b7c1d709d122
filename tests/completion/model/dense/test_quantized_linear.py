"""Layers of 8 and 4 bits give the products of their rounded weights, which are near the weights they were made from."""

import pytest
import torch

from completion.errors import UnsupportedModelError
from completion.model.dense.held_tensors import tensors_in
from completion.model.dense.quantized_linear import GROUP, Int4Linear, Int8Linear

KINDS = (Int8Linear, Int4Linear)


@pytest.fixture
def weight():
    return torch.randn(96, 320, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 1, 96)[:, None]


def product_of(linear, width):
    """Return the matrix that the layer multiplies by.  # [out, in]."""
    return linear(torch.eye(width)).T


@pytest.mark.parametrize(("kind", "steps"), [(Int8Linear, 254), (Int4Linear, 15)])
def test_no_weight_is_off_by_more_than_half_a_step_of_its_scale(kind, steps, weight):
    linear = kind.rounded([weight], None, torch.float32, "cpu")
    if kind is Int8Linear:
        step = 2 * weight.abs().amax(1, keepdim=True) / steps
    else:
        groups = weight.unflatten(1, (-1, GROUP))
        step = ((groups.amax(2) - groups.amin(2)) / steps).repeat_interleave(GROUP, 1)
    assert ((product_of(linear, 320) - weight).abs() <= 0.501 * step).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 17, 33])
def test_a_row_of_a_product_does_not_depend_on_the_other_rows(kind, rows, weight):
    linear = kind.rounded([weight], torch.ones(96), torch.float32, "cpu")
    x = torch.randn(rows, 320, generator=torch.Generator().manual_seed(2))
    alone = torch.cat([linear(row[None]) for row in x])
    torch.testing.assert_close(linear(x), alone, rtol=0, atol=0 if kind is Int8Linear else 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_joined_matrices_and_their_bias_give_the_products_of_each(kind, weight):
    bias = torch.arange(96.0)
    joined = kind.rounded([weight[:32], weight[32:]], bias, torch.float32, "cpu")
    single = kind.rounded([weight], None, torch.float32, "cpu")
    x = torch.randn(3, 320)
    torch.testing.assert_close(joined(x), single(x) + bias)


def test_a_matrix_of_any_height_is_filled_up_for_the_product_and_gives_only_its_own_results(weight):
    odd, whole = (Int8Linear.rounded([weight[:rows]], None, torch.float32, "cpu") for rows in (91, 96))
    x = torch.randn(3, 320)
    assert len(odd.weight) == 96
    assert torch.equal(odd(x), whole(x)[:, :91])
    assert torch.equal(odd.rows(torch.tensor([90])), whole.rows(torch.tensor([90])))


def test_rows_of_a_matrix_are_its_rounded_rows(weight):
    linear = Int8Linear.rounded([weight], None, torch.float32, "cpu")
    found = linear.rows(torch.tensor([[3, 95], [0, 3]]))
    torch.testing.assert_close(found, product_of(linear, 320)[torch.tensor([[3, 95], [0, 3]])], rtol=0.01, atol=0)


@pytest.mark.parametrize("shape", [(90, 320), (96, 300)])
def test_a_shape_without_a_product_of_4_bits_is_refused(shape):
    with pytest.raises(UnsupportedModelError, match="no product of 4-bit weights"):
        Int4Linear.rounded([torch.ones(shape)], None, torch.float32, "cpu")


def test_matrices_take_the_memory_of_their_bits(weight):
    sizes = {Int8Linear: weight.numel() + 4 * 96, Int4Linear: weight.numel() * 5 / 8}
    for kind, size in sizes.items():
        rounded = kind.rounded([weight], None, torch.bfloat16, "cpu")
        assert sum(each.nbytes for each in tensors_in(rounded)) == size
