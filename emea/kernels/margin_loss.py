"""The margin loss of the distances of linked and false pairs."""

from typing import Any, cast

import torch
from torch import Tensor

from emea.kernels import choice


def torch_margin_loss(
    distances: Tensor, picked: Tensor | None, num_true: int, margin: float
) -> Tensor:
    """Return the same as `margin_loss`, differentiated by torch."""
    true = distances[:num_true]
    false = distances[num_true:]
    size = len(false) // 2
    # the linked pair of each sampled link
    if picked is None:
        positive = true.repeat(-(-size // num_true))[:size]
    else:
        positive = true.index_select(0, picked)
    # each of them has a false target and a false source
    return torch.relu(margin + positive.repeat(2) - false).sum() / size


def margin_loss(
    distances: Tensor, picked: Tensor | None, num_true: int, margin: float
) -> Tensor:
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
    if choice.uses_triton_sums(distances):
        loss = _MarginLoss.apply(distances, picked, num_true, margin)  # type: ignore[no-untyped-call]
        return cast(Tensor, loss)
    return torch_margin_loss(distances, picked, num_true, margin)


class _MarginLoss(torch.autograd.Function):
    """Computes the gradient together with the loss, because it does not depend on its use."""

    @staticmethod
    def forward(
        ctx: Any, distances: Tensor, picked: Tensor | None, num_true: int, margin: float
    ) -> Tensor:
        from emea.kernels import triton_losses  # torch may come without Triton

        loss, gradient = triton_losses.margin_loss(distances, picked, num_true, margin)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * grads[0], None, None, None
