"""Sorts ids in linear time. Ids are small integers, so counting is faster than comparing."""

import math

import numpy as np

from emea.data.arrays import FloatArray, IntArray

FEW_IDS = 100_000
"""Comparing up to this many ids takes less time than loading scipy."""

LARGEST_KEY = 2**63
"""Rows with fewer possible values are sorted as one integer each."""


def stable_order(ids: IntArray, num_ids: int) -> IntArray:
    """Return the positions that sort the ids. Equal ids keep their order."""
    if len(ids) <= FEW_IDS:
        return np.argsort(ids, kind="stable")
    from scipy.sparse import coo_array

    places = np.arange(len(ids))
    # compressing rows is a counting sort by row; it keeps the order within a row
    by_id = coo_array((places, (ids, places)), shape=(num_ids, len(ids)))
    order: IntArray = by_id.tocsr().data
    return order


def run_starts(*columns: IntArray) -> IntArray:
    """Return the first position of each distinct row in sorted rows."""
    new = np.ones(len(columns[0]), dtype=bool)
    if len(new):
        new[1:] = False
        for ids in columns:
            new[1:] |= ids[1:] != ids[:-1]
    return np.flatnonzero(new)


def distinct_ids(ids: IntArray) -> IntArray:
    """Return the distinct ids, ascending."""
    # np.unique uses hashing, which takes five times as long on millions of ids
    ordered = np.sort(ids)
    distinct: IntArray = ordered[run_starts(ordered)]
    return distinct


def average_ranks(values: np.ndarray) -> FloatArray:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = np.cumsum(counts) - (counts - 1) / 2
    return ranks[inverse]


def places_in_runs(sizes: IntArray) -> IntArray:
    """Return 0, 1, 2, ... for each run, where ``sizes`` gives the lengths of consecutive runs."""
    before: IntArray = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) - np.repeat(before, sizes)


def distinct_rows(columns: list[IntArray], sizes: list[int]) -> list[IntArray]:
    """Return the distinct rows in lexicographic order."""
    if math.prod(sizes) < LARGEST_KEY:
        keys = distinct_ids(packed_rows(columns, sizes))
        found = []
        for size in reversed(sizes[1:]):
            keys, ids = np.divmod(keys, size)
            found.append(ids)
        return [keys, *reversed(found)]
    return numbered_rows(columns, sizes)[0]


def packed_rows(columns: list[IntArray], sizes: list[int]) -> IntArray:
    """Return one integer per row, in the lexicographic order of the rows."""
    keys = columns[0].astype(np.int64)
    for ids, size in zip(columns[1:], sizes[1:], strict=True):
        keys = keys * size + ids
    return keys


def numbered_rows(
    columns: list[IntArray], sizes: list[int]
) -> tuple[list[IntArray], IntArray]:
    """Return the distinct rows in lexicographic order, and the index of each row among them."""
    order = stable_order(columns[-1], sizes[-1])
    for ids, size in zip(reversed(columns[:-1]), reversed(sizes[:-1]), strict=True):
        order = order[stable_order(ids[order], size)]
    ordered = [ids[order] for ids in columns]
    starts = run_starts(*ordered)
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.repeat(
        np.arange(len(starts)), np.diff(starts, append=len(order))
    )
    return [ids[starts] for ids in ordered], inverse
