"""Paths of two triples against loops over all pairs of triples."""

from collections import Counter

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from emea.data.arrays import IntArray
from emea.encoders.iptranse import composed_relations, consecutive_triples, two_hop_pairs


@st.composite
def triple_lists(draw: st.DrawFn) -> IntArray:
    """Distinct triples over few ids: loops, multi-edges and common patterns occur."""
    triple = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5))
    drawn = draw(st.lists(triple, max_size=14, unique=True))
    return np.array(drawn, dtype=np.int64).reshape(-1, 3)


CHAIN = np.array([[0, 0, 1], [1, 0, 2], [1, 1, 2], [0, 2, 2], [2, 1, 3], [3, 3, 3]])
NOTHING = np.zeros((0, 3), dtype=np.int64)


@given(triple_lists())
@example(NOTHING)
@example(CHAIN)
def test_every_tail_meets_every_head(triples: IntArray) -> None:
    expected = [
        (i, j)
        for i, left in enumerate(triples.tolist())
        for j, right in enumerate(triples.tolist())
        if left[2] == right[0]
    ]
    first, second = consecutive_triples(triples)
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == expected


def looped_two_hops(triples: IntArray, num_common: int) -> list[tuple[int, int]]:
    joined = {(head, tail) for head, _, tail in triples.tolist()}
    paths = [
        (head, (r1, r2), end)
        for head, r1, middle in triples.tolist()
        for other, r2, end in triples.tolist()
        if middle == other and (head, end) not in joined
    ]
    counts = Counter(pattern for _, pattern, _ in paths)
    common = sorted(counts, key=lambda pattern: (-counts[pattern], pattern))[:num_common]
    return sorted({(head, end) for head, pattern, end in paths if pattern not in common})


@given(triple_lists(), st.integers(0, 4))
@example(NOTHING, 5)
@example(CHAIN, 0)
@example(CHAIN, 1)
def test_two_hops(triples: IntArray, num_common: int) -> None:
    found = [tuple(pair) for pair in two_hop_pairs(triples, num_common).tolist()]
    assert found == looped_two_hops(triples, num_common)


def looped_compositions(triples: IntArray, max_ends: int) -> list[tuple[int, ...]]:
    listed = triples.tolist()
    num_tails = Counter((head, relation) for head, relation, _ in listed)
    return sorted(
        (r1, r2, r, num_tails[h, r1] * num_tails[m, r2])
        for h, r1, m in listed
        for m2, r2, t in listed
        for h3, r, t3 in listed
        if m == m2 and (h, t) == (h3, t3) and num_tails[h, r1] * num_tails[m, r2] <= max_ends
    )


@given(triple_lists(), st.integers(1, 6))
@example(NOTHING, 1)
@example(CHAIN, 1)
@example(CHAIN, 100)
def test_compositions(triples: IntArray, max_ends: int) -> None:
    paths, num_ends = composed_relations(triples, max_ends)
    found = np.concatenate([paths, num_ends[:, None]], axis=1)
    assert sorted(map(tuple, found.tolist())) == looped_compositions(triples, max_ends)
