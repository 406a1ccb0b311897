"""Triton source of the reflected attention (imported only if Triton is installed).

The channel is the first dimension of all tensors: features are ``[channels, rows, DIM]``, and the
scalars of edges are ``[channels, edges]``. As in ``triton_source``, the width of a row is a
constant. Sums into a row of several chunks are atomic. Tables may have reduced precision; sums have
single precision.
"""

import triton
import triton.language as tl


@triton.jit
def load_rows(table, row, column, inside, DIM: tl.constexpr):
    """Return rows of a table with DIM columns, and zeros outside of the table."""
    mask = inside[:, None] & (column < DIM)[None, :]
    rows = tl.load(table + row[:, None] * DIM + column[None, :], mask=mask, other=0.0)
    return rows.to(tl.float32)


@triton.jit
def store_or_add(out, row, alone, total, column, DIM: tl.constexpr):
    """Store a chunk's part of a row, or add it if the row has several chunks."""
    where = out + row * DIM + column
    if alone != 0:
        tl.store(where, total, mask=column < DIM)
    else:
        tl.atomic_add(where, total, mask=column < DIM)


@triton.jit
def logits_kernel(
    cols,
    sets,
    features,
    reflectors,
    by_neighbour,
    by_relation,
    along,
    logits,
    num_edges,
    num_rows,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute ``n.r`` and the attention logit of each edge; one program per tile of edges."""
    edge = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    column = tl.arange(0, WIDTH)
    inside = edge < num_edges
    neighbour = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
    r = load_rows(reflectors, tl.load(sets + edge, mask=inside, other=0), column, inside, DIM)
    for channel in tl.static_range(CHANNELS):
        n = load_rows(features + channel * num_rows * DIM, neighbour, column, inside, DIM)
        w = tl.load(by_neighbour + channel * DIM + column, mask=column < DIM, other=0.0)
        v = tl.load(by_relation + channel * DIM + column, mask=column < DIM, other=0.0)
        d = tl.sum(n * r, axis=1)
        logit = tl.sum((n - 2.0 * d[:, None] * r) * w[None, :] + r * v[None, :], axis=1)
        tl.store(along + channel * num_edges + edge, d, mask=inside)
        tl.store(logits + channel * num_edges + edge, logit, mask=inside)


@triton.jit
def reflected_sum_kernel(
    chunk_rows,
    chunk_starts,
    chunk_ends,
    chunk_alone,
    cols,
    sets,
    attention,
    along,
    features,
    reflectors,
    out,
    num_edges,
    num_rows,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Sum the messages weighted by attention; one program per chunk of a row."""
    chunk = tl.program_id(0)
    row = tl.load(chunk_rows + chunk).to(tl.int64)
    end = tl.load(chunk_ends + chunk)
    column = tl.arange(0, WIDTH)
    first = tl.zeros([WIDTH], dtype=tl.float32)
    second = tl.zeros([WIDTH], dtype=tl.float32)
    for offset in range(tl.load(chunk_starts + chunk), end, TILE):
        edge = offset + tl.arange(0, TILE)
        inside = edge < end
        neighbour = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
        r = load_rows(reflectors, tl.load(sets + edge, mask=inside, other=0), column, inside, DIM)
        n = load_rows(features, neighbour, column, inside, DIM)
        a = tl.load(attention + edge, mask=inside, other=0.0)
        d = tl.load(along + edge, mask=inside, other=0.0)
        first += tl.sum(a[:, None] * n - (2.0 * a * d)[:, None] * r, axis=0)
        if CHANNELS == 2:
            n = load_rows(features + num_rows * DIM, neighbour, column, inside, DIM)
            a = tl.load(attention + num_edges + edge, mask=inside, other=0.0)
            d = tl.load(along + num_edges + edge, mask=inside, other=0.0)
            second += tl.sum(a[:, None] * n - (2.0 * a * d)[:, None] * r, axis=0)
    alone = tl.load(chunk_alone + chunk)
    store_or_add(out, row, alone, first, column, DIM)
    if CHANNELS == 2:
        store_or_add(out + num_rows * DIM, row, alone, second, column, DIM)


@triton.jit
def row_dots_kernel(
    left, right, out, num_rows, DIM: tl.constexpr, TILE: tl.constexpr, WIDTH: tl.constexpr
):
    """Compute ``left[row] . right[row]``; one program per tile of rows."""
    row = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    column = tl.arange(0, WIDTH)
    inside = row < num_rows
    product = load_rows(left, row, column, inside, DIM) * load_rows(right, row, column, inside, DIM)
    tl.store(out + row, tl.sum(product, axis=1), mask=inside)


@triton.jit
def edge_gradients_kernel(
    rows,
    cols,
    sets,
    attention,
    along,
    totals,
    grad,
    features,
    reflectors,
    by_neighbour,
    grad_logits,
    grad_along,
    shares_of_w,
    shares_of_v,
    num_edges,
    num_rows,
    TILES: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the gradients of the edges' logits and of ``n.r``; one program per run of tiles.

    Each program also stores its part of the gradients of ``w`` and ``v``, which are summed later.
    """
    channel = tl.program_id(1).to(tl.int64)
    edges_before = channel * num_edges
    rows_before = channel * num_rows
    column = tl.arange(0, WIDTH)
    w = tl.load(by_neighbour + channel * DIM + column, mask=column < DIM, other=0.0)
    of_w = tl.zeros([WIDTH], dtype=tl.float32)
    of_v = tl.zeros([WIDTH], dtype=tl.float32)
    for tile in range(TILES):
        edge = (tl.program_id(0).to(tl.int64) * TILES + tile) * TILE + tl.arange(0, TILE)
        inside = edge < num_edges
        row = tl.load(rows + edge, mask=inside, other=0).to(tl.int64)
        neighbour = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
        r = load_rows(reflectors, tl.load(sets + edge, mask=inside, other=0), column, inside, DIM)
        g = load_rows(grad + rows_before * DIM, row, column, inside, DIM)
        n = load_rows(features + rows_before * DIM, neighbour, column, inside, DIM)
        a = tl.load(attention + edges_before + edge, mask=inside, other=0.0)
        d = tl.load(along + edges_before + edge, mask=inside, other=0.0)
        message = n - 2.0 * d[:, None] * r
        total = tl.load(totals + rows_before + row, mask=inside, other=0.0)
        of_logit = a * (tl.sum(g * message, axis=1) - total)
        by_reflector = a * tl.sum(g * r, axis=1) + of_logit * tl.sum(r * w[None, :], axis=1)
        tl.store(grad_logits + edges_before + edge, of_logit, mask=inside)
        tl.store(grad_along + edges_before + edge, -2.0 * by_reflector, mask=inside)
        of_w += tl.sum(of_logit[:, None] * message, axis=0)
        of_v += tl.sum(of_logit[:, None] * r, axis=0)
    where = (channel * tl.num_programs(0) + tl.program_id(0)) * DIM + column
    tl.store(shares_of_w + where, of_w, mask=column < DIM)
    tl.store(shares_of_v + where, of_v, mask=column < DIM)


@triton.jit
def feature_share(
    edge, inside, row, r, w, attention, grad_logits, grad_along, grad, column, DIM: tl.constexpr
):
    """Return what a tile of edges adds to the gradient of its neighbour."""
    a = tl.load(attention + edge, mask=inside, other=0.0)
    of_logit = tl.load(grad_logits + edge, mask=inside, other=0.0)
    of_along = tl.load(grad_along + edge, mask=inside, other=0.0)
    g = load_rows(grad, row, column, inside, DIM)
    return tl.sum(a[:, None] * g + of_along[:, None] * r, axis=0) + tl.sum(of_logit, axis=0) * w


@triton.jit
def feature_gradient_kernel(
    chunk_rows,
    chunk_starts,
    chunk_ends,
    chunk_alone,
    edges,
    rows,
    sets,
    attention,
    grad_logits,
    grad_along,
    grad,
    reflectors,
    by_neighbour,
    out,
    num_edges,
    num_rows,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the gradient of the features; one program per chunk of an entity's outgoing edges."""
    chunk = tl.program_id(0)
    end = tl.load(chunk_ends + chunk)
    column = tl.arange(0, WIDTH)
    w_first = tl.load(by_neighbour + column, mask=column < DIM, other=0.0)
    w_second = tl.load(by_neighbour + (CHANNELS - 1) * DIM + column, mask=column < DIM, other=0.0)
    first = tl.zeros([WIDTH], dtype=tl.float32)
    second = tl.zeros([WIDTH], dtype=tl.float32)
    for offset in range(tl.load(chunk_starts + chunk), end, TILE):
        place = offset + tl.arange(0, TILE)
        inside = place < end
        edge = tl.load(edges + place, mask=inside, other=0).to(tl.int64)
        row = tl.load(rows + place, mask=inside, other=0).to(tl.int64)
        r = load_rows(reflectors, tl.load(sets + edge, mask=inside, other=0), column, inside, DIM)
        first += feature_share(
            edge, inside, row, r, w_first, attention, grad_logits, grad_along, grad, column, DIM
        )
        if CHANNELS == 2:
            second += feature_share(
                edge,
                inside,
                row,
                r,
                w_second,
                attention + num_edges,
                grad_logits + num_edges,
                grad_along + num_edges,
                grad + num_rows * DIM,
                column,
                DIM,
            )
    row = tl.load(chunk_rows + chunk).to(tl.int64)
    alone = tl.load(chunk_alone + chunk)
    store_or_add(out, row, alone, first, column, DIM)
    if CHANNELS == 2:
        store_or_add(out + num_rows * DIM, row, alone, second, column, DIM)


@triton.jit
def reflector_gradient_kernel(
    chunk_rows,
    chunk_starts,
    chunk_ends,
    chunk_alone,
    edges,
    rows,
    cols,
    attention,
    along,
    grad_logits,
    grad_along,
    grad,
    features,
    by_neighbour,
    by_relation,
    out,
    num_edges,
    num_rows,
    CHANNELS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the gradient of the reflectors; one program per chunk of a relation set's edges."""
    chunk = tl.program_id(0)
    end = tl.load(chunk_ends + chunk)
    column = tl.arange(0, WIDTH)
    total = tl.zeros([WIDTH], dtype=tl.float32)
    for offset in range(tl.load(chunk_starts + chunk), end, TILE):
        place = offset + tl.arange(0, TILE)
        inside = place < end
        edge = tl.load(edges + place, mask=inside, other=0).to(tl.int64)
        row = tl.load(rows + place, mask=inside, other=0).to(tl.int64)
        neighbour = tl.load(cols + edge, mask=inside, other=0).to(tl.int64)
        for channel in tl.static_range(CHANNELS):
            place_of = channel * num_edges + edge
            a = tl.load(attention + place_of, mask=inside, other=0.0)
            d = tl.load(along + place_of, mask=inside, other=0.0)
            of_logit = tl.load(grad_logits + place_of, mask=inside, other=0.0)
            of_along = tl.load(grad_along + place_of, mask=inside, other=0.0)
            g = load_rows(grad + channel * num_rows * DIM, row, column, inside, DIM)
            n = load_rows(features + channel * num_rows * DIM, neighbour, column, inside, DIM)
            w = tl.load(by_neighbour + channel * DIM + column, mask=column < DIM, other=0.0)
            v = tl.load(by_relation + channel * DIM + column, mask=column < DIM, other=0.0)
            total += tl.sum(of_along[:, None] * n - (2.0 * a * d)[:, None] * g, axis=0)
            total += tl.sum(of_logit, axis=0) * v - 2.0 * tl.sum(of_logit * d, axis=0) * w
    row = tl.load(chunk_rows + chunk).to(tl.int64)
    store_or_add(out, row, tl.load(chunk_alone + chunk), total, column, DIM)
