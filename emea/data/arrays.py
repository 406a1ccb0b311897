"""Array types with names, used throughout the project."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from emea.errors import DataError

IntArray: TypeAlias = npt.NDArray[np.int64]
"""Triples are ``[n, 3]`` (head, relation, tail), links ``[n, 2]`` (source, target)."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""One number for each row of another array."""

NO_MATCH = -1
"""Target of an entity without a match."""


def frozen(values: npt.ArrayLike, columns: int) -> IntArray:
    """Return a read-only int64 copy with the given number of columns."""
    array = np.array(values, dtype=np.int64).reshape(-1, columns)
    array.flags.writeable = False
    return array


def check_ids(ids: IntArray, size: int, what: str) -> None:
    """Raise an error if an id is outside ``0..size-1``."""
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        raise DataError(
            f"{what} ids must lie in 0..{size - 1}, found {ids.min()}..{ids.max()}"
        )


def are_among(pairs: IntArray, others: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether pairs, ``[..., 2]``, are among others; targets may be ``NO_MATCH``."""
    width = 2 + max(int(part[..., 1].max(initial=0)) for part in (pairs, others))
    keys, known = (part[..., 0] * width + part[..., 1] + 1 for part in (pairs, others))
    return np.isin(keys, known)
