"""One pass over scores: the largest of each group of columns, and a softmax's denominator."""

import torch
from torch import Tensor

from emea.kernels import choice

GROUP = 32
"""Scores that are compared by their maximum first."""


def torch_scan(
    dots: Tensor, offsets: Tensor, scale: float, sharpness: float | None
) -> tuple[Tensor, Tensor]:
    """Return the same as `scan`, reading the scores several times."""
    num_columns = len(offsets)
    scores = scale * dots[:, :num_columns] - offsets
    # the last group is filled up with scores that are never the largest
    padded = torch.nn.functional.pad(
        scores, (0, -num_columns % GROUP), value=-torch.inf
    )
    maxima = padded.view(len(dots), -1, GROUP).amax(2)
    if sharpness is None:
        return maxima, dots.new_zeros(len(dots))
    return maxima, (sharpness * scores).logsumexp(1)


def scan(
    dots: Tensor, offsets: Tensor, scale: float, sharpness: float | None
) -> tuple[Tensor, Tensor]:
    """Return the largest score of each group of columns, and the softmax's denominator.

    Args:
        dots: ``[n, m]`` dot products; columns after the last offset are ignored.
        offsets: ``[num_columns]`` numbers that are subtracted from the scaled dot products.
        scale: Factor of the dot products.
        sharpness: Sharpness of the softmax; ``None`` to skip its denominator.

    Returns:
        ``[n, num_groups]`` maxima, and ``[n]`` logarithms of the denominator (zeros if skipped).
    """
    if reads_once(dots):
        from emea.kernels import triton_scores  # torch may come without Triton

        return triton_scores.scan(dots, offsets, scale, sharpness, GROUP)
    return torch_scan(dots, offsets, scale, sharpness)


def reads_once(values: Tensor) -> bool:
    """Return whether `scan` reads the scores of such tensors once, in a single kernel."""
    return choice.uses_triton(values)
