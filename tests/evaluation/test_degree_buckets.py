"""Accuracy by degree against a loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.evaluation.metrics import accuracy_by_degree

ENTITIES = st.lists(st.tuples(st.sampled_from([1.0, 1.5, 2.0, 9.0]), st.integers(0, 40)))


def looped(entities: list[tuple[float, int]]) -> list[dict[str, float]]:
    rows = []
    for start, end in [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 10**9)]:
        hits = [rank == 1 for rank, degree in entities if start <= degree < end]
        if hits:
            rows.append(
                {"min_degree": start, "num_entities": len(hits), "hit@1": sum(hits) / len(hits)}
            )
    return rows


@given(ENTITIES)
def test_buckets(entities: list[tuple[float, int]]) -> None:
    ranks = np.array([rank for rank, _ in entities])
    degrees = np.array([degree for _, degree in entities], dtype=np.int64)
    rows, expected = accuracy_by_degree(ranks, degrees), looped(entities)
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert row == pytest.approx(wanted)


def test_by_hand() -> None:
    ranks = np.array([1.0, 2.0, 1.0, 1.5])
    degrees = np.array([3, 2, 500, 0])
    assert accuracy_by_degree(ranks, degrees) == [
        {"min_degree": 0, "num_entities": 1, "hit@1": 0.0},
        {"min_degree": 2, "num_entities": 2, "hit@1": 0.5},
        {"min_degree": 32, "num_entities": 1, "hit@1": 1.0},
    ]
