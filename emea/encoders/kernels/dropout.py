"""Dropout of a matrix, and dropout that is fused with a concatenation of matrices."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from emea.encoders.kernels import sparse_kernels


class ByteDropout(nn.Module):
    """Applies dropout; on a CPU the share is rounded to a multiple of 1/256.

    On a CPU, torch generates one double per element on one core, which took longer than the whole
    encoder. This class needs one random byte per element. The kept elements are scaled by the
    rounded share, so the expectation is exact. On other devices this is torch's own dropout.

    Args:
        share: Share of the elements to drop.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {share}")
        self.share = share

    def forward(self, values: Tensor) -> Tensor:
        """Return the values; in training, a random share of them is dropped."""
        if not self.training or self.share == 0:
            return values
        if values.device.type != "cpu":
            return nn.functional.dropout(values, self.share)
        num_kept = kept_bytes(self.share)
        # compare with at most 255, because torch would convert 256 to the byte 0
        keep = random_bytes(values.numel()).view(values.shape) <= num_kept - 1
        return values * keep.to(values.dtype).mul_(256 / num_kept)


def kept_bytes(share: float) -> int:
    """Return the number of byte values, of 256, that keep an element."""
    return max(1, round(256 * (1 - share)))


def random_bytes(size: int) -> Tensor:
    """Return uniform random bytes from torch's CPU generator."""
    words = torch.empty((size + 7) // 8, dtype=torch.int64)
    return words.random_(-(2**63), None).view(torch.uint8)[:size]


class DroppedConcat(nn.Module):
    """Concatenates the channels' outputs along the row and drops a share of the elements.

    On CUDA, one kernel copies and drops. The mask is a hash of the element's position and a random
    seed, and the backward pass computes it again instead of storing it.

    Args:
        share: Share of the elements to drop in training.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropout = ByteDropout(share)

    def forward(self, groups: Sequence[Sequence[Tensor]]) -> Tensor:
        """Return all outputs as rows, with the depths of a channel next to each other.

        Args:
            groups: Groups of channels; each group is a list of ``[num_channels, num_rows, dim]``
                tensors, one per depth.
        """
        share = self.dropout.share if self.training else 0.0
        if share and len(groups) == 1 and sparse_kernels.usable(groups[0][0]):
            seed = torch.randint(2**62, (1,), device=groups[0][0].device)
            rows = _CopyAndDrop.apply(seed, share, *groups[0])  # type: ignore[no-untyped-call]
            return cast(Tensor, rows)
        depths = [zip(*(depth.unbind(0) for depth in group), strict=True) for group in groups]
        columns = [rows for group in depths for channel in group for rows in channel]
        dropped: Tensor = self.dropout(torch.cat(columns, dim=1))
        return dropped


class _CopyAndDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, seed: Tensor, share: float, *outputs: Tensor) -> Tensor:
        num_channels, num_rows, dim = outputs[0].shape
        ctx.seed, ctx.share, ctx.shape = seed, share, (len(outputs), *outputs[0].shape)
        wide = outputs[0].new_empty(num_rows, num_channels * len(outputs) * dim)
        for depth, output in enumerate(outputs):
            sparse_kernels.dropped_copy(
                output.contiguous(), wide, seed, depth, len(outputs), share, backward=False
            )
        return wide

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        num_depths, *shape = ctx.shape
        grad = grads[0].contiguous()
        of_outputs = [grad.new_empty(shape) for _ in range(num_depths)]
        for depth, of_output in enumerate(of_outputs):
            sparse_kernels.dropped_copy(
                of_output, grad, ctx.seed, depth, num_depths, ctx.share, backward=True
            )
        return None, None, *of_outputs
