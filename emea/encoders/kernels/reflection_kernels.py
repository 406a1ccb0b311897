"""Launchers of the reflected attention's kernels, which need no tensor of edges x dimension.

Features, reflectors and gradients that edges read may have reduced precision; results have single
precision.
"""

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from emea.encoders.kernels import sparse_kernels
from emea.encoders.kernels.sparse_pattern import SparsePattern

MAX_CHANNELS = 2
"""Channels the kernels take at once."""

MAX_DIM = 512
"""Widest row the kernels hold in registers."""

EDGE_TILE, EDGE_WARPS = 4, 1
"""Edges that one program of the edge-parallel kernels takes side by side, and its warps."""

GRADIENT_TILES = 8
"""Tiles that one program of the edge gradients works off, so that few shares remain to sum."""

SUM_TILE, SUM_WARPS = 1, 1
"""Edges that one program of the summing kernels takes side by side, and its warps."""


class EdgeScalars(NamedTuple):
    """Holds the scalars and gradients of each edge, each ``[channels, edges]``."""

    attention: Tensor
    along: Tensor
    grad_logits: Tensor
    grad_along: Tensor


class KernelGradients(NamedTuple):
    """Holds the gradients of the attention kernels w and v, each ``[channels, dim]``."""

    by_neighbour: Tensor
    by_relation: Tensor


def usable(features: Tensor, num_channels: int) -> bool:
    """Return whether the kernels support these features; otherwise torch's products are used."""
    fits = num_channels <= MAX_CHANNELS and features.shape[-1] <= MAX_DIM
    return fits and sparse_kernels.usable(features)


def attention(
    edges: SparsePattern,
    sets: Tensor,
    features: Tensor,
    reflectors: Tensor,
    by_neighbour: Tensor,
    by_relation: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return ``n.r`` and the attention of each edge, ``[channels, edges]``."""
    num_channels, num_rows, dim = features.shape
    num_edges = edges.num_nonzeros
    along = by_neighbour.new_empty(num_channels, num_edges)
    logits = torch.empty_like(along)
    _kernels()["logits"][(_tiles(num_edges, EDGE_TILE),)](
        edges.cols,
        sets,
        features,
        reflectors,
        by_neighbour,
        by_relation,
        along,
        logits,
        num_edges,
        num_rows,
        CHANNELS=num_channels,
        TILE=EDGE_TILE,
        num_warps=EDGE_WARPS,
        **_widths(dim),
    )
    hubs = edges.chunks("row").hubs
    return along, sparse_kernels.row_softmax(edges.row_starts, hubs, logits)


def reflected_sum(
    edges: SparsePattern,
    sets: Tensor,
    attention: Tensor,
    along: Tensor,
    features: Tensor,
    reflectors: Tensor,
) -> Tensor:
    """Return the sum of the messages weighted by attention, ``[channels, rows, dim]``."""
    return _over_chunks(
        "reflected_sum",
        edges.chunks("row"),
        torch.empty_like(features, dtype=attention.dtype),
        (edges.cols, sets, attention, along, features, reflectors),
        features.shape,
        edges.num_nonzeros,
    )


def edge_gradients(
    edges: SparsePattern,
    sets: Tensor,
    attention: Tensor,
    along: Tensor,
    grad: Tensor,
    out: Tensor,
    features: Tensor,
    reflectors: Tensor,
    by_neighbour: Tensor,
) -> tuple[EdgeScalars, KernelGradients]:
    """Return the gradients of the edges' scalars and of the attention kernels."""
    num_channels, num_rows, dim = features.shape
    num_edges = edges.num_nonzeros
    num_programs = _tiles(num_edges, EDGE_TILE * GRADIENT_TILES)
    scalars = EdgeScalars(
        attention, along, torch.empty_like(attention), torch.empty_like(attention)
    )
    shares = attention.new_empty(2, num_channels, num_programs, dim)
    _kernels()["edge_gradients"][(num_programs, num_channels)](
        edges.rows,
        edges.cols,
        sets,
        attention,
        along,
        _row_dots(grad, out),
        grad,
        features,
        reflectors,
        by_neighbour,
        scalars.grad_logits,
        scalars.grad_along,
        shares[0],
        shares[1],
        num_edges,
        num_rows,
        TILES=GRADIENT_TILES,
        TILE=EDGE_TILE,
        num_warps=EDGE_WARPS,
        **_widths(dim),
    )
    return scalars, KernelGradients(*shares.sum(2))


def feature_gradient(
    edges: SparsePattern,
    sets: Tensor,
    scalars: EdgeScalars,
    grad: Tensor,
    reflectors: Tensor,
    by_neighbour: Tensor,
) -> Tensor:
    """Return the gradient of the features, summed over the edges that leave each entity."""
    attention, _, grad_logits, grad_along = scalars
    of_edges = (edges.to_transposed, edges.transposed_rows, sets, attention)
    return _over_chunks(
        "feature_gradient",
        edges.chunks("transposed"),
        torch.empty_like(grad, dtype=attention.dtype),
        (*of_edges, grad_logits, grad_along, grad, reflectors, by_neighbour),
        grad.shape,
        edges.num_nonzeros,
    )


def reflector_gradient(
    edge_sets: SparsePattern,
    cols: Tensor,
    scalars: EdgeScalars,
    grad: Tensor,
    features: Tensor,
    by_neighbour: Tensor,
    by_relation: Tensor,
) -> Tensor:
    """Return the gradient of the reflectors, summed over the edges of each relation set."""
    of_edges = (edge_sets.to_transposed, edge_sets.transposed_rows, cols, *scalars)
    return _over_chunks(
        "reflector_gradient",
        edge_sets.chunks("transposed"),
        by_neighbour.new_empty(edge_sets.shape[1], features.shape[2]),
        (*of_edges, grad, features, by_neighbour, by_relation),
        features.shape,
        edge_sets.num_nonzeros,
    )


def _over_chunks(
    name: str,
    chunks: sparse_kernels.RowChunks,
    out: Tensor,
    inputs: tuple[Tensor, ...],
    shape: torch.Size,
    num_edges: int,
) -> Tensor:
    """Run a summing kernel with one program per chunk of rows; fill and return ``out``."""
    num_channels, num_rows, dim = shape
    chunks.zeroed(out)
    if len(chunks.rows):
        _kernels()[name][(len(chunks.rows),)](
            *chunks[:-1],
            *inputs,
            out,
            num_edges,
            num_rows,
            CHANNELS=num_channels,
            TILE=SUM_TILE,
            num_warps=SUM_WARPS,
            **_widths(dim),
        )
    return out


def _row_dots(left: Tensor, right: Tensor) -> Tensor:
    dim = left.shape[-1]
    out = left.new_empty(left.shape[:-1], dtype=torch.float32)
    _kernels()["row_dots"][(_tiles(out.numel(), EDGE_TILE),)](
        left, right, out, out.numel(), TILE=EDGE_TILE, num_warps=EDGE_WARPS, **_widths(dim)
    )
    return out


def _tiles(size: int, tile: int) -> int:
    return max(1, -(-size // tile))


def _widths(dim: int) -> dict[str, int]:
    return {"DIM": dim, "WIDTH": sparse_kernels.power_of_two(dim)}


@functools.cache
def _kernels() -> dict[str, Any]:
    # imported on first use, because torch does not always come with Triton
    from emea.encoders.kernels import triton_reflection

    return {
        "logits": triton_reflection.logits_kernel,
        "reflected_sum": triton_reflection.reflected_sum_kernel,
        "row_dots": triton_reflection.row_dots_kernel,
        "edge_gradients": triton_reflection.edge_gradients_kernel,
        "feature_gradient": triton_reflection.feature_gradient_kernel,
        "reflector_gradient": triton_reflection.reflector_gradient_kernel,
    }
