"""Manhattan distances between chosen rows of one matrix, without a pairs x dimension tensor."""

from typing import Any, cast

import torch
from torch import Tensor

from emea.encoders.kernels import sparse_kernels

ROWS_PER_CHUNK = 4096
"""Pairs worked on at a time on a CPU; their rows stay in the cache."""


def pair_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """``|rows[first[i]] - rows[second[i]]|_1`` for each i, differentiable in ``rows``."""
    distances = _PairDistances.apply(rows, first, second)  # type: ignore[no-untyped-call]
    return cast(Tensor, distances)


class _PairDistances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
        ctx.save_for_backward(rows, first, second)
        if sparse_kernels.usable(rows):
            return sparse_kernels.pair_distances(rows, first, second)
        chunks = zip(_chunks(first), _chunks(second), strict=True)
        return torch.cat([_differences(rows, a, b).abs_().sum(1) for a, b in chunks])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        rows, first, second = ctx.saved_tensors
        grad = grads[0].contiguous()
        # the kernel's atomic sums have no fixed order
        if sparse_kernels.usable(rows) and not torch.are_deterministic_algorithms_enabled():
            return sparse_kernels.pair_distances_backward(rows, first, second, grad), None, None
        # pairs outside the margin have no gradient: most of them, late in training
        active = grad.nonzero().squeeze(1)
        out = torch.zeros_like(rows)
        for chunk in _chunks(active):
            a, b = first[chunk], second[chunk]
            step = _differences(rows, a, b).sign_().mul_(grad[chunk].unsqueeze(1))
            out.index_add_(0, a, step)
            out.index_add_(0, b, step, alpha=-1)
        return out, None, None


def _chunks(ids: Tensor) -> tuple[Tensor, ...]:
    return torch.split(ids, ROWS_PER_CHUNK)


def _differences(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return rows.index_select(0, first).sub_(rows.index_select(0, second))
