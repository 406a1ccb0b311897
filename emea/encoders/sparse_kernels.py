"""Triton kernels for sparse products and row distances, used on CUDA where Triton exists.

cuSPARSE copies the pattern on every sampled product and cannot share it between calls; these
kernels read each edge's data once and write only the result.
"""

import functools
import importlib.util
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray

EDGES_PER_TILE = 8
"""Edges read side by side by one program."""

EDGES_PER_CHUNK = 32
"""Edges of one row that one program of the matrix product works on."""

MATMUL_WARPS = 1
DOTS_WARPS = 4
SOFTMAX_BLOCK = 64
DOTS_PER_TILE = 16
"""Dot products taken side by side by one program."""

PAIRS_PER_TILE = 8
"""Pairs of rows compared side by side."""

MAX_WIDTH = 128
"""Columns one program holds at a time; a wider tile does not fit into registers."""


@functools.cache
def _triton_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def usable(dense: Tensor) -> bool:
    """Whether the kernels can serve this tensor; otherwise torch's own products do."""
    return dense.is_cuda and dense.dtype == torch.float32 and _triton_installed()


class RowChunks(NamedTuple):
    """Rows cut into chunks of bounded length, so that a hub's row is worked on in parallel."""

    rows: Tensor
    starts: Tensor
    ends: Tensor
    alone: Tensor  # 1 where the chunk is its row's only one, and may be stored without a sum


def row_chunks(starts: IntArray) -> tuple[IntArray, ...]:
    """The fields of ``RowChunks`` for the rows that ``starts`` delimits."""
    lengths = np.diff(starts)
    counts = -(-lengths // EDGES_PER_CHUNK)
    rows = np.repeat(np.arange(len(lengths)), counts)
    index = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = starts[rows] + index * EDGES_PER_CHUNK
    ends = np.minimum(begins + EDGES_PER_CHUNK, starts[rows + 1])
    return rows, begins, ends, (counts[rows] == 1).astype(np.int64)


def matmul(chunks: RowChunks, num_rows: int, cols: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """Rows of a CSR matrix times a dense matrix; rows of several chunks are summed atomically."""
    dense = dense.contiguous()
    dim = dense.shape[1]
    out = dense.new_zeros(num_rows, dim)
    width = _tile_width(dim)
    if len(chunks.rows):
        _kernels()["matmul"][(len(chunks.rows), -(-dim // width))](
            *chunks,
            cols,
            values.contiguous(),
            dense,
            out,
            DIM=dim,
            TILE=EDGES_PER_TILE,
            WIDTH=width,
            num_warps=MATMUL_WARPS,
        )
    return out


def row_softmax(starts: Tensor, logits: Tensor) -> Tensor:
    """Softmax of the edges' logits along each row."""
    out = torch.empty_like(logits)
    _kernels()["row_softmax"][(len(starts) - 1,)](
        starts, logits.contiguous(), out, BLOCK=SOFTMAX_BLOCK, num_warps=1
    )
    return out


def row_softmax_backward(starts: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    """Gradient of the row softmax."""
    out = torch.empty_like(weights)
    _kernels()["row_softmax_backward"][(len(starts) - 1,)](
        starts, weights, grad.contiguous(), out, BLOCK=SOFTMAX_BLOCK, num_warps=1
    )
    return out


def sampled_dots(rows: Tensor, cols: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Dot products of the row pairs the pattern names."""
    left, right = left.contiguous(), right.contiguous()
    num_edges, dim = len(rows), left.shape[1]
    out = left.new_empty(num_edges)
    grid = ((num_edges + DOTS_PER_TILE - 1) // DOTS_PER_TILE,)
    width = _tile_width(dim)
    _kernels()["sampled_dots"][grid](
        rows,
        cols,
        left,
        right,
        out,
        num_edges,
        DIM=dim,
        TILE=DOTS_PER_TILE,
        WIDTH=width,
        num_warps=DOTS_WARPS,
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
    width = _tile_width(dim)
    kernel = _kernels()[name]
    kernel[grid](rows, first, second, *rest, num_pairs, DIM=dim, TILE=PAIRS_PER_TILE, WIDTH=width)


def _tile_width(dim: int) -> int:
    return min(MAX_WIDTH, _power_of_two(dim))


def _power_of_two(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


@functools.cache
def _kernels() -> dict[str, Any]:
    # imported on first use: Triton is not installed everywhere torch is
    from emea.encoders import triton_source

    return {
        "matmul": triton_source.matmul_kernel,
        "row_softmax": triton_source.row_softmax_kernel,
        "row_softmax_backward": triton_source.row_softmax_backward_kernel,
        "sampled_dots": triton_source.sampled_dots_kernel,
        "distances": triton_source.distances_kernel,
        "distances_backward": triton_source.distances_backward_kernel,
    }
