"""Compiled CPU kernels of the reflected attention, row distances and dropout.

A training step on a CPU consists of many small torch operations whose intermediate results do not
stay in the cache. These kernels visit each edge twice, once in each direction. They are used in
single precision if numba is installed.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.encoders.kernels.sparse_pattern import SparsePattern
from emea.matching import compiled
from emea.matching.threads import available_threads, in_threads, index_ranges

EDGES_PER_PART = 100_000
"""Edges per part of the backward pass.

Each part has its own gradient of the reflectors. The number of parts does not depend on the number
of threads, so neither do the sums.
"""

MAX_PARTS = 4
"""Largest number of parts of the backward pass."""

VALUES_PER_THREAD = 200_000
"""Multiplications below which a second thread does not save time."""

Range = tuple[int, int]


class Attended(NamedTuple):
    """Holds a layer's output after and before activation, and each edge's ``n.r`` and attention."""

    activated: Tensor
    out: Tensor
    along: Tensor
    attention: Tensor


class KernelGradients(NamedTuple):
    """Holds gradients of w through ``features @ w``, and of ``reflectors @ w`` and ``@ v``."""

    by_neighbour: Tensor
    of_dots: Tensor


def usable(values: Tensor) -> bool:
    """Return whether the kernels support this tensor; otherwise torch's operations are used."""
    return values.dtype == torch.float32 and compiled.usable(values)


def attend(
    edges: SparsePattern,
    sets: Tensor,
    features: Tensor,
    reflectors: Tensor,
    by_neighbour: Tensor,
    by_relation: Tensor,
    is_relu: bool,
) -> Attended:
    """Apply a reflection layer to the features of one channel, ``[num_entities, dim]``.

    The activation is a ReLU or the hyperbolic tangent.
    """
    along = features.new_empty(edges.num_nonzeros)
    rows = torch.empty_like(features), torch.empty_like(features)
    result = Attended(*rows, along, torch.empty_like(along))
    dots = features @ by_neighbour, reflectors @ by_neighbour, reflectors @ by_relation
    graph = _arrays(edges.row_starts, edges.cols, sets)
    given = (*graph, *_arrays(features, reflectors), tuple(_arrays(*dots)))
    work = edges.num_nonzeros * features.shape[1]
    ranges = _even_ranges(graph[0], _num_threads(work))
    made = _arrays(result.along, result.attention, result.out, result.activated)
    _run("attend", ranges, *given, is_relu, *made)
    return result


def num_parts(edges: SparsePattern) -> int:
    """Return the number of parts that the backward pass has, each with its own sums."""
    return min(MAX_PARTS, 1 + edges.num_nonzeros // EDGES_PER_PART)


def attend_backward(
    edges: SparsePattern,
    sets: Tensor,
    features: Tensor,
    reflectors: Tensor,
    by_neighbour: Tensor,
    attended: Attended,
    is_relu: bool,
    active: Tensor,
    grad: Tensor,
    of_features: Tensor,
    of_reflectors: Tensor,
) -> KernelGradients:
    """Add the gradients of a reflection layer, given that of its output.

    Args:
        edges: The edges.
        sets: Relation set of each edge.
        features: ``[num_entities, dim]`` input of the layer.
        reflectors: ``[num_sets, dim]`` unit vectors of the relation sets.
        by_neighbour: ``[dim]`` w of the layer.
        attended: The layer's results.
        is_relu: Whether the activation is a ReLU.
        active: ``[num_entities]`` whether a row of the output has a gradient. The neighbours of
            these rows, whose features receive a gradient, are marked, too.
        grad: ``[num_entities, dim]`` gradient of the activated output, which is overwritten.
        of_features: Gradient of the features, which is added to.
        of_reflectors: ``[num_parts, num_sets, dim]`` gradient of the reflectors without that of
            ``reflectors @ [w v]``, which is added to.
    """
    num_parts, dim = len(of_reflectors), features.shape[1]
    grad_dot_out = features.new_empty(len(features))
    rows = index_ranges(len(features), _num_threads(features.numel()))
    activation = (*_arrays(attended.activated, attended.out), is_relu)
    _run("through_activation", rows, *activation, *_arrays(active, grad, grad_dot_out))
    spans = _even_ranges(edges.transposed_starts.numpy(), num_parts)
    of_kernel = features.new_zeros(num_parts, dim)
    set_sums = features.new_zeros(num_parts, 2, len(reflectors))
    reached = active.clone()
    pattern = (edges.transposed_starts, edges.transposed_rows, edges.to_transposed, sets)
    dots = reflectors @ by_neighbour, attended.along, attended.attention
    given = (*pattern, features, reflectors, by_neighbour, *dots)
    gradients = (active, grad, grad_dot_out, reached, of_features)
    own = list(zip(*_arrays(of_reflectors, of_kernel, set_sums), strict=True))
    _run("attend_backward", spans, *_arrays(*given, *gradients), own=own)
    active.copy_(reached)
    return KernelGradients(of_kernel.sum(0), set_sums.sum(0))


def pair_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return ``|rows[first[i]] - rows[second[i]]|_1`` for each i."""
    out = rows.new_empty(len(first))
    ranges = index_ranges(len(first), _num_threads(len(first) * rows.shape[1]))
    _run("pair_distances", ranges, *_arrays(rows, first, second, out))
    return out


def pair_distances_backward(rows: Tensor, first: Tensor, second: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of ``pair_distances``, summed for each row in the order of the pairs."""
    out = torch.zeros_like(rows)
    ranges = index_ranges(rows.shape[1], _num_threads(len(first) * rows.shape[1]))
    _run("pair_distances_backward", ranges, *_arrays(rows, first, second, grad, out))
    return out


def dropped_copy(parts: Sequence[Tensor], wide: Tensor, random: Tensor, num_kept: int) -> None:
    """Concatenate matrices along the row and drop elements.

    Args:
        parts: ``[num_rows, dim]`` matrices of the same shape.
        wide: ``[num_rows, len(parts) * dim]`` matrix, which is written.
        random: Random bytes in the shape of ``wide``.
        num_kept: Number of byte values whose elements are kept.
    """
    ranges = index_ranges(len(wide), _num_threads(wide.numel()))
    _run("dropped_copy", ranges, tuple(_arrays(*parts)), *_dropout(wide, random, num_kept))


def dropped_copy_backward(
    wide: Tensor, random: Tensor, num_kept: int, parts: Sequence[Tensor], active: Tensor
) -> None:
    """Write the gradients of the concatenated matrices, and which rows have any.

    Args:
        wide: ``[num_rows, len(parts) * dim]`` gradient of the concatenation.
        random: The random bytes.
        num_kept: Number of byte values whose elements are kept.
        parts: ``[num_rows, dim]`` matrices for the gradients.
        active: ``[num_rows]`` whether a row of ``wide`` has nonzero elements, which is written.
    """
    ranges = index_ranges(len(wide), _num_threads(wide.numel()))
    results = (tuple(_arrays(*parts)), *_arrays(active))
    _run("dropped_copy_backward", ranges, *_dropout(wide, random, num_kept), *results)


def _dropout(wide: Tensor, random: Tensor, num_kept: int) -> tuple[Any, ...]:
    return (*_arrays(wide, random), np.uint8(num_kept - 1), np.float32(256 / num_kept))


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().numpy() for tensor in tensors]


def _num_threads(work: int) -> int:
    return max(1, min(available_threads(), work // VALUES_PER_THREAD))


def _even_ranges(starts: np.ndarray[Any, Any], num_ranges: int) -> list[Range]:
    """Return ranges of rows that have about the same number of nonzeros."""
    if num_ranges == 1:
        return [(0, len(starts) - 1)]
    wanted = [int(starts[-1]) * part // num_ranges for part in range(1, num_ranges)]
    ends = [0, *np.searchsorted(starts, wanted).tolist(), len(starts) - 1]
    return list(itertools.pairwise(ends))


def _run(name: str, ranges: list[Range], *shared: Any, own: list[Any] | None = None) -> None:
    """Run a kernel on all ranges, with torch's number of threads.

    Args:
        name: The kernel.
        ranges: The ranges that it is called with.
        *shared: Arguments of all calls.
        own: Additional arguments of each call.
    """
    kernel = _kernels()[name]
    calls = [
        (*span, *shared, *rest)
        for span, rest in zip(ranges, own or [()] * len(ranges), strict=True)
    ]
    in_threads(kernel, calls)


@functools.cache
def _kernels() -> dict[str, Callable[..., None]]:
    from emea.encoders.kernels import numba_source

    layers = ("attend", "through_activation", "attend_backward")
    copies = ("dropped_copy", "dropped_copy_backward")
    names = (*layers, *copies, "pair_distances", "pair_distances_backward")
    return {name: getattr(numba_source, name) for name in names}
