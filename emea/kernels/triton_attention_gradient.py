"""Triton kernels of the gradient of the reflected attention; see ``triton_attention``.

The scalars of an edge are ``[edges, CHANNELS, 4]``: attention a, product d = n.r, and the gradients
of the logit and of d. They lie next to each other, because the kernels that sum over neighbours
and sets read them in another order.

A row is active if its gradient has nonzero elements. Late in training, few rows are active. The
edges of all other rows have no gradients, and their scalars are neither computed nor read.
"""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from emea.kernels.edge_orders import MAX_CHUNK, EdgeOrders
from emea.kernels.triton_attention import (
    SIZES,
    EdgeValues,
    Layer,
    active_edges,
    are_active,
    load_chunks,
    load_edges,
    load_features,
    load_reflectors,
    run_on_chunks,
    run_on_hubs,
    store_features,
    store_scalars,
    widths,
)
from emea.kernels.triton_sparse import as_bits, lowest_bit

REFLECTOR_TILE = 2
"""Chunks that one program reads side by side for the gradient of the reflectors."""

IN_TURN = 8
"""Chunks that one program of the other kernels checks. It reads those with gradients one after the
other."""


class RowGradients(NamedTuple):
    """Holds the gradient of a layer's output before the activation.

    Args:
        values: ``[num_channels, num_entities, dim]`` gradient, in any precision.
        active: ``[num_channels, num_entities]`` bytes: whether a row has nonzero elements.
    """

    values: Tensor
    active: Tensor


@triton.jit
def load_kernels(kernels, channel, column, DIM: tl.constexpr):
    """Return w or v of all channels, ``[1, CHANNELS, WIDTH]``."""
    place = channel[:, None] * DIM + column[None, :]
    return tl.load(kernels + place, mask=(column < DIM)[None, :], other=0.0)[None, :, :]


@triton.jit(do_not_specialize=SIZES)
def edge_gradients_kernel(
    runs,
    starts,
    ends,
    slots,
    num_chunks,
    neighbours,
    sets,
    features,
    reflectors,
    set_terms,
    along,
    logits,
    log_mass,
    out,
    active,
    grad,
    reached,
    scalars,
    num_rows,
    TERMS: tl.constexpr,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    GROUP: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the attention of active rows' edges and the gradients of their logits and of n.r.

    The neighbours of these rows are marked as reached. A program checks GROUP chunks, which are far
    apart, so that every program has long and short ones.
    """
    lane = tl.arange(0, GROUP)
    chunk = tl.program_id(0) + lane * tl.num_programs(0)
    of_chunk = tl.load(runs + chunk, mask=chunk < num_chunks, other=0).to(tl.int64)
    chosen = are_active(active, of_chunk, chunk < num_chunks, num_rows, CHANNELS)
    bits = as_bits(chosen, lane)
    column = tl.arange(0, WIDTH)
    channel = tl.arange(0, CHANNELS)
    for _ in range(tl.sum(chosen.to(tl.int32), axis=0)):
        first = tl.program_id(0) + lowest_bit(bits) * tl.num_programs(0)
        bits &= bits - 1
        row, begin, end, _slot, exists = load_chunks(
            runs, starts, ends, slots, first, num_chunks, 1
        )
        g = load_features(grad, row, channel, column, exists, num_rows, DIM)
        y = load_features(out, row, channel, column, exists, num_rows, DIM)
        total = tl.sum(g * y, axis=2)
        place = channel[None, :] * num_rows + row[:, None]
        mass = tl.load(log_mass + place)
        for step in range(tl.max(end - begin, axis=0)):
            edge = (begin + step).to(tl.int64)
            neighbour, chosen_set, n, r = load_edges(
                neighbours,
                sets,
                features,
                reflectors,
                edge,
                channel,
                column,
                exists,
                num_rows,
                DIM,
            )
            tl.store(reached + neighbour, tl.full([1], 1, dtype=tl.int8))
            place = edge[:, None] * CHANNELS + channel[None, :]
            d = tl.load(along + place)
            a = tl.exp(tl.load(logits + place) - mass)
            by_reflector = tl.sum(g * r, axis=2)
            by_message = tl.sum(g * n, axis=2) - 2.0 * d * by_reflector
            of_logit = a * (by_message - total)
            by_w = tl.load(
                set_terms + chosen_set[:, None] * TERMS + 2 * channel[None, :]
            )
            of_along = -2.0 * (a * by_reflector + of_logit * by_w)
            tl.store(scalars + 4 * place, a)
            tl.store(scalars + 4 * place + 1, d)
            tl.store(scalars + 4 * place + 2, of_logit)
            tl.store(scalars + 4 * place + 3, of_along)


def edge_gradients(
    orders: EdgeOrders,
    layer: Layer,
    edge_values: EdgeValues,
    *,
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
    run_on_chunks(
        edge_gradients_kernel,
        orders.rows,
        {"GROUP": IN_TURN},
        orders.neighbours,
        orders.sets,
        layer.features,
        layer.reflectors,
        layer.set_terms,
        *edge_values,
        out,
        grad.active,
        grad.values,
        reached,
        scalars,
        layer.features.shape[1],
        TERMS=layer.set_terms.stride(0),
        **layer.sizes(),
    )
    return scalars


@triton.jit(do_not_specialize=SIZES)
def feature_gradient_kernel(
    runs,
    starts,
    ends,
    slots,
    num_chunks,
    edges,
    rows,
    sets,
    scalars,
    active,
    grad,
    reflectors,
    by_neighbour,
    reached,
    out,
    sums,
    parts,
    part_sums,
    num_rows,
    num_slots,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    LONGEST: tl.constexpr,
    GROUP: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the gradient of reached features, and the sum of the gradients of their logits.

    Nothing is stored for other entities, except for the chunks of hubs, which are combined later.
    """
    lane = tl.arange(0, GROUP)
    chunk = tl.program_id(0) + lane * tl.num_programs(0)
    of_chunk = tl.load(runs + chunk, mask=chunk < num_chunks, other=0)
    chosen = tl.load(reached + of_chunk, mask=chunk < num_chunks, other=0) != 0
    chosen |= tl.load(slots + chunk, mask=chunk < num_chunks, other=-1) >= 0
    bits = as_bits(chosen, lane)
    column = tl.arange(0, WIDTH)
    channel = tl.arange(0, CHANNELS)
    w = load_kernels(by_neighbour, channel, column, DIM)
    for _ in range(tl.sum(chosen.to(tl.int32), axis=0)):
        first = tl.program_id(0) + lowest_bit(bits) * tl.num_programs(0)
        bits &= bits - 1
        run, begin, end, slot, exists = load_chunks(
            runs, starts, ends, slots, first, num_chunks, 1
        )
        total = tl.zeros([1, CHANNELS, WIDTH], dtype=tl.float32)
        of_logits = tl.zeros([1, CHANNELS], dtype=tl.float32)
        edge_bits, count = active_edges(
            rows, begin, end, active, num_rows, CHANNELS, LONGEST
        )
        for _ in range(tl.max(count, axis=0)):
            place = begin + lowest_bit(edge_bits)
            edge_bits &= edge_bits - 1
            row = tl.load(rows + place).to(tl.int64)
            chosen_set = tl.load(sets + place).to(tl.int64)
            edge = tl.load(edges + place).to(tl.int64)
            r = load_reflectors(reflectors, chosen_set, column, exists, DIM)
            g = load_features(grad, row, channel, column, exists, num_rows, DIM)
            own = scalars + 4 * (edge[:, None] * CHANNELS + channel[None, :])
            total += tl.load(own)[:, :, None] * g + tl.load(own + 3)[:, :, None] * r
            of_logits += tl.load(own + 2)
        total += of_logits[:, :, None] * w
        is_whole, is_part = slot < 0, slot >= 0
        store_features(out, run, channel, column, is_whole, num_rows, total, DIM)
        store_scalars(sums, run, channel, is_whole, num_rows, of_logits)
        store_features(parts, slot, channel, column, is_part, num_slots, total, DIM)
        store_scalars(part_sums, slot, channel, is_part, num_slots, of_logits)


def feature_gradient(
    orders: EdgeOrders,
    layer: Layer,
    scalars: Tensor,
    grad: RowGradients,
    reached: Tensor,
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
    run_on_chunks(
        feature_gradient_kernel,
        chunks,
        {"GROUP": IN_TURN},
        *orders.by_column,
        scalars,
        grad.active,
        grad.values,
        layer.reflectors,
        layer.by_neighbour,
        reached,
        out,
        sums,
        parts,
        part_sums,
        num_rows,
        num_slots,
        LONGEST=MAX_CHUNK,
        **layer.sizes(),
    )
    pieces = (parts, part_sums, out, sums, num_rows, num_slots)
    run_on_hubs(
        combine_sums_kernel,
        chunks,
        num_channels,
        *pieces,
        ADD=False,
        SUMS=1,
        **widths(dim),
    )
    return out, sums


@triton.jit(do_not_specialize=SIZES)
def reflector_gradient_kernel(
    runs,
    starts,
    ends,
    slots,
    num_chunks,
    edges_by_neighbour,
    neighbours,
    rows_by_neighbour,
    edges_by_row,
    rows,
    scalars,
    active,
    grad,
    features,
    by_neighbour,
    by_relation,
    out,
    sums,
    parts,
    part_sums,
    num_rows,
    num_sets,
    num_slots,
    ADD: tl.constexpr,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    LONGEST: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the gradient of the reflectors, and two sums over the edges of a set.

    The sums are those of the logits' gradients and of their products with n.r.
    """
    first = tl.program_id(0) * TILE
    run, begin, end, slot, exists = load_chunks(
        runs, starts, ends, slots, first, num_chunks, TILE
    )
    column = tl.arange(0, WIDTH)
    channel = tl.arange(0, CHANNELS)
    total = tl.zeros([TILE, CHANNELS, WIDTH], dtype=tl.float32)
    of_logits = tl.zeros([TILE, CHANNELS], dtype=tl.float32)
    of_products = tl.zeros([TILE, CHANNELS], dtype=tl.float32)
    bits, count = active_edges(
        rows_by_neighbour, begin, end, active, num_rows, CHANNELS, LONGEST
    )
    for _ in range(tl.max(count, axis=0)):
        inside = bits != 0
        place = begin + lowest_bit(bits)
        bits &= bits - 1
        neighbour = tl.load(neighbours + place, mask=inside, other=0).to(tl.int64)
        edge = tl.load(edges_by_neighbour + place, mask=inside, other=0).to(tl.int64)
        n = load_features(features, neighbour, channel, column, inside, num_rows, DIM)
        own = scalars + 4 * (edge[:, None] * CHANNELS + channel[None, :])
        d = tl.load(own + 1, mask=inside[:, None], other=0.0)
        of_logit = tl.load(own + 2, mask=inside[:, None], other=0.0)
        of_along = tl.load(own + 3, mask=inside[:, None], other=0.0)
        total += of_along[:, :, None] * n
        of_logits += of_logit
        of_products += of_logit * d
    # the same places of the other order have other edges of the set
    bits, count = active_edges(rows, begin, end, active, num_rows, CHANNELS, LONGEST)
    for _ in range(tl.max(count, axis=0)):
        inside = bits != 0
        place = begin + lowest_bit(bits)
        bits &= bits - 1
        row = tl.load(rows + place, mask=inside, other=0).to(tl.int64)
        edge = tl.load(edges_by_row + place, mask=inside, other=0).to(tl.int64)
        g = load_features(grad, row, channel, column, inside, num_rows, DIM)
        own = scalars + 4 * (edge[:, None] * CHANNELS + channel[None, :])
        a = tl.load(own, mask=inside[:, None], other=0.0)
        d = tl.load(own + 1, mask=inside[:, None], other=0.0)
        total -= (2.0 * a * d)[:, :, None] * g
    total += of_logits[:, :, None] * load_kernels(by_relation, channel, column, DIM)
    total -= (
        2.0 * of_products[:, :, None] * load_kernels(by_neighbour, channel, column, DIM)
    )
    of_set = tl.sum(total, axis=1)
    is_whole, is_part = exists & (slot < 0), exists & (slot >= 0)
    mask = is_part[:, None] & (column < DIM)[None, :]
    tl.store(parts + slot[:, None] * DIM + column[None, :], of_set, mask=mask)
    where = out + run[:, None] * DIM + column[None, :]
    mask = is_whole[:, None] & (column < DIM)[None, :]
    if ADD:
        of_set += tl.load(where, mask=mask, other=0.0)
    tl.store(where, of_set, mask=mask)
    store_scalars(sums, run, channel, is_whole, num_sets, of_logits)
    store_scalars(
        sums + CHANNELS * num_sets, run, channel, is_whole, num_sets, of_products
    )
    store_scalars(part_sums, slot, channel, is_part, num_slots, of_logits)
    store_scalars(
        part_sums + CHANNELS * num_slots, slot, channel, is_part, num_slots, of_products
    )


def add_reflector_gradient(
    orders: EdgeOrders,
    layer: Layer,
    scalars: Tensor,
    grad: RowGradients,
    *,
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
    parts, part_sums = (
        out.new_empty(num_slots, dim),
        out.new_empty(2 * num_channels, num_slots),
    )
    run_on_chunks(
        reflector_gradient_kernel,
        chunks,
        {"TILE": REFLECTOR_TILE},
        *orders.by_set,
        scalars,
        grad.active,
        grad.values,
        layer.features,
        layer.by_neighbour,
        layer.by_relation,
        out,
        sums,
        parts,
        part_sums,
        num_rows,
        num_sets,
        num_slots,
        ADD=not is_first,
        LONGEST=MAX_CHUNK,
        **layer.sizes(),
    )
    pieces = (parts, part_sums, out, sums, num_sets, num_slots)
    constants = {"ADD": not is_first, "SUMS": 2 * num_channels, **widths(dim)}
    run_on_hubs(combine_sums_kernel, chunks, 1, *pieces, **constants)
    return sums


@triton.jit(do_not_specialize=SIZES)
def combine_sums_kernel(
    hubs,
    hub_slots,
    parts,
    part_sums,
    out,
    sums,
    num_rows,
    num_slots,
    ADD: tl.constexpr,
    SUMS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Add up the rows and sums of a hub's chunks; one program per hub and channel."""
    hub = tl.program_id(0)
    channel = tl.program_id(1).to(tl.int64)
    begin = tl.load(hub_slots + hub)
    end = tl.load(hub_slots + hub + 1)
    column = tl.arange(0, WIDTH)
    kind = tl.arange(0, SUMS)
    total = tl.zeros([WIDTH], dtype=tl.float32)
    scalar = tl.zeros([SUMS], dtype=tl.float32)
    for offset in range(begin, end, TILE):
        slot = offset + tl.arange(0, TILE)
        inside = slot < end
        mask = inside[:, None] & (column < DIM)[None, :]
        place = (channel * num_slots + slot)[:, None] * DIM + column[None, :]
        total += tl.sum(tl.load(parts + place, mask=mask, other=0.0), axis=0)
        place = (channel * SUMS + kind)[None, :] * num_slots + slot[:, None]
        scalar += tl.sum(
            tl.load(part_sums + place, mask=inside[:, None], other=0.0), axis=0
        )
    row = tl.load(hubs + hub).to(tl.int64)
    where = out + (channel * num_rows + row) * DIM + column
    if ADD:
        total += tl.load(where, mask=column < DIM, other=0.0)
    tl.store(where, total, mask=column < DIM)
    tl.store(sums + (channel * SUMS + kind) * num_rows + row, scalar)
