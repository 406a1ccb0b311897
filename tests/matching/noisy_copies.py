"""Vectors of two sides that resemble each other, for tests of searches."""

import torch
from torch import Tensor


def noisy_copies(
    num_source: int = 700, num_target: int = 900, dim: int = 33
) -> tuple[Tensor, Tensor]:
    """Random vectors, some of which are on both sides with noise."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(num_target, dim, generator=generator)
    noise = torch.randn(num_source, dim, generator=generator)
    return target[:num_source] + 0.5 * noise, target
