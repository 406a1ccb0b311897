"""Ranges laid out, against a loop."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.rules.neighbour_join import expand_ranges


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=12))
def test_equals_a_loop(ranges: list[tuple[int, int]]) -> None:
    columns = torch.tensor(ranges, dtype=torch.int64).reshape(-1, 2)
    index, position = expand_ranges(columns[:, 0], columns[:, 1])
    expected = [(i, start + j) for i, (start, size) in enumerate(ranges) for j in range(size)]
    assert list(zip(index.tolist(), position.tolist(), strict=True)) == expected
