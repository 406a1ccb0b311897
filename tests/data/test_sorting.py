"""Counting sorts against numpy's comparing ones."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from emea.data import sorting
from emea.data.sorting import (
    average_ranks,
    distinct_ids,
    distinct_rows,
    numbered_rows,
    places_in_runs,
    run_starts,
    stable_order,
)

SIZES = [4, 3, 6]
ROWS = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), max_size=30)


def as_columns(rows: list[tuple[int, ...]]) -> list[np.ndarray]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, len(SIZES)).T)


@pytest.mark.parametrize("few_ids", [0, sorting.FEW_IDS])
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_stable_order(few_ids: int, ids: list[int]) -> None:
    array = np.array(ids, dtype=np.int64)
    with mock.patch.object(sorting, "FEW_IDS", few_ids):
        assert (
            stable_order(array, 6).tolist() == np.argsort(array, kind="stable").tolist()
        )


@given(ROWS)
def test_distinct_rows(rows: list[tuple[int, ...]]) -> None:
    for largest_key in (sorting.LARGEST_KEY, 0):
        with mock.patch.object(sorting, "LARGEST_KEY", largest_key):
            distinct = distinct_rows(as_columns(rows), SIZES)
        assert list(zip(*(ids.tolist() for ids in distinct), strict=True)) == sorted(
            set(rows)
        )


def test_distinct_rows_of_the_largest_keys() -> None:
    sizes = [2**31, 2**16, 2**16 - 1]
    rows = [[size - 1 for size in sizes], [0, 0, 0], [2**31 - 1, 0, 5], [0, 0, 0]]
    assert math.prod(sizes) < sorting.LARGEST_KEY
    columns = list(np.array(rows, dtype=np.int64).T)
    assert np.stack(distinct_rows(columns, sizes), axis=1).tolist() == [
        rows[1],
        rows[2],
        rows[0],
    ]


@given(ROWS)
def test_numbered_rows(rows: list[tuple[int, ...]]) -> None:
    distinct, numbers = numbered_rows(as_columns(rows), SIZES)
    ordered = sorted(set(rows))
    assert list(zip(*(ids.tolist() for ids in distinct), strict=True)) == ordered
    assert [ordered[number] for number in numbers] == rows


@pytest.mark.parametrize(
    ("ids", "starts"), [([], []), ([3], [0]), ([1, 1, 2, 2, 2, 5], [0, 2, 5])]
)
def test_run_starts(ids: list[int], starts: list[int]) -> None:
    assert run_starts(np.array(ids, dtype=np.int64)).tolist() == starts


@given(st.lists(st.integers(0, 5), max_size=8))
def test_places_in_runs(sizes: list[int]) -> None:
    expected = [place for size in sizes for place in range(size)]
    assert places_in_runs(np.array(sizes, dtype=np.int64)).tolist() == expected


@given(st.lists(st.integers(-5, 5)))
def test_distinct_ids_are_those_of_a_set(ids: list[int]) -> None:
    assert distinct_ids(np.array(ids, dtype=np.int64)).tolist() == sorted(set(ids))


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_average_ranks_equal_those_of_scipy(values: list[int]) -> None:
    found = average_ranks(np.array(values, dtype=np.float64))
    assert found.tolist() == rankdata(values).tolist()
