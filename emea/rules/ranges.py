"""Ranges of unequal lengths, laid out one after the other."""

import torch
from torch import Tensor


def expand_ranges(starts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Every position of every range ``start, start + 1, ...``, in order.

    Args:
        starts: first position of each range.
        sizes: positions of each range.

    Returns:
        Which range each position belongs to, and the position.
    """
    index = torch.repeat_interleave(sizes)
    # position = start + (place in the whole - places before the range)
    shift = (starts - (sizes.cumsum(0) - sizes)).index_select(0, index)
    return index, shift + torch.arange(len(index), device=index.device)
