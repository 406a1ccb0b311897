"""Calls of the compiled loops of the reflected attention.

A training step on a CPU consists of many small torch operations whose intermediate results do not
stay in the cache. These loops visit each edge twice, once in each direction.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.kernels.numba_calls import arrays, layer_loops
from emea.kernels.sparse_pattern import SparsePattern
from emea.runtime.threads import available_threads, in_threads, index_ranges

EDGES_PER_PART = 100_000
"""Edges per part of the backward pass.

Each part has its own gradient of the reflectors. The number of parts does not depend on the number
of threads, so neither do the sums.
"""

MAX_PARTS = 4
"""Largest number of parts of the backward pass."""

VALUES_PER_THREAD = 200_000
"""Multiplications below which a second thread does not save time."""

Array = np.ndarray[Any, Any]
Range = tuple[int, int]


class EdgeArrays(NamedTuple):
    """Holds the edges of a joint graph and their transpose as arrays, as the kernels read them."""

    starts: Array
    cols: Array
    sets: Array
    transposed_starts: Array
    transposed_rows: Array
    to_transposed: Array


def edge_arrays(edges: SparsePattern, sets: Tensor) -> EdgeArrays:
    """Return the arrays of the edges, given the relation set of each edge."""
    rows = (edges.row_starts, edges.cols, sets)
    columns = (edges.transposed_starts, edges.transposed_rows, edges.to_transposed)
    return EdgeArrays(*arrays(*rows, *columns))


def attend(
    graph: EdgeArrays,
    is_relu: bool,
    outputs: Tensor,
    *parameters: Tensor,
) -> tuple[Tensor, ...]:
    """Apply the reflection layers to the inputs of all channels, and write their outputs.

    Args:
        graph: The edges.
        is_relu: Whether the activation is a ReLU; otherwise it is the hyperbolic tangent.
        outputs: ``[num_channels, depth + 1, num_entities, dim]`` inputs of the channels, followed
            by the activated outputs of their layers.
        *parameters: Reflectors, w and v, as in ``LayerParameters``.

    Returns:
        What the gradient needs in addition, ``[num_channels, depth, ...]``: outputs before
        activation, n.r and attention of each edge, and the products of the reflectors with w.
    """
    reflectors, by_neighbour, by_relation = parameters
    num_channels, depth, dim = by_neighbour.shape
    shape = (num_channels, depth)
    new = outputs.new_empty
    along, attention = new(2, *shape, len(graph.cols))
    by_reflector = new(*shape, len(reflectors))
    result = new(*shape, *outputs.shape[2:]), along, attention, by_reflector
    results = arrays(*result)
    features, unit_rows = arrays(outputs, reflectors)
    threads = num_threads(num_channels * len(graph.cols) * dim)
    ranges = _even_ranges(graph.starts, -(-threads // num_channels))
    for layer in range(depth):
        calls = []
        for channel in range(num_channels):
            place = channel, layer
            w = by_neighbour[place]
            v = by_relation[place]
            torch.mv(reflectors, w, out=by_reflector[place])
            out, *of_edges, of_sets = (values[place] for values in results)
            dots = *arrays(outputs[place] @ w), of_sets, *arrays(reflectors @ v)
            given = (*graph[:3], features[place], unit_rows, dots, is_relu)
            made = *of_edges, out, features[channel, layer + 1]
            calls += [(*span, *given, *made) for span in ranges]
        in_threads(layer_loops().attend, calls, threads)
    return result


def attend_backward(
    graph: EdgeArrays,
    is_relu: bool,
    saved: Sequence[Tensor],
    active: Tensor,
    of_outputs: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the reflection layers, and add those of the channels' inputs.

    Args:
        graph: The edges.
        is_relu: Whether the activation is a ReLU.
        saved: Outputs, reflectors and w as given to ``attend``, and its results.
        active: ``[num_entities]`` whether a row of the outputs has a gradient.
        of_outputs: Gradients in the shape of ``outputs``. Those of inputs are added to, those of
            outputs are overwritten.

    Returns:
        The gradient of the reflectors without that of ``reflectors @ [w v]``, that of w through
        ``features @ w``, and ``[num_channels, depth, 2, num_sets]`` those of ``reflectors @ w`` and
        ``reflectors @ v``.
    """
    outputs, reflectors, by_neighbour, *attended = saved
    num_channels, depth, dim = by_neighbour.shape
    num_parts = min(MAX_PARTS, 1 + len(graph.cols) // EDGES_PER_PART)
    spans = _even_ranges(graph.transposed_starts, num_parts)
    num_rows = len(active)
    rows = index_ranges(num_rows, num_threads(num_rows * dim))
    of_reflectors = reflectors.new_zeros(num_parts, *reflectors.shape)
    of_w = reflectors.new_zeros(num_channels, depth, num_parts, dim)
    sums = reflectors.new_zeros(num_channels, depth, num_parts, 2, len(reflectors))
    features, grads, unit_rows, w = arrays(
        outputs, of_outputs, reflectors, by_neighbour
    )
    out, along, attention, by_reflector = arrays(*attended)
    of_units, of_kernels, of_sets = arrays(of_reflectors, of_w, sums)
    grad_dot_out = np.empty(num_rows, dtype=np.float32)
    for channel in range(num_channels):
        reached = active.numpy()
        for layer in reversed(range(depth)):
            here = (channel, layer)
            after = (channel, layer + 1)
            given = reached
            reached = reached.copy()
            gradients = given, grads[after], grad_dot_out
            activated = features[after], out[here], is_relu
            run("through_activation", rows, *activated, *gradients)
            dots = by_reflector[here], along[here], attention[here]
            inputs = (*graph[3:], graph.sets, features[here], unit_rows, w[here], *dots)
            own = zip(of_units, of_kernels[here], of_sets[here], strict=True)
            changed = reached, grads[here]
            run("attend_backward", spans, *inputs, *gradients, *changed, own=own)
    whole = of_reflectors[0] if num_parts == 1 else of_reflectors.sum(0)
    return whole, of_w.sum(2), sums.sum(2)


def num_threads(work: int) -> int:
    """Return the number of threads for so many multiplications."""
    return max(1, min(available_threads(), work // VALUES_PER_THREAD))


def _even_ranges(starts: Array, num_ranges: int) -> list[Range]:
    """Return ranges of rows that have about the same number of nonzeros."""
    if num_ranges == 1:
        return [(0, len(starts) - 1)]
    wanted = [int(starts[-1]) * part // num_ranges for part in range(1, num_ranges)]
    ends = [0, *np.searchsorted(starts, wanted).tolist(), len(starts) - 1]
    return list(itertools.pairwise(ends))


def run(
    name: str, ranges: list[Range], *shared: Any, own: Iterable[Any] | None = None
) -> None:
    """Run a kernel on all ranges, with torch's number of threads.

    Args:
        name: The kernel.
        ranges: The ranges that it is called with.
        *shared: Arguments of all calls.
        own: Additional arguments of each call.
    """
    own = own or [()] * len(ranges)
    calls = [(*span, *shared, *rest) for span, rest in zip(ranges, own, strict=True)]
    in_threads(getattr(layer_loops(), name), calls)
