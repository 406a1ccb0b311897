"""Triton kernels for sparse products and row distances, used on CUDA where Triton exists.

cuSPARSE copies the pattern on every sampled product and cannot share it between calls; these
kernels read each edge's data once and write only the result.
"""

import functools
import importlib.util
from typing import Any

import torch
from torch import Tensor

EDGES_PER_TILE = 16
"""Edges read side by side: enough loads in flight to hide a hub's long row."""

PAIRS_PER_TILE = 8
"""Pairs of rows compared side by side."""


@functools.cache
def _triton_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def usable(dense: Tensor) -> bool:
    """Whether the kernels can serve this tensor; otherwise torch's own products do."""
    return dense.is_cuda and dense.dtype == torch.float32 and _triton_installed()


def matmul(starts: Tensor, cols: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """Rows of a CSR matrix times a dense matrix."""
    dense = dense.contiguous()
    num_rows, dim = len(starts) - 1, dense.shape[1]
    out = dense.new_empty(num_rows, dim)
    width = _power_of_two(dim)
    _kernels()["matmul"][(num_rows,)](
        starts, cols, values.contiguous(), dense, out, dim, TILE=EDGES_PER_TILE, WIDTH=width
    )
    return out


def sampled_dots(rows: Tensor, cols: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Dot products of the row pairs the pattern names."""
    left, right = left.contiguous(), right.contiguous()
    num_edges, dim = len(rows), left.shape[1]
    out = left.new_empty(num_edges)
    grid = ((num_edges + EDGES_PER_TILE - 1) // EDGES_PER_TILE,)
    width = _power_of_two(dim)
    _kernels()["sampled_dots"][grid](
        rows, cols, left, right, out, num_edges, dim, TILE=EDGES_PER_TILE, WIDTH=width
    )
    return out


def pair_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Manhattan distances of chosen rows."""
    rows = rows.contiguous()
    out = rows.new_empty(len(first))
    _launch_on_pairs("distances", rows, first, second, out)
    return out


def pair_distances_backward(rows: Tensor, first: Tensor, second: Tensor, grad: Tensor) -> Tensor:
    """Gradient of the distances; its atomic sums make the last bits vary between runs."""
    rows = rows.contiguous()
    out = torch.zeros_like(rows)
    _launch_on_pairs("distances_backward", rows, first, second, grad, out)
    return out


def _launch_on_pairs(name: str, rows: Tensor, first: Tensor, second: Tensor, *rest: Tensor) -> None:
    num_pairs, dim = len(first), rows.shape[1]
    grid = ((num_pairs + PAIRS_PER_TILE - 1) // PAIRS_PER_TILE,)
    width = min(128, _power_of_two(dim))
    kernel = _kernels()[name]
    kernel[grid](rows, first, second, *rest, num_pairs, dim, TILE=PAIRS_PER_TILE, WIDTH=width)


def _power_of_two(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


@functools.cache
def _kernels() -> dict[str, Any]:
    # imported on first use: Triton is not installed everywhere torch is
    from emea.encoders import triton_source

    return {
        "matmul": triton_source.matmul_kernel,
        "sampled_dots": triton_source.sampled_dots_kernel,
        "distances": triton_source.distances_kernel,
        "distances_backward": triton_source.distances_backward_kernel,
    }
