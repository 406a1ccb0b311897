"""Compiled CPU loops over pairs of rows; ``compiled`` calls them."""

import numba
import numpy as np

compiled = numba.njit(
    nogil=True, cache=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"}
)


@compiled
def pair_dots(first, second, rows, columns, out):
    """Write the dot product of a row of each matrix, for each pair of rows."""
    for pair in range(len(rows)):
        row, column = rows[pair], columns[pair]
        total = np.float32(0)
        for k in range(first.shape[1]):
            total += first[row, k] * second[column, k]
        out[pair] = total
