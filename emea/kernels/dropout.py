"""Dropout that needs one random byte per element on a CPU."""

import torch
from torch import Tensor, nn


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
