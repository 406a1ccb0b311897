"""Compiled CPU loops over vectors of 8-bit integers; ``int8_vectors`` calls them."""

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from emea.matching.compiled_loops import exact

COLUMNS_IN_CACHE = 64
"""Columns that all rows are multiplied with before the next ones; they stay in the L1 cache."""


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
def products(rows, columns, out):
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
