"""The margin loss of pairs of entities, on a GPU in one kernel."""

from typing import Any, cast

import torch
from torch import Tensor

from emea.encoders.kernels import sparse_kernels


def margin_loss(distances: Tensor, picked: Tensor | None, num_true: int, margin: float) -> Tensor:
    """Return the sum of ``max(0, margin + true - false)`` over all false pairs, per sampled link.

    Args:
        distances: ``[num_true + 2 * num_sampled]`` distances: of linked pairs, of the sampled links
            with a false target, and of the sampled links with a false source.
        picked: ``[num_sampled]`` linked pair of each sampled link; ``None`` means that the linked
            pairs repeat in their order.
        num_true: Number of linked pairs.
        margin: The margin.
    """
    # the order of the kernel's atomic sums is not fixed
    if sparse_kernels.usable(distances) and not torch.are_deterministic_algorithms_enabled():
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
        loss, gradient = sparse_kernels.margin_loss(distances, picked, num_true, margin)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0], None, None, None
