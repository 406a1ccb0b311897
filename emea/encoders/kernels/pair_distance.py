"""Manhattan distances between pairs of rows, without a tensor of size pairs x dimension."""

from typing import Any, cast

import torch
from torch import Tensor

from emea.encoders.kernels import cpu_kernels, sparse_kernels
from emea.encoders.kernels.row_marks import RowMarks, marks_of, no_marks
from emea.encoders.kernels.sparse_pattern import bags, uses_bags

ROWS_PER_CHUNK = 4096
"""Pairs per chunk on a CPU. Their rows stay in the cache."""


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
        if sparse_kernels.usable(rows):
            return sparse_kernels.pair_distances(rows, first, second)
        if cpu_kernels.usable(rows):
            return cpu_kernels.pair_distances(
                rows.contiguous(), first.contiguous(), second.contiguous()
            )
        chunks = zip(_chunks(first), _chunks(second), strict=True)
        return torch.cat([_differences(rows, a, b).abs_().sum(1) for a, b in chunks])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        rows, first, second = ctx.saved_tensors
        grad = grads[0].contiguous()
        # the order of the kernel's atomic sums is not fixed
        if sparse_kernels.usable(rows) and not torch.are_deterministic_algorithms_enabled():
            out = _marked_gradient(rows, first, second, grad, ctx.marks_of_rows)
        elif cpu_kernels.usable(rows):
            pairs = first.contiguous(), second.contiguous()
            out = cpu_kernels.pair_distances_backward(rows.contiguous(), *pairs, grad)
        else:
            out = _gradient(rows, first, second, grad)
        return out, None, None, None


def _marked_gradient(
    rows: Tensor, first: Tensor, second: Tensor, grad: Tensor, noted: RowMarks | None
) -> Tensor:
    """Return the gradient on CUDA; if its receiver wants to know, note which rows have one."""
    if noted is None:
        return sparse_kernels.pair_distances_backward(rows, first, second, grad)
    (marks,) = no_marks(len(rows), rows.device)
    out = sparse_kernels.pair_distances_backward(rows, first, second, grad, marks)
    noted.note(out, marks)
    return out


def _gradient(rows: Tensor, first: Tensor, second: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient, computed by torch's operations."""
    # pairs outside the margin have no gradient; late in training, these are most pairs
    active = grad.nonzero().squeeze(1)
    if uses_bags(rows) and 0 < len(active) <= ROWS_PER_CHUNK:
        return _gradient_by_bags(rows, first[active], second[active], grad[active])
    out = torch.zeros_like(rows)
    for chunk in _chunks(active):
        a, b = first[chunk], second[chunk]
        step = _differences(rows, a, b).sign_().mul_(grad[chunk].unsqueeze(1))
        out.index_add_(0, a, step)
        out.index_add_(0, b, step, alpha=-1)
    return out


def _chunks(ids: Tensor) -> tuple[Tensor, ...]:
    return torch.split(ids, ROWS_PER_CHUNK)


def _differences(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    if not uses_bags(rows) or not len(first):
        return rows.index_select(0, first).sub_(rows.index_select(0, second))
    pairs = torch.stack([first, second], dim=1).flatten()
    starts = torch.arange(0, len(pairs) + 1, 2)
    signs = rows.new_tensor([1.0, -1.0]).repeat(len(first))
    return bags(rows, pairs, starts, signs)


def _gradient_by_bags(rows: Tensor, first: Tensor, second: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of the distances, summed for each row in the order of the pairs."""
    signs = _differences(rows, first, second).sign_()
    ids = torch.cat([first, second])
    order = torch.argsort(ids, stable=True)
    starts = ids.new_zeros(len(rows) + 1)
    torch.cumsum(torch.bincount(ids, minlength=len(rows)), dim=0, out=starts[1:])
    weights = torch.cat([grad, -grad]).index_select(0, order)
    return bags(signs, order.remainder(len(first)), starts, weights)
