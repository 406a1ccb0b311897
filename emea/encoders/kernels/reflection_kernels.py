"""Launchers of the reflected attention's kernels, which need no tensor of edges x dimension.

Features, reflectors and gradients that edges read may have reduced precision; results have single
precision.
"""

import functools
from typing import Any, NamedTuple

from torch import Tensor

from emea.encoders.kernels import sparse_kernels
from emea.encoders.kernels.edge_orders import MAX_CHUNK, Chunks, EdgeOrders

MAX_CHANNELS = 2
"""Channels the kernels take at once."""

MAX_DIM = 512
"""Widest row the kernels hold in registers."""

SIDE_BY_SIDE = {"attend": 1, "reflector_gradient": 2}
"""Chunks of edges that one program of a kernel reads side by side, the fastest on an H200. More
chunks need more registers, so that fewer programs run at a time."""

IN_TURN = {"edge_gradients": 8, "feature_gradient": 8}
"""Chunks that one program of a kernel checks. It reads those with gradients one after the other."""

COMBINED = 32
"""Chunks of a hub that one program combines at a time."""


class Layer(NamedTuple):
    """Holds the inputs of a layer.

    Args:
        features: ``[num_channels, num_entities, dim]`` inputs, in any precision.
        reflectors: ``[num_sets, dim]`` unit vectors, in the same precision.
        row_terms: ``[num_channels, num_entities]`` products of the inputs with w.
        set_terms: ``[num_sets, num_channels, 2]`` products of the unit vectors with w and v. Only
            the last two dimensions must be dense.
        by_neighbour: ``[num_channels, dim]`` w.
        by_relation: ``[num_channels, dim]`` v.
    """

    features: Tensor
    reflectors: Tensor
    row_terms: Tensor
    set_terms: Tensor
    by_neighbour: Tensor
    by_relation: Tensor

    def sizes(self) -> dict[str, int]:
        """Return the constants of a kernel that sums over the edges of a layer."""
        num_channels, _, dim = self.features.shape
        widths = {"DIM": dim, "WIDTH": sparse_kernels.power_of_two(dim)}
        return {"CHANNELS": num_channels, "num_warps": 1, **widths}


class EdgeValues(NamedTuple):
    """Holds what the gradient of a layer needs.

    Args:
        along: ``[num_edges, num_channels]`` n.r.
        logits: ``[num_edges, num_channels]`` attention logits.
        log_mass: ``[num_channels, num_entities]`` logarithms of the softmax's denominators.
    """

    along: Tensor
    logits: Tensor
    log_mass: Tensor


class RowGradients(NamedTuple):
    """Holds the gradient of a layer's output before the activation.

    Args:
        values: ``[num_channels, num_entities, dim]`` gradient, in any precision.
        active: ``[num_channels, num_entities]`` bytes: whether a row has nonzero elements.
    """

    values: Tensor
    active: Tensor


def usable(features: Tensor, num_channels: int) -> bool:
    """Return whether the kernels support these features; otherwise torch's products are used."""
    fits = num_channels <= MAX_CHANNELS and features.shape[-1] <= MAX_DIM
    return fits and sparse_kernels.usable(features)


def attend(orders: EdgeOrders, layer: Layer) -> tuple[Tensor, EdgeValues]:
    """Return the sums of the messages, weighted by the softmax of their logits.

    Returns:
        ``[num_channels, num_entities, dim]`` sums, and what their gradient needs.
    """
    num_channels, num_rows, dim = layer.features.shape
    chunks, num_slots, num_edges = orders.rows, orders.rows.num_slots, len(orders.sets)
    new = layer.row_terms.new_empty
    out, log_mass = new(num_channels, num_rows, dim), new(num_channels, num_rows)
    along, logits = new(2, num_edges, num_channels)
    parts, part_scalars = new(num_channels, num_slots, dim), new(2, num_channels, num_slots)
    _run(
        "attend",
        chunks,
        *(orders.neighbours, orders.sets, *layer[:4]),
        *(along, logits, out, log_mass, parts, *part_scalars, num_rows, num_slots),
        TERMS=layer.set_terms.stride(0),
        **layer.sizes(),
    )
    pieces = (parts, *part_scalars, out, log_mass, num_rows, num_slots)
    _run_hubs("combine_attended", chunks, num_channels, *pieces, **_widths(dim))
    return out, EdgeValues(along, logits, log_mass)


def edge_gradients(
    orders: EdgeOrders,
    layer: Layer,
    edge_values: EdgeValues,
    out: Tensor,
    grad: RowGradients,
    reached: Tensor,
) -> Tensor:
    """Return the scalars of the edges: attention, n.r, and the gradients of logit and n.r.

    Those of edges of rows without a gradient are not written.

    Args:
        orders: The edges.
        layer: Inputs of the layer.
        edge_values: Logits and products of the edges.
        out: The layer's output in any precision, before or after a ReLU.
        grad: Gradient of the output.
        reached: ``[num_entities]`` bytes; those of neighbours of rows with a gradient become 1.
    """
    scalars = edge_values.logits.new_empty(*edge_values.logits.shape, 4)
    _run(
        "edge_gradients",
        orders.rows,
        *(orders.neighbours, orders.sets, layer.features, layer.reflectors, layer.set_terms),
        *(*edge_values, out, grad.active, grad.values, reached, scalars),
        layer.features.shape[1],
        TERMS=layer.set_terms.stride(0),
        **layer.sizes(),
    )
    return scalars


def feature_gradient(
    orders: EdgeOrders, layer: Layer, scalars: Tensor, grad: RowGradients, reached: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradient of the features, and of n.w of each entity.

    They are not written for entities that are not reached, which have no gradient.

    Returns:
        ``[num_channels, num_entities, dim]`` and ``[num_channels, num_entities]``.
    """
    num_channels, num_rows, dim = layer.features.shape
    chunks, num_slots = orders.columns, orders.columns.num_slots
    new = scalars.new_empty
    out, sums = new(num_channels, num_rows, dim), new(num_channels, num_rows)
    parts, part_sums = new(num_channels, num_slots, dim), new(num_channels, num_slots)
    _run(
        "feature_gradient",
        chunks,
        *(*orders.by_column, scalars, grad.active, grad.values),
        *(layer.reflectors, layer.by_neighbour),
        *(reached, out, sums, parts, part_sums, num_rows, num_slots),
        LONGEST=MAX_CHUNK,
        **layer.sizes(),
    )
    pieces = (parts, part_sums, out, sums, num_rows, num_slots)
    _run_hubs("combine_sums", chunks, num_channels, *pieces, ADD=False, SUMS=1, **_widths(dim))
    return out, sums


def add_reflector_gradient(
    orders: EdgeOrders,
    layer: Layer,
    scalars: Tensor,
    grad: RowGradients,
    out: Tensor,
    is_first: bool,
) -> Tensor:
    """Add the gradient of the reflectors to ``out``, or write it there.

    Args:
        orders: The edges.
        layer: Inputs of the layer.
        scalars: Scalars of the edges.
        grad: Gradient of the layer's output.
        out: ``[num_sets, dim]`` gradient of the reflectors.
        is_first: Whether ``out`` has no values yet.

    Returns:
        ``[2, num_channels, num_sets]`` sums of the logits' gradients over the edges of each set,
        and of their products with n.r.
    """
    num_channels, num_rows, dim = layer.features.shape
    chunks, num_slots, num_sets = orders.groups, orders.groups.num_slots, len(out)
    sums = scalars.new_empty(2, num_channels, num_sets)
    parts, part_sums = out.new_empty(num_slots, dim), out.new_empty(2 * num_channels, num_slots)
    _run(
        "reflector_gradient",
        chunks,
        *(*orders.by_set, scalars, grad.active, grad.values),
        *(layer.features, layer.by_neighbour, layer.by_relation),
        *(out, sums, parts, part_sums, num_rows, num_sets, num_slots),
        ADD=not is_first,
        LONGEST=MAX_CHUNK,
        **layer.sizes(),
    )
    pieces = (parts, part_sums, out, sums, num_sets, num_slots)
    constants = {"ADD": not is_first, "SUMS": 2 * num_channels, **_widths(dim)}
    _run_hubs("combine_sums", chunks, 1, *pieces, **constants)
    return sums


def _run(name: str, chunks: Chunks, *arguments: Any, **constants: int) -> None:
    """Run a kernel that sums over edges, with one program per group of chunks."""
    size = SIDE_BY_SIDE.get(name) or IN_TURN[name]
    constants["TILE" if name in SIDE_BY_SIDE else "GROUP"] = size
    num_chunks = len(chunks.runs)
    if num_chunks:
        grid = (-(-num_chunks // size),)
        _kernels()[name][grid](*chunks[:4], num_chunks, *arguments, **constants)


def _run_hubs(
    name: str, chunks: Chunks, num_channels: int, *arguments: Any, **constants: int
) -> None:
    """Run a kernel that combines the chunks of each hub, with one program per hub and channel."""
    if len(chunks.hubs):
        grid = (len(chunks.hubs), num_channels)
        _kernels()[name][grid](chunks.hubs, chunks.hub_slots, *arguments, **constants)


def _widths(dim: int) -> dict[str, int]:
    return {"DIM": dim, "TILE": COMBINED, "WIDTH": sparse_kernels.power_of_two(dim)}


@functools.cache
def _kernels() -> dict[str, Any]:
    # imported on first use, because torch does not always come with Triton
    from emea.encoders.kernels import triton_reflection, triton_reflection_gradient

    return {
        "attend": triton_reflection.attend_kernel,
        "combine_attended": triton_reflection.combine_attended_kernel,
        "edge_gradients": triton_reflection_gradient.edge_gradients_kernel,
        "feature_gradient": triton_reflection_gradient.feature_gradient_kernel,
        "reflector_gradient": triton_reflection_gradient.reflector_gradient_kernel,
        "combine_sums": triton_reflection_gradient.combine_sums_kernel,
    }
