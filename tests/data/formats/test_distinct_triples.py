"""Distinct triples against Python sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emea.data.arrays import frozen
from emea.data.formats.triple_collector import distinct_triples
from emea.data.sources.id_format import first_occurrences

TRIPLES = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=60)


@given(TRIPLES)
def test_distinct_triples(rows: list[tuple[int, int, int]]) -> None:
    found = distinct_triples(frozen(rows, 3))
    assert list(map(tuple, found.tolist())) == sorted(set(rows))


@given(TRIPLES)
def test_first_occurrences(rows: list[tuple[int, int, int]]) -> None:
    found = first_occurrences(frozen(rows, 3))
    assert [rows[row] for row in found] == list(dict.fromkeys(rows))


def test_no_triples() -> None:
    assert distinct_triples(np.empty((0, 3), dtype=np.int64)).shape == (0, 3)
