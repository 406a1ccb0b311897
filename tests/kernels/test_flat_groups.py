"""Groups in flat lists, compared with loops."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.kernels.flat_groups import (
    chunks,
    expand_ranges,
    group_sizes,
    places_in_groups,
)


@given(st.lists(st.integers(0, 4)))
def test_places_count_those_before_in_the_group(given: list[int]) -> None:
    groups = sorted(given)
    places = places_in_groups(torch.tensor(groups, dtype=torch.int64), 5).tolist()
    assert places == [groups[:i].count(group) for i, group in enumerate(groups)]


def test_sizes_of_groups_equal_counts() -> None:
    rng = np.random.default_rng(0)
    groups, counts = rng.integers(0, 6, 40), rng.random(40) < 0.5
    for part in (slice(0), slice(None)):
        some, chosen = torch.from_numpy(groups[part]), torch.from_numpy(counts[part])
        assert (
            group_sizes(some, 8).tolist()
            == np.bincount(groups[part], minlength=8).tolist()
        )
        expected = np.bincount(groups[part][counts[part]], minlength=8)
        assert group_sizes(some, 8, chosen).tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=12))
def test_ranges_equal_a_loop(ranges: list[tuple[int, int]]) -> None:
    columns = torch.tensor(ranges, dtype=torch.int64).reshape(-1, 2)
    index, position = expand_ranges(columns[:, 0], columns[:, 1])
    expected = [
        (i, start + j) for i, (start, size) in enumerate(ranges) for j in range(size)
    ]
    assert list(zip(index.tolist(), position.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 12))
def test_chunks_cover_all_items_and_respect_the_limit(
    sizes: list[int], limit: int
) -> None:
    parts = list(chunks(torch.tensor(sizes, dtype=torch.int64), limit))
    assert [item for part in parts for item in range(part.start, part.stop)] == list(
        range(len(sizes))
    )
    for part in parts:
        assert sum(sizes[part]) <= limit or part.stop == part.start + 1
