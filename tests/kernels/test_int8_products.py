"""Products of 8-bit integers, compared with 64-bit sums."""

import pytest
import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels import int8_products as module
from emea.kernels.int8_products import has_fast_int8, write_products
from emea.kernels.numba_calls import arrays, score_loops

LARGEST = 127


def random_vectors(num_rows: int, num_columns: int, dim: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows, columns = (
        torch.randint(
            -LARGEST, LARGEST + 1, (size, dim), generator=generator, dtype=torch.int8
        )
        for size in (num_rows, num_columns)
    )
    rows[0], columns[0] = LARGEST, LARGEST  # the largest sum
    rows[-1], columns[-1] = -LARGEST, LARGEST
    return rows, columns


@pytest.mark.skipif(
    not has_fast_int8(), reason="the processor has no 8-bit instructions"
)
def test_products_are_exact() -> None:
    rows, columns = random_vectors(40, 64, 300)
    found = torch.empty(40, 64, dtype=torch.int32)
    write_products(rows, columns, found)
    assert torch.equal(found.long(), rows.long() @ columns.long().T)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 5, 16), (5, 66, 17), (70, 131, 48)])
def test_the_compiled_loop_is_exact_for_all_sizes(sizes: tuple[int, int, int]) -> None:
    rows, columns = random_vectors(*sizes)
    found = torch.full(sizes[:2], -1, dtype=torch.int32)
    score_loops().int8_products(*arrays(rows, columns, found))
    assert torch.equal(found.long(), rows.long() @ columns.long().T)


def test_without_instructions_or_compiled_loops_it_is_not_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has = dict.fromkeys(module.LOOP_INSTRUCTIONS, True)
    monkeypatch.setattr(module, "_has", lambda features: any(map(has.get, features)))
    assert has_fast_int8() == choice.uses_numba(torch.empty(0))
    monkeypatch.setattr(choice._Switch, "allows_compiled", False)
    assert not has_fast_int8()
    monkeypatch.setattr(module, "_has", lambda features: "avx_vnni" in features)
    assert has_fast_int8() == hasattr(torch, "_int_mm")
