"""Groups of entries in flat lists: where each begins, and the positions of several ranges."""

from collections.abc import Iterator

import torch
from torch import Tensor


def places_in_groups(groups: Tensor, num_groups: int) -> Tensor:
    """Return the number of earlier entries in each entry's group; groups are contiguous."""
    starts = group_starts(groups, num_groups)
    return torch.arange(len(groups), device=groups.device) - starts[groups]


def group_starts(groups: Tensor, num_groups: int) -> Tensor:
    """Return the start of each group in a list ordered by group, and the list's length."""
    return run_ends(group_sizes(groups, num_groups))


def group_sizes(
    groups: Tensor, num_groups: int, counts: Tensor | None = None
) -> Tensor:
    """Return the number of entries of each group, ``[num_groups]``.

    Unlike ``torch.bincount``, the function does not wait for the values on a GPU.

    Args:
        groups: ``[n]`` group of each entry.
        num_groups: Number of groups.
        counts: ``[n]`` bool: which entries count; ``None`` means all.
    """
    numbers = torch.ones_like(groups) if counts is None else counts.to(groups.dtype)
    return groups.new_zeros(num_groups).scatter_add_(0, groups, numbers)


def run_ends(sizes: Tensor) -> Tensor:
    """Return the starts of runs of these sizes and the end of the last run, ``[n + 1]``."""
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def expand_ranges(starts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return all positions of all ranges ``start, start + 1, ...``, in order.

    Args:
        starts: First position of each range.
        sizes: Number of positions of each range.

    Returns:
        The range of each position, and the position.
    """
    index = torch.repeat_interleave(sizes)
    # position = start + (place in the whole - places before the range)
    shift = (starts - (sizes.cumsum(0) - sizes)).index_select(0, index)
    return index, shift + torch.arange(len(index), device=index.device)


def chunks(sizes: Tensor, limit: int) -> Iterator[slice]:
    """Yield consecutive ranges of items whose sizes sum to at most the limit, or of one item."""
    ends = sizes.cumsum(0).cpu()
    start = 0
    done = 0
    while start < len(ends):
        stop = max(start + 1, int(torch.searchsorted(ends, done + limit, right=True)))
        yield slice(start, stop)
        start = stop
        done = int(ends[stop - 1])
