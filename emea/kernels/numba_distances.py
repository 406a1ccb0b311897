"""Calls of the compiled loops of distances between pairs of rows."""

import torch
from torch import Tensor

from emea.kernels.numba_attention import num_threads, run
from emea.kernels.numba_calls import arrays
from emea.runtime.threads import index_ranges


def pair_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return ``|rows[first[i]] - rows[second[i]]|_1`` for each i."""
    out = rows.new_empty(len(first))
    ranges = index_ranges(len(first), num_threads(len(first) * rows.shape[1]))
    run("pair_distances", ranges, *arrays(rows, first, second, out))
    return out


def pair_distances_backward(
    rows: Tensor, first: Tensor, second: Tensor, grad: Tensor
) -> Tensor:
    """Return the gradient of ``pair_distances``, summed for each row in the order of the pairs."""
    out = torch.zeros_like(rows)
    ranges = index_ranges(rows.shape[1], num_threads(len(first) * rows.shape[1]))
    run("pair_distances_backward", ranges, *arrays(rows, first, second, grad, out))
    return out
