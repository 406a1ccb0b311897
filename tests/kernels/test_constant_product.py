"""Products with constant values against dense matrices."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.kernels.constant_product import (
    ConstantProduct,
    RowMarks,
    marks_of,
    no_marks,
)
from emea.kernels.sparse_pattern import SparsePattern


def drawn() -> tuple[ConstantProduct, torch.Tensor]:
    rng = np.random.default_rng(0)
    rows = np.sort(rng.integers(0, 5, 12))
    pattern = SparsePattern(rows, rng.integers(0, 4, 12), (5, 4))
    values = torch.from_numpy(rng.random(12))
    matrix = torch.zeros(5, 4).double()
    matrix.index_put_(
        (pattern.rows.long(), pattern.cols.long()), values, accumulate=True
    )
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


SEEN: list[Tensor | None] = []


class Doubled(torch.autograd.Function):
    """Notes which marks its gradient has."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.marks = RowMarks()
        return 2 * rows

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        SEEN.append(ctx.marks.taken(grads[0].contiguous()))
        return 2 * grads[0]


class FirstRow(torch.autograd.Function):
    """Sums the first row and marks it."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, marks: RowMarks) -> Tensor:
        ctx.shape, ctx.marks_of_rows = rows.shape, marks
        return rows[0].sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        gradient, marks = (
            torch.zeros(ctx.shape),
            no_marks(ctx.shape[0], torch.device("cpu"))[0],
        )
        gradient[0], marks[0] = grads[0], 1
        ctx.marks_of_rows.note(gradient, marks)
        return gradient, None


def first_row(rows: Tensor) -> Tensor:
    found = FirstRow.apply(rows, marks_of(rows))  # type: ignore[no-untyped-call]
    assert isinstance(found, Tensor)
    return found


def gradients(consumers: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    """Return the gradient of the sum of some functions, computed twice."""
    SEEN.clear()
    start = torch.ones(2, 3, requires_grad=True)
    rows = Doubled.apply(start)  # type: ignore[no-untyped-call]
    loss = torch.stack([consumer(rows) for consumer in consumers]).sum()
    (first,) = torch.autograd.grad(loss, start, retain_graph=True)
    (second,) = torch.autograd.grad(loss, start)
    assert torch.equal(first, second)
    assert isinstance(first, Tensor)
    return first


def test_a_gradient_comes_with_its_marks() -> None:
    assert gradients([first_row]).tolist() == [[2.0] * 3, [0.0] * 3]
    assert [marks is not None and marks.tolist() for marks in SEEN] == [[1, 0], [1, 0]]


# the gradient of the last consumer comes first, and autograd could add the others to it in place
@pytest.mark.parametrize(
    ("consumers", "expected"),
    [
        ([first_row, Tensor.sum], [4, 2]),
        ([Tensor.sum, first_row], [4, 2]),
        ([first_row, first_row], [4, 0]),
        ([lambda rows: rows.square().sum(), first_row], [10, 8]),
    ],
)
def test_a_sum_of_gradients_has_no_marks(
    consumers: Sequence[Callable[[Tensor], Tensor]], expected: list[int]
) -> None:
    assert gradients(consumers).tolist() == [[value] * 3 for value in expected]
    assert SEEN == [None, None]


def test_marks_are_taken_once() -> None:
    marks, gradient, noted = RowMarks(), torch.zeros(2), torch.ones(2)
    marks.note(gradient, noted)
    assert marks.taken(gradient) is noted
    assert marks.taken(gradient) is None
    marks.note(gradient, noted)
    assert marks.taken(torch.zeros(2)) is None
    assert marks.taken(gradient) is None


def test_marks_are_aligned() -> None:
    marks = no_marks(17, torch.device("cpu"), number=3)
    assert marks.shape == (3, 17)
    assert marks.dtype == torch.int8
    assert not marks.any()
    assert {row.data_ptr() % 16 for row in marks} == {marks.data_ptr() % 16}
