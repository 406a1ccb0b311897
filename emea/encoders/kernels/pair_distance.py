"""Manhattan distances between pairs of rows, and the margin loss of these distances.

No tensor of size pairs x dimension is needed.
"""

from typing import Any, cast

import torch
from torch import Tensor

from emea.encoders.kernels import cpu_kernels
from emea.encoders.kernels.constant_product import RowMarks, marks_of, no_marks
from emea.runtime import kernels

ROWS_PER_CHUNK = 4096
"""Pairs that torch's operations compare at a time. Their rows stay in the cache of a CPU."""


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
        if kernels.uses_triton(rows):
            from emea.encoders.kernels import triton_losses  # torch may come without Triton

            return triton_losses.pair_distances(rows, first, second)
        if cpu_kernels.usable(rows):
            return cpu_kernels.pair_distances(
                rows.contiguous(), first.contiguous(), second.contiguous()
            )
        chunks = zip(
            torch.split(first, ROWS_PER_CHUNK), torch.split(second, ROWS_PER_CHUNK), strict=True
        )
        return torch.cat([_differences(rows, a, b).abs_().sum(1) for a, b in chunks])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        rows, first, second = ctx.saved_tensors
        grad = grads[0].contiguous()
        if _sums_atomically(rows):
            out = _marked_gradient(rows, first, second, grad, ctx.marks_of_rows)
        elif cpu_kernels.usable(rows):
            pairs = first.contiguous(), second.contiguous()
            out = cpu_kernels.pair_distances_backward(rows.contiguous(), *pairs, grad)
        else:
            out = _gradient(rows, first, second, grad)
        return out, None, None, None


def _sums_atomically(values: Tensor) -> bool:
    """Return whether Triton kernels may add up this tensor: the order of their sums varies."""
    return kernels.uses_triton(values) and not torch.are_deterministic_algorithms_enabled()


def _marked_gradient(
    rows: Tensor, first: Tensor, second: Tensor, grad: Tensor, noted: RowMarks | None
) -> Tensor:
    """Return the gradient on CUDA; if its receiver wants to know, note which rows have one."""
    from emea.encoders.kernels import triton_losses

    marks = None if noted is None else no_marks(len(rows), rows.device)[0]
    out = triton_losses.pair_distances_backward(rows, first, second, grad, marks)
    if noted is not None and marks is not None:
        noted.note(out, marks)
    return out


def _gradient(rows: Tensor, first: Tensor, second: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient, computed by torch's operations."""
    out = torch.zeros_like(rows)
    # pairs outside the margin have no gradient; late in training, these are most pairs
    for chunk in torch.split(grad.nonzero().squeeze(1), ROWS_PER_CHUNK):
        a, b = first[chunk], second[chunk]
        step = _differences(rows, a, b).sign_().mul_(grad[chunk].unsqueeze(1))
        out.index_add_(0, a, step)
        out.index_add_(0, b, step, alpha=-1)
    return out


def _differences(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return rows.index_select(0, first).sub_(rows.index_select(0, second))


def margin_loss(distances: Tensor, picked: Tensor | None, num_true: int, margin: float) -> Tensor:
    """Return the sum of ``max(0, margin + true - false)`` over all false pairs, per sampled link.

    On CUDA, one kernel computes the loss and its gradient.

    Args:
        distances: ``[num_true + 2 * num_sampled]`` distances: of linked pairs, of the sampled links
            with a false target, and of the sampled links with a false source.
        picked: ``[num_sampled]`` linked pair of each sampled link; ``None`` means that the linked
            pairs repeat in their order.
        num_true: Number of linked pairs.
        margin: The margin.
    """
    if _sums_atomically(distances):
        loss = _MarginLoss.apply(distances, picked, num_true, margin)  # type: ignore[no-untyped-call]
        return cast(Tensor, loss)
    true, false = distances[:num_true], distances[num_true:]
    size = len(false) // 2
    if picked is None:
        positive = true.repeat(-(-size // num_true))[:size]
    else:
        positive = true.index_select(0, picked)
    return torch.relu(margin + positive.repeat(2) - false).sum() / size


class _MarginLoss(torch.autograd.Function):
    """Computes the gradient together with the loss, because it does not depend on its use."""

    @staticmethod
    def forward(
        ctx: Any, distances: Tensor, picked: Tensor | None, num_true: int, margin: float
    ) -> Tensor:
        from emea.encoders.kernels import triton_losses

        loss, gradient = triton_losses.margin_loss(distances, picked, num_true, margin)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0], None, None, None
