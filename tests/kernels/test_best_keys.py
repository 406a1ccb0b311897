"""The best keys of rows and columns, compared with a sort of all scores."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from emea.kernels.best_keys import GROUP, BestKeys


def in_order(scores: Tensor, length: int) -> list[set[int]]:
    """The best columns of each row; of equal scores, the first ones."""
    found = []
    for row in scores.tolist():
        ranked = sorted(range(len(row)), key=lambda column: (-row[column], column))
        found.append(set(ranked[:length]))
    return found


def collected(
    scores: Tensor, lengths: tuple[int, int], num_rows: int, num_groups: int
) -> BestKeys:
    """Add the scores in blocks, with columns after the last one that have large scores."""
    kept = BestKeys(*scores.shape, lengths)
    padded = torch.nn.functional.pad(
        scores, (0, -scores.shape[1] % GROUP), value=2**31 - 1
    )
    for start in range(0, len(scores), num_rows):
        for column in range(0, padded.shape[1], num_groups * GROUP):
            block = padded[
                start : start + num_rows, column : column + num_groups * GROUP
            ]
            kept.add(block.contiguous(), start, column, 0)
    return kept


def as_sets(ids: Tensor) -> list[set[int]]:
    return [set(row) for row in ids.tolist()]


@pytest.mark.usefixtures("each_kernels")
@settings(max_examples=25, deadline=None)
@given(
    num_rows=st.integers(1, 40),
    num_columns=st.integers(1, 150),
    span=st.sampled_from([1, 5, 2**31 - 2]),
    lengths=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    seed=st.integers(0, 99),
)
def test_they_are_those_of_a_sort(num_rows, num_columns, span, lengths, seed) -> None:
    lengths = min(lengths[0], num_columns), min(lengths[1], num_rows)
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(
        -span, span + 1, (num_rows, num_columns), generator=generator, dtype=torch.int32
    )
    kept = collected(scores, lengths, 7, 1)
    assert as_sets(kept.rows.ids()) == in_order(scores, lengths[0])
    assert as_sets(kept.columns.ids()) == in_order(scores.T, lengths[1])


def test_parts_of_the_rows_merge_to_the_same_columns() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(
        0, 9, (60, 2 * GROUP), generator=generator, dtype=torch.int32
    )
    whole, first, second = (BestKeys(size, 2 * GROUP, (3, 5)) for size in (60, 25, 35))
    whole.add(scores, 0, 0, 0)
    first.add(scores[:25].contiguous(), 0, 0, 0)
    second.add(scores[25:].contiguous(), 0, 0, 25)
    first.merge_columns(second)
    assert as_sets(first.columns.ids()) == as_sets(whole.columns.ids())
    assert as_sets(torch.cat([first.rows.ids(), second.rows.ids()])) == as_sets(
        whole.rows.ids()
    )
