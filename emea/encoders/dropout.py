"""Dropout whose mask costs one random byte per element on a CPU."""

import torch
from torch import Tensor, nn


class ByteDropout(nn.Module):
    """Dropout; on a CPU the share is rounded to a multiple of 1/256.

    torch draws a CPU mask one double at a time on one core, which took longer than the whole
    encoder. Random bytes are eight to a draw; the kept elements are scaled by the rounded
    share, so the expectation is exact. On other devices this is torch's own dropout.

    Args:
        share: share of the elements to drop.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {share}")
        self.share = share

    def forward(self, values: Tensor) -> Tensor:
        """The values with a random share of them dropped, in training alone."""
        if not self.training or self.share == 0:
            return values
        if values.device.type != "cpu":
            return nn.functional.dropout(values, self.share)
        num_kept = max(1, round(256 * (1 - self.share)))
        # compared with at most 255: torch would read 256 as the byte 0
        keep = random_bytes(values.numel()).view(values.shape) <= num_kept - 1
        return values * keep.to(values.dtype).mul_(256 / num_kept)


def random_bytes(size: int) -> Tensor:
    """Uniform bytes from torch's CPU generator."""
    words = torch.empty((size + 7) // 8, dtype=torch.int64)
    return words.random_(-(2**63), None).view(torch.uint8)[:size]
