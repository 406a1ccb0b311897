"""The best pairs of rows and columns, compared with a sort of all scores and with 64-bit sums."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from emea.matching import best_pairs as module
from emea.matching import compiled
from emea.matching.best_pairs import (
    ALIGNED,
    GROUP,
    LARGEST,
    BestKeys,
    has_fast_int8,
    rounded,
    unit_length,
    write_products,
)
from emea.runtime import kernels


def in_order(scores: Tensor, length: int) -> list[set[int]]:
    """The best columns of each row; of equal scores, the first ones."""
    found = []
    for row in scores.tolist():
        ranked = sorted(range(len(row)), key=lambda column: (-row[column], column))
        found.append(set(ranked[:length]))
    return found


def collected(scores: Tensor, lengths: tuple[int, int], num_rows: int, num_groups: int) -> BestKeys:
    """Add the scores in blocks, with columns after the last one that have large scores."""
    kept = BestKeys(*scores.shape, lengths)
    padded = torch.nn.functional.pad(scores, (0, -scores.shape[1] % GROUP), value=2**31 - 1)
    for start in range(0, len(scores), num_rows):
        for column in range(0, padded.shape[1], num_groups * GROUP):
            block = padded[start : start + num_rows, column : column + num_groups * GROUP]
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
    scores = torch.randint(0, 9, (60, 2 * GROUP), generator=generator, dtype=torch.int32)
    whole, first, second = (BestKeys(size, 2 * GROUP, (3, 5)) for size in (60, 25, 35))
    whole.add(scores, 0, 0, 0)
    first.add(scores[:25].contiguous(), 0, 0, 0)
    second.add(scores[25:].contiguous(), 0, 0, 25)
    first.merge_columns(second)
    assert as_sets(first.columns.ids()) == as_sets(whole.columns.ids())
    assert as_sets(torch.cat([first.rows.ids(), second.rows.ids()])) == as_sets(whole.rows.ids())


def random_vectors(num_rows: int, num_columns: int, dim: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows, columns = (
        torch.randint(-LARGEST, LARGEST + 1, (size, dim), generator=generator, dtype=torch.int8)
        for size in (num_rows, num_columns)
    )
    rows[0], columns[0] = LARGEST, LARGEST  # the largest sum
    rows[-1], columns[-1] = -LARGEST, LARGEST
    return rows, columns


@pytest.mark.skipif(not has_fast_int8(), reason="the processor has no 8-bit instructions")
def test_products_are_exact() -> None:
    rows, columns = random_vectors(40, 64, 300)
    found = torch.empty(40, 64, dtype=torch.int32)
    write_products(rows, columns, found)
    assert torch.equal(found.long(), rows.long() @ columns.long().T)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 5, 16), (5, 66, 17), (70, 131, 48)])
def test_the_compiled_loop_is_exact_for_all_sizes(sizes: tuple[int, int, int]) -> None:
    rows, columns = random_vectors(*sizes)
    found = torch.full(sizes[:2], -1, dtype=torch.int32)
    compiled.loops().int8_products(*compiled.arrays(rows, columns, found))
    assert torch.equal(found.long(), rows.long() @ columns.long().T)


def test_rounded_vectors_have_nearly_the_same_products() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (
        torch.nn.functional.normalize(torch.randn(size, 100, generator=generator))
        for size in (30, 50)
    )
    rows, columns = rounded(first), rounded(second)
    assert rows.shape[1] % ALIGNED == 0
    products = rows.long() @ columns.long().T * unit_length(100) ** 2
    assert torch.allclose(products.float(), first @ second.T, rtol=0, atol=0.01)


def test_without_instructions_or_compiled_loops_it_is_not_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has = dict.fromkeys(module.LOOP_INSTRUCTIONS, True)
    monkeypatch.setattr(module, "_has", lambda features: any(map(has.get, features)))
    assert has_fast_int8() == kernels.uses_numba(torch.empty(0))
    monkeypatch.setattr(kernels._Switch, "allows_compiled", False)
    assert not has_fast_int8()
    monkeypatch.setattr(module, "_has", lambda features: "avx_vnni" in features)
    assert has_fast_int8() == hasattr(torch, "_int_mm")
