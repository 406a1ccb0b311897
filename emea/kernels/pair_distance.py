"""Manhattan distances between pairs of rows, without a tensor of size pairs x dimension."""

from typing import Any, cast

import torch
from torch import Tensor

from emea.kernels import choice, numba_distances
from emea.kernels.constant_product import RowMarks, marks_of, no_marks

ROWS_PER_CHUNK = 4096
"""Pairs that torch's operations compare at a time. Their rows stay in the cache of a CPU."""


def torch_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return ``|rows[first[i]] - rows[second[i]]|_1`` for each i."""
    chunks = zip(
        torch.split(first, ROWS_PER_CHUNK),
        torch.split(second, ROWS_PER_CHUNK),
        strict=True,
    )
    return torch.cat([_differences(rows, a, b).abs_().sum(1) for a, b in chunks])


def torch_gradient(rows: Tensor, first: Tensor, second: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of the rows, given that of the distances."""
    out = torch.zeros_like(rows)
    # pairs outside the margin have no gradient; late in training, these are most pairs
    for chunk in torch.split(grad.nonzero().squeeze(1), ROWS_PER_CHUNK):
        a = first[chunk]
        b = second[chunk]
        step = _differences(rows, a, b).sign_().mul_(grad[chunk].unsqueeze(1))
        out.index_add_(0, a, step)
        out.index_add_(0, b, step, alpha=-1)
    return out


def _differences(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return rows.index_select(0, first).sub_(rows.index_select(0, second))


def pair_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return ``|rows[first[i]] - rows[second[i]]|_1`` for each i, differentiable in ``rows``."""
    marks = marks_of(rows)
    distances = _PairDistances.apply(rows, first, second, marks)  # type: ignore[no-untyped-call]
    return cast(Tensor, distances)


class _PairDistances(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, first: Tensor, second: Tensor, marks: RowMarks | None
    ) -> Tensor:
        ctx.save_for_backward(rows, first, second)
        ctx.marks_of_rows = marks
        if choice.uses_triton(rows):
            from emea.kernels import triton_losses  # torch may come without Triton

            return triton_losses.pair_distances(rows, first, second)
        if choice.uses_numba_in_training(rows):
            return numba_distances.pair_distances(
                rows.contiguous(), first.contiguous(), second.contiguous()
            )
        return torch_distances(rows, first, second)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        rows, first, second = ctx.saved_tensors
        grad = grads[0].contiguous()
        if choice.uses_triton_sums(rows):
            out = _marked_gradient(rows, (first, second), grad, ctx.marks_of_rows)
        elif choice.uses_numba_in_training(rows):
            pairs = first.contiguous(), second.contiguous()
            out = numba_distances.pair_distances_backward(
                rows.contiguous(), *pairs, grad
            )
        else:
            out = torch_gradient(rows, first, second, grad)
        return out, None, None, None


def _marked_gradient(
    rows: Tensor, pairs: tuple[Tensor, Tensor], grad: Tensor, noted: RowMarks | None
) -> Tensor:
    """Return the gradient on CUDA; if its receiver wants to know, note which rows have one."""
    from emea.kernels import triton_losses

    marks = None if noted is None else no_marks(len(rows), rows.device)[0]
    out = triton_losses.pair_distances_backward(rows, *pairs, grad, marks)
    if noted is not None and marks is not None:
        noted.note(out, marks)
    return out
