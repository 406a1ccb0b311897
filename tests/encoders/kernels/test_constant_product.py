"""Products with constant values against dense matrices."""

import numpy as np
import torch

from emea.encoders.kernels.constant_product import ConstantProduct
from emea.encoders.kernels.sparse_pattern import SparsePattern


def drawn() -> tuple[ConstantProduct, torch.Tensor]:
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, 5, 12))
    pattern = SparsePattern(rows, rng.integers(0, 4, 12), (5, 4))
    values = torch.from_numpy(rng.random(12))
    matrix = torch.zeros(5, 4).double()
    matrix.index_put_((pattern.rows.long(), pattern.cols.long()), values, accumulate=True)
    return ConstantProduct(pattern, values), matrix


def test_product_and_gradient() -> None:
    product, matrix = drawn()
    for dtype in (torch.float64, torch.float32, torch.float64):
        dense = torch.randn(4, 3, dtype=dtype, requires_grad=True)
        weights = torch.randn(5, 3, dtype=dtype)
        found = product(dense)
        assert found.dtype == dtype
        torch.testing.assert_close(found, matrix.to(dtype) @ dense)
        (grad,) = torch.autograd.grad((found * weights).sum(), dense)
        torch.testing.assert_close(grad, matrix.to(dtype).T @ weights)


def test_values_are_converted_once() -> None:
    product, _ = drawn()
    dense = torch.randn(4, 3)
    first = product._values_like(dense)
    assert product._values_like(dense + 1) is first
    assert product._values_like(dense.double()) is not first


def test_it_has_the_bits_of_a_weighted_sum() -> None:
    product, _ = drawn()
    dense = torch.randn(4, 3, requires_grad=True)
    results = []
    for rows in (
        product(dense),
        product.pattern.weighted_sum(product.values.float(), dense),
    ):
        (grad,) = torch.autograd.grad(rows.square().sum(), dense)
        results.append((rows.detach(), grad))
    for left, right in zip(*results, strict=True):
        assert torch.equal(left, right)
