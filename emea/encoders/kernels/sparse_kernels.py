"""Triton kernels for sparse products and row distances, used on CUDA if Triton is installed.

cuSPARSE copies the pattern on every sampled product and cannot share it between calls. These
kernels read each edge's data once and write only the result.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.sorting import places_in_runs
from emea.runtime import kernels

EDGES_PER_TILE = 8
"""Edges read side by side by one program."""

EDGES_PER_CHUNK = 32
"""Edges of one row that one program of the matrix product works on."""

MATMUL_WARPS = 1
DOTS_WARPS = 4
SOFTMAX_BLOCK, SOFTMAX_ROWS = 64, 16
DOTS_PER_TILE = 16
"""Dot products taken side by side by one program."""

PAIRS_PER_TILE = 8
"""Pairs of rows compared side by side."""

PAIRS_PER_GRADIENT = 32
"""Pairs of rows whose gradients one program adds up; at most 64, as they are marked by bits."""

MARGIN_BLOCK = 1024
"""Pairs of which one program adds up the loss."""

RMSPROP_BLOCK = 1024
"""Parameters updated by one program."""

MAX_WIDTH = 128
"""Columns one program holds at a time; a wider tile does not fit into registers."""


def usable(dense: Tensor) -> bool:
    """Return whether the kernels support this tensor; otherwise torch's products are used."""
    return kernels.uses_triton(dense)


class RowChunks(NamedTuple):
    """Holds rows cut into chunks of bounded length, so that hubs are processed in parallel."""

    rows: Tensor
    starts: Tensor
    ends: Tensor
    alone: Tensor  # 1 if the row has only this chunk, which can then be stored without a sum
    hubs: Tensor  # rows of several chunks, whose sums start from zero

    def zeroed(self, out: Tensor) -> Tensor:
        """Return ``out`` with zeros in the rows that kernels add to."""
        return out.index_fill_(0, self.hubs, 0.0)


def whole_rows(starts: Tensor, hubs: Tensor) -> RowChunks:
    """Return one chunk per row of any length, so that no row is summed in random order."""
    num_rows = len(starts) - 1
    rows = torch.arange(num_rows, dtype=starts.dtype, device=starts.device)
    return RowChunks(rows, starts[:-1], starts[1:], torch.ones_like(rows), hubs)


def row_chunks(starts: IntArray) -> tuple[IntArray, ...]:
    """Return the fields of ``RowChunks`` for the rows that ``starts`` delimits.

    Every row has at least one chunk.
    """
    lengths = np.diff(starts)
    counts = np.maximum(1, -(-lengths // EDGES_PER_CHUNK))
    rows = np.repeat(np.arange(len(lengths)), counts)
    begins = starts[rows] + places_in_runs(counts) * EDGES_PER_CHUNK
    ends = np.minimum(begins + EDGES_PER_CHUNK, starts[rows + 1])
    alone = (counts[rows] == 1).astype(np.int64)
    return rows, begins, ends, alone, np.flatnonzero(counts > 1)


def matmul(
    chunks: RowChunks,
    num_rows: int,
    cols: Tensor,
    values: Tensor,
    dense: Tensor,
    marks: Tensor | None = None,
) -> Tensor:
    """Multiply a CSR matrix by a dense matrix; rows of several chunks are summed atomically.

    Args:
        chunks: Chunks of the rows.
        num_rows: Number of rows.
        cols: Column of each nonzero.
        values: Value of each nonzero.
        dense: The dense matrix.
        marks: Bytes: whether a row of the dense matrix can differ from zero; ``None`` if all can.
    """
    dense = dense.contiguous()
    dim = dense.shape[1]
    out = chunks.zeroed(dense.new_empty(num_rows, dim))
    width = _tile_width(dim)
    if len(chunks.rows):
        _kernels()["matmul"][(len(chunks.rows), -(-dim // width))](
            *chunks[:-1],
            cols,
            values.contiguous(),
            dense,
            cols if marks is None else marks,
            out,
            WITH_MARKS=marks is not None,
            DIM=dim,
            TILE=EDGES_PER_TILE,
            WIDTH=width,
            num_warps=MATMUL_WARPS,
        )
    return out


def row_softmax(starts: Tensor, hubs: Tensor, logits: Tensor) -> Tensor:
    """Return the softmax of the logits along each row.

    Args:
        starts: Position of each row's first edge.
        hubs: Rows that have more edges than fit into a chunk.
        logits: ``[edges]`` logits.
    """
    logits = logits.contiguous()
    out = torch.empty_like(logits)
    num_rows = len(starts) - 1
    if num_rows:
        _kernels()["short_softmax"][(-(-num_rows // SOFTMAX_ROWS),)](
            starts,
            logits,
            out,
            num_rows,
            ROWS=SOFTMAX_ROWS,
            LONGEST=power_of_two(EDGES_PER_CHUNK),
        )
    if len(hubs):
        _kernels()["hub_softmax"][(len(hubs),)](
            hubs, starts, logits, out, BLOCK=SOFTMAX_BLOCK, num_warps=1
        )
    return out


def row_softmax_backward(starts: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of the row softmax."""
    out = torch.empty_like(weights)
    _kernels()["row_softmax_backward"][(len(starts) - 1,)](
        starts, weights, grad.contiguous(), out, BLOCK=SOFTMAX_BLOCK, num_warps=1
    )
    return out


def sampled_dots(rows: Tensor, cols: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return the dot products of the row pairs in the pattern."""
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
    """Return the Manhattan distances of pairs of rows."""
    rows = rows.contiguous()
    out = rows.new_empty(len(first))
    _launch_on_pairs("distances", PAIRS_PER_TILE, rows, first, second, out)
    return out


def pair_distances_backward(
    rows: Tensor, first: Tensor, second: Tensor, grad: Tensor, marks: Tensor | None = None
) -> Tensor:
    """Return the gradient of the distances; atomic sums make its last bits vary between runs.

    Args:
        rows: The rows.
        first: First row of each pair.
        second: Second row of each pair.
        grad: Gradient of each distance.
        marks: ``[num_rows]`` bytes; those of rows with a gradient become 1.
    """
    rows = rows.contiguous()
    out = torch.zeros_like(rows)
    _launch_on_pairs(
        "distances_backward",
        PAIRS_PER_GRADIENT,
        *(rows, first, second, grad, out, out if marks is None else marks),
        WITH_MARKS=marks is not None,
    )
    return out


def rmsprop(
    parameter: Tensor, grad: Tensor, square: Tensor, rate: float, smoothing: float, epsilon: float
) -> None:
    """Run one step of RMSprop in place."""
    size = parameter.numel()
    grid = (max(1, -(-size // RMSPROP_BLOCK)),)
    _kernels()["rmsprop"][grid](
        parameter, grad, square, size, rate, smoothing, epsilon, BLOCK=RMSPROP_BLOCK
    )


def _launch_on_pairs(
    name: str,
    tile: int,
    rows: Tensor,
    first: Tensor,
    second: Tensor,
    *rest: Tensor,
    **constants: int,
) -> None:
    num_pairs, dim = len(first), rows.shape[1]
    grid = (-(-num_pairs // tile),)
    width = _tile_width(dim)
    constants |= {"DIM": dim, "TILE": tile, "WIDTH": width}
    _kernels()[name][grid](rows, first, second, *rest, num_pairs, **constants)


def margin_loss(
    distances: Tensor, picked: Tensor | None, num_true: int, margin: float
) -> tuple[Tensor, Tensor]:
    """Return the loss of ``margin_loss.margin_loss`` and the gradient of the distances."""
    size = (len(distances) - num_true) // 2
    results = distances.new_empty(1 + len(distances))
    results[: 1 + num_true].zero_()
    loss, grad = results[0], results[1:]
    _kernels()["margin"][(-(-2 * size // MARGIN_BLOCK),)](
        distances.contiguous(),
        distances if picked is None else picked,
        loss,
        grad,
        num_true,
        size,
        margin,
        WITH_PICKED=picked is not None,
        BLOCK=MARGIN_BLOCK,
    )
    return loss, grad


def _tile_width(dim: int) -> int:
    return min(MAX_WIDTH, power_of_two(dim))


def power_of_two(size: int) -> int:
    """Return the least power of two that is not smaller than ``size``."""
    return 1 << max(0, size - 1).bit_length()


@functools.cache
def _kernels() -> dict[str, Any]:
    # imported on first use, because torch does not always come with Triton
    from emea.encoders.kernels import triton_source

    return {
        "matmul": triton_source.matmul_kernel,
        "short_softmax": triton_source.short_softmax_kernel,
        "hub_softmax": triton_source.hub_softmax_kernel,
        "row_softmax_backward": triton_source.row_softmax_backward_kernel,
        "sampled_dots": triton_source.sampled_dots_kernel,
        "distances": triton_source.distances_kernel,
        "distances_backward": triton_source.distances_backward_kernel,
        "margin": triton_source.margin_kernel,
        "rmsprop": triton_source.rmsprop_kernel,
    }
