"""Triton kernels of the reflected attention, which need no tensor of edges x dimension.

A program handles some chunks of edges side by side (see ``edge_orders``), for all channels, and
reads one edge of each at a time. Its tiles are ``[TILE, CHANNELS, WIDTH]``: chunks, channels and
columns. Features are ``[channels, rows, DIM]``. As in ``triton_sparse``, the width of a row is a
constant. Features, reflectors and gradients that edges read may have reduced precision; sums and
results have single precision. The module can only be imported if Triton is installed.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from emea.kernels.edge_orders import Chunks, EdgeOrders
from emea.kernels.triton_sparse import as_bits, power_of_two

SIZES = ("num_chunks", "num_rows", "num_sets", "num_slots")
"""Numbers that depend on the data. Without this list, Triton would compile a kernel again for
multiples of 16, which does not make it faster."""

ATTEND_TILE = 1
"""Chunks of edges that one program reads side by side, the fastest on an H200. More chunks need
more registers, so that fewer programs run at a time."""

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
        widths = {"DIM": dim, "WIDTH": power_of_two(dim)}
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


@triton.jit
def load_reflectors(table, chosen, column, inside, DIM: tl.constexpr):
    """Return rows of a table of relation sets, ``[TILE, 1, WIDTH]``."""
    mask = inside[:, None] & (column < DIM)[None, :]
    rows = tl.load(
        table + chosen[:, None] * DIM + column[None, :], mask=mask, other=0.0
    )
    return rows.to(tl.float32)[:, None, :]


@triton.jit
def load_features(table, row, channel, column, inside, num_rows, DIM: tl.constexpr):
    """Return rows of all channels, ``[TILE, CHANNELS, WIDTH]``."""
    place = channel[None, :] * num_rows + row[:, None]
    mask = inside[:, None, None] & (column < DIM)[None, None, :]
    rows = tl.load(
        table + place[:, :, None] * DIM + column[None, None, :], mask=mask, other=0.0
    )
    return rows.to(tl.float32)


@triton.jit
def store_features(
    table, row, channel, column, inside, num_rows, values, DIM: tl.constexpr
):
    """Store rows of all channels, ``[TILE, CHANNELS, WIDTH]``."""
    place = channel[None, :] * num_rows + row[:, None]
    mask = inside[:, None, None] & (column < DIM)[None, None, :]
    tl.store(table + place[:, :, None] * DIM + column[None, None, :], values, mask=mask)


@triton.jit
def store_scalars(table, row, channel, inside, num_rows, values):
    """Store one number per row and channel, ``[TILE, CHANNELS]``."""
    place = channel[None, :] * num_rows + row[:, None]
    tl.store(table + place, values, mask=inside[:, None])


@triton.jit
def load_chunks(runs, starts, ends, slots, first, num_chunks, TILE: tl.constexpr):
    """Return run, first edge, end and slot of some chunks, and which of them exist."""
    chunk = first + tl.arange(0, TILE)
    exists = chunk < num_chunks
    run = tl.load(runs + chunk, mask=exists, other=0).to(tl.int64)
    begin = tl.load(starts + chunk, mask=exists, other=0)
    end = tl.load(ends + chunk, mask=exists, other=0)
    slot = tl.load(slots + chunk, mask=exists, other=-1).to(tl.int64)
    return run, begin, end, slot, exists


@triton.jit
def load_edges(
    neighbours,
    sets,
    features,
    reflectors,
    edge,
    channel,
    column,
    inside,
    num_rows,
    DIM: tl.constexpr,
):
    """Return neighbour and relation set of some edges, the neighbours' rows and the reflectors."""
    neighbour = tl.load(neighbours + edge, mask=inside, other=0).to(tl.int64)
    chosen = tl.load(sets + edge, mask=inside, other=0).to(tl.int64)
    r = load_reflectors(reflectors, chosen, column, inside, DIM)
    n = load_features(features, neighbour, channel, column, inside, num_rows, DIM)
    return neighbour, chosen, n, r


@triton.jit
def are_active(active, row, exists, num_rows, CHANNELS: tl.constexpr):
    """Return whether rows are active in any channel."""
    found = tl.load(active + row, mask=exists, other=0)
    for channel in tl.static_range(1, CHANNELS):
        found |= tl.load(active + channel * num_rows + row, mask=exists, other=0)
    return found != 0


@triton.jit
def active_edges(
    rows, begin, end, active, num_rows, CHANNELS: tl.constexpr, LONGEST: tl.constexpr
):
    """Return which edges of each chunk belong to active rows, a bit for each, and their number."""
    lane = tl.arange(0, LONGEST)
    place = begin[:, None] + lane[None, :]
    inside = place < end[:, None]
    row = tl.load(rows + place, mask=inside, other=0).to(tl.int64)
    chosen = are_active(active, row, inside, num_rows, CHANNELS)
    return as_bits(chosen, lane[None, :]), tl.sum(chosen.to(tl.int32), axis=1)


@triton.jit(do_not_specialize=SIZES)
def attend_kernel(
    runs,
    starts,
    ends,
    slots,
    num_chunks,
    neighbours,
    sets,
    features,
    reflectors,
    row_terms,
    set_terms,
    along,
    logits,
    out,
    log_mass,
    parts,
    part_peaks,
    part_mass,
    num_rows,
    num_slots,
    TERMS: tl.constexpr,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the logits, and the sum of the messages weighted by their softmax.

    The logit ``(n - 2 d r).w + r.v`` is computed from n.w of the neighbour, and from r.w and r.v of
    the set. Sums are relative to the largest logit so far.
    """
    first = tl.program_id(0) * TILE
    row, begin, end, slot, exists = load_chunks(
        runs, starts, ends, slots, first, num_chunks, TILE
    )
    column = tl.arange(0, WIDTH)
    channel = tl.arange(0, CHANNELS)
    total = tl.zeros([TILE, CHANNELS, WIDTH], dtype=tl.float32)
    peak = tl.full([TILE, CHANNELS], -1e38, dtype=tl.float32)
    mass = tl.zeros([TILE, CHANNELS], dtype=tl.float32)
    for step in range(tl.max(end - begin, axis=0)):
        edge = (begin + step).to(tl.int64)
        inside = edge < end
        neighbour, chosen, n, r = load_edges(
            neighbours,
            sets,
            features,
            reflectors,
            edge,
            channel,
            column,
            inside,
            num_rows,
            DIM,
        )
        d = tl.sum(n * r, axis=2)
        place = chosen[:, None] * TERMS + 2 * channel[None, :]
        by_w = tl.load(set_terms + place, mask=inside[:, None], other=0.0)
        by_v = tl.load(set_terms + place + 1, mask=inside[:, None], other=0.0)
        place = channel[None, :] * num_rows + neighbour[:, None]
        of_neighbour = tl.load(row_terms + place, mask=inside[:, None], other=0.0)
        logit = of_neighbour - 2.0 * d * by_w + by_v
        place = edge[:, None] * CHANNELS + channel[None, :]
        tl.store(along + place, d, mask=inside[:, None])
        tl.store(logits + place, logit, mask=inside[:, None])
        logit = tl.where(inside[:, None], logit, -float("inf"))
        higher = tl.maximum(peak, logit)
        weight = tl.exp(logit - higher)
        shrink = tl.exp(peak - higher)
        message = weight[:, :, None] * n - (2.0 * weight * d)[:, :, None] * r
        total = total * shrink[:, :, None] + message
        mass = mass * shrink + weight
        peak = higher
    is_part = exists & (slot >= 0)
    store_features(parts, slot, channel, column, is_part, num_slots, total, DIM)
    store_scalars(part_peaks, slot, channel, is_part, num_slots, peak)
    store_scalars(part_mass, slot, channel, is_part, num_slots, mass)
    mass = tl.where(mass == 0.0, 1.0, mass)  # an entity without edges
    is_whole = exists & (slot < 0)
    store_features(
        out, row, channel, column, is_whole, num_rows, total / mass[:, :, None], DIM
    )
    store_scalars(log_mass, row, channel, is_whole, num_rows, peak + tl.log(mass))


@triton.jit(do_not_specialize=SIZES)
def combine_attended_kernel(
    hubs,
    hub_slots,
    parts,
    part_peaks,
    part_mass,
    out,
    log_mass,
    num_rows,
    num_slots,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Combine the sums of a hub's chunks; one program per hub and channel."""
    hub = tl.program_id(0)
    rows_before = tl.program_id(1).to(tl.int64) * num_rows
    slots_before = tl.program_id(1).to(tl.int64) * num_slots
    begin = tl.load(hub_slots + hub)
    end = tl.load(hub_slots + hub + 1)
    column = tl.arange(0, WIDTH)
    total = tl.zeros([WIDTH], dtype=tl.float32)
    peak = -1e38
    mass = 0.0
    for offset in range(begin, end, TILE):
        slot = slots_before + offset + tl.arange(0, TILE)
        inside = offset + tl.arange(0, TILE) < end
        own = tl.load(part_peaks + slot, mask=inside, other=-float("inf"))
        higher = tl.maximum(peak, tl.max(own, axis=0))
        weight = tl.exp(own - higher)
        shrink = tl.exp(peak - higher)
        mask = inside[:, None] & (column < DIM)[None, :]
        part = tl.load(
            parts + slot[:, None] * DIM + column[None, :], mask=mask, other=0.0
        )
        total = total * shrink + tl.sum(weight[:, None] * part, axis=0)
        part = tl.load(part_mass + slot, mask=inside, other=0.0)
        mass = mass * shrink + tl.sum(weight * part, axis=0)
        peak = higher
    row = rows_before + tl.load(hubs + hub)
    tl.store(out + row * DIM + column, total / mass, mask=column < DIM)
    tl.store(log_mass + row, peak + tl.log(mass))


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
    parts, part_scalars = (
        new(num_channels, num_slots, dim),
        new(2, num_channels, num_slots),
    )
    run_on_chunks(
        attend_kernel,
        chunks,
        {"TILE": ATTEND_TILE},
        orders.neighbours,
        orders.sets,
        *layer[:4],
        along,
        logits,
        out,
        log_mass,
        parts,
        *part_scalars,
        num_rows,
        num_slots,
        TERMS=layer.set_terms.stride(0),
        **layer.sizes(),
    )
    pieces = (parts, *part_scalars, out, log_mass, num_rows, num_slots)
    run_on_hubs(combine_attended_kernel, chunks, num_channels, *pieces, **widths(dim))
    return out, EdgeValues(along, logits, log_mass)


def run_on_chunks(
    kernel: Any,
    chunks: Chunks,
    share: dict[str, int],
    *arguments: Any,
    **constants: int,
) -> None:
    """Run a kernel that sums over edges.

    Args:
        kernel: The kernel.
        chunks: Chunks of the edges.
        share: Name and value of the constant that says how many chunks a program works on.
        *arguments: Further arguments of the kernel.
        **constants: Further constants of the kernel.
    """
    num_chunks, (size,) = len(chunks.runs), share.values()
    if num_chunks:
        grid = (-(-num_chunks // size),)
        kernel[grid](*chunks[:4], num_chunks, *arguments, **share, **constants)


def run_on_hubs(
    kernel: Any, chunks: Chunks, num_channels: int, *arguments: Any, **constants: int
) -> None:
    """Run a kernel that combines the chunks of each hub, with one program per hub and channel."""
    if len(chunks.hubs):
        grid = (len(chunks.hubs), num_channels)
        kernel[grid](chunks.hubs, chunks.hub_slots, *arguments, **constants)


def widths(dim: int) -> dict[str, int]:
    """Return the constants of a kernel that combines the chunks of hubs."""
    return {"DIM": dim, "TILE": COMBINED, "WIDTH": power_of_two(dim)}
