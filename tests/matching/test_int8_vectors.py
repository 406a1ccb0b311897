"""Products of vectors of 8-bit integers, compared with 64-bit integers."""

import pytest
import torch
from torch import Tensor

from emea.matching import compiled, int8_vectors
from emea.matching.int8_vectors import ALIGNED, LARGEST, has_fast_int8, rounded, write_products


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
    compiled.int8_products(rows, columns, found)
    assert torch.equal(found.long(), rows.long() @ columns.long().T)


def test_rounded_vectors_have_nearly_the_same_products() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (
        torch.nn.functional.normalize(torch.randn(size, 100, generator=generator))
        for size in (30, 50)
    )
    rows, columns = rounded(first), rounded(second)
    assert rows.values.shape[1] % ALIGNED == 0
    products = rows.values.long() @ columns.values.long().T * rows.step**2
    assert torch.allclose(products.float(), first @ second.T, rtol=0, atol=0.01)


def test_errors_bound_those_of_products() -> None:
    """Coordinates of long vectors are cut off, so their errors are large."""
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(40, 20, generator=generator).double() for _ in range(2))
    first, second = first / 20**0.5, second / 4
    rows, columns = rounded(first), rounded(second)
    found = rows.values.double() @ columns.values.double().T * rows.step**2
    lengths = columns.values.double().norm(dim=1) * columns.step
    bounds = rows.errors[:, None] * lengths + first.norm(dim=1)[:, None] * columns.errors
    difference = (found - first @ second.T).abs()
    assert (difference <= bounds + 1e-5).all()
    assert (difference > bounds / 20).any()


def test_without_instructions_or_compiled_loops_it_is_not_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has = dict.fromkeys(int8_vectors.LOOP_INSTRUCTIONS, True)
    monkeypatch.setattr(int8_vectors, "_has", lambda features: any(map(has.get, features)))
    assert has_fast_int8() == compiled.usable(torch.empty(0))
    monkeypatch.setattr(compiled, "usable", lambda values: False)
    assert not has_fast_int8()
    monkeypatch.setattr(int8_vectors, "_has", lambda features: "avx_vnni" in features)
    assert has_fast_int8() == hasattr(torch, "_int_mm")
