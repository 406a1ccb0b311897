"""Compiled CPU loops over pairs of rows and blocks of scores."""

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

compiled = numba.njit(
    nogil=True, cache=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"}
)

exact = numba.njit(nogil=True, cache=True, boundscheck=False)


@compiled
def pair_dots(start, stop, first, second, rows, columns, out):
    """Write the dot product of a row of each matrix, for some pairs of rows."""
    for pair in range(start, stop):
        row, column = rows[pair], columns[pair]
        total = np.float32(0)
        for k in range(first.shape[1]):
            total += first[row, k] * second[column, k]
        out[pair] = total


@exact
def other_sums(start, stop, groups, terms, out):
    """Write 1 + the sum of the other terms of its entity for each pair of some entities.

    At most one term of an entity is more than half of the sum. Subtracting it would cancel, so
    the others are summed without it.

    Args:
        start: First entity.
        stop: Last entity + 1.
        groups: Start of each entity's pairs in the list of pairs, and the places of the pairs.
        terms: Term of each place.
        out: Sum of each place.
    """
    starts, places = groups
    one, half = terms.dtype.type(1), terms.dtype.type(0.5)
    for entity in range(start, stop):
        total = one
        for pair in range(starts[entity], starts[entity + 1]):
            total += terms[places[pair]]
        for pair in range(starts[entity], starts[entity + 1]):
            place = places[pair]
            others = total - terms[place]
            if terms[place] > half * total:
                others = one
                for other in range(starts[entity], starts[entity + 1]):
                    if other != pair:
                        others += terms[places[other]]
            out[place] = others


@exact
def rank_counts(start, stop, scores, reference, counts, num_columns):
    """Count the scores of some rows that are at most the reference, and those equal to it."""
    for row in range(start, stop):
        bound, not_better, equal = reference[row, 0], 0, 0
        for column in range(num_columns):
            not_better += scores[row, column] <= bound
            equal += scores[row, column] == bound
        counts[0, row] = not_better
        counts[1, row] = equal


@exact
def _keep_largest(keys, number, count):
    """Move the largest keys of a full list to its front, and return the smallest of their scores.

    This is quickselect. All keys are different.
    """
    low, high = 0, keys.shape[1] - 1
    while low < high:
        pivot = keys[number, (low + high) // 2]
        left, right = low, high
        while left <= right:
            while keys[number, left] > pivot:
                left += 1
            while keys[number, right] < pivot:
                right -= 1
            if left <= right:
                other = keys[number, left]
                keys[number, left] = keys[number, right]
                keys[number, right] = other
                left += 1
                right -= 1
        if count <= right:
            high = right
        elif count > left:
            low = left
        else:
            break
    least = keys[number, 0]
    for place in range(count):
        least = min(least, keys[number, place])
    return least >> 32


@exact
def keep_best(scores, first, rows, columns):
    """Add the scores of a block to the lists of the best keys of its rows and columns.

    A list is full when it has twice as many keys as are wanted. Its best half is then kept, and
    only scores above the smallest of these are added. They are few, so whole groups of scores are
    compared first.

    Args:
        scores: ``[num_rows, num_groups, group]`` scores.
        first: First row, first group of columns and id of row 0.
        rows: ``[all rows, 2 * length]`` keys of columns, ``[all rows]`` numbers of keys and scores
            to exceed.
        columns: ``[all columns, 2 * length]`` keys of rows, ``[all groups, group]`` numbers of keys
            and scores to exceed.
    """
    first_row, first_group, first_id = first
    row_keys, row_sizes, row_least = rows
    column_keys, column_sizes, column_least = columns
    num_rows, num_groups, group_size = scores.shape
    num_columns = column_keys.shape[0]
    for place in range(num_rows):
        row = first_row + place
        of_row = np.int64(2147483647 - first_id - row)
        for part in range(num_groups):
            group, least, found = first_group + part, row_least[row], False
            for k in range(group_size):
                score = scores[place, part, k]
                found |= (score > least) | (score > column_least[group, k])
            if not found:
                continue
            for k in range(group_size):
                if scores[place, part, k] <= min(least, column_least[group, k]):
                    continue
                score, column = np.int64(scores[place, part, k]), group * group_size + k
                if score > row_least[row] and column < num_columns:
                    row_keys[row, row_sizes[row]] = (score << 32) | (
                        2147483647 - column
                    )
                    row_sizes[row] += 1
                    if row_sizes[row] == row_keys.shape[1]:
                        row_sizes[row] = row_keys.shape[1] // 2
                        row_least[row] = _keep_largest(row_keys, row, row_sizes[row])
                if score > column_least[group, k]:
                    column_keys[column, column_sizes[group, k]] = (score << 32) | of_row
                    column_sizes[group, k] += 1
                    if column_sizes[group, k] == column_keys.shape[1]:
                        column_sizes[group, k] = column_keys.shape[1] // 2
                        column_least[group, k] = _keep_largest(
                            column_keys, column, column_sizes[group, k]
                        )


COLUMNS_IN_CACHE = 64
"""Columns of 8-bit integers that all rows are multiplied with before the next ones; they stay in
the L1 cache."""


@intrinsic
def _plus_product(context, total, first, second):
    """Return ``total + first * second`` in 32 bits.

    Numba's own sum has 64 bits, which the instructions for 8-bit integers do not compute.
    """

    def generate(_context, builder, _signature, values):
        number = ir.IntType(32)
        first, second = (builder.sext(value, number) for value in values[1:])
        return builder.add(values[0], builder.mul(first, second))

    return numba.int32(numba.int32, numba.int8, numba.int8), generate


@exact
def int8_products(rows, columns, out):
    """Write the dot products of all pairs of rows and columns.

    Sixteen products are summed at a time, so that a vector that is read is used four times. At the
    end of a matrix, the last vector is repeated.
    """
    add, last_row, last_column = _plus_product, len(rows) - 1, len(columns) - 1
    for first in range(0, len(columns), COLUMNS_IN_CACHE):
        for a in range(0, len(rows), 4):
            b, c, d = min(a + 1, last_row), min(a + 2, last_row), min(a + 3, last_row)
            for w in range(first, min(first + COLUMNS_IN_CACHE, len(columns)), 4):
                x, y = min(w + 1, last_column), min(w + 2, last_column)
                z = min(w + 3, last_column)
                aw = ax = ay = az = bw = bx = by = bz = np.int32(0)
                cw = cx = cy = cz = dw = dx = dy = dz = np.int32(0)
                for k in range(rows.shape[1]):
                    aw = add(aw, rows[a, k], columns[w, k])
                    ax = add(ax, rows[a, k], columns[x, k])
                    ay = add(ay, rows[a, k], columns[y, k])
                    az = add(az, rows[a, k], columns[z, k])
                    bw = add(bw, rows[b, k], columns[w, k])
                    bx = add(bx, rows[b, k], columns[x, k])
                    by = add(by, rows[b, k], columns[y, k])
                    bz = add(bz, rows[b, k], columns[z, k])
                    cw = add(cw, rows[c, k], columns[w, k])
                    cx = add(cx, rows[c, k], columns[x, k])
                    cy = add(cy, rows[c, k], columns[y, k])
                    cz = add(cz, rows[c, k], columns[z, k])
                    dw = add(dw, rows[d, k], columns[w, k])
                    dx = add(dx, rows[d, k], columns[x, k])
                    dy = add(dy, rows[d, k], columns[y, k])
                    dz = add(dz, rows[d, k], columns[z, k])
                out[a, w], out[a, x], out[a, y], out[a, z] = aw, ax, ay, az
                out[b, w], out[b, x], out[b, y], out[b, z] = bw, bx, by, bz
                out[c, w], out[c, x], out[c, y], out[c, z] = cw, cx, cy, cz
                out[d, w], out[d, x], out[d, y], out[d, z] = dw, dx, dy, dz
