"""Compiled loops, compared with double precision and with torch's operations."""

from unittest.mock import patch

import pytest
import torch

from emea.kernels import choice
from emea.kernels import pair_dots as module
from emea.kernels.pair_dots import numba_pair_dots, torch_pair_dots
from emea.matching.similarity import Cosine, Similarity
from emea.runtime import threads
from emea.runtime.threads import index_ranges


def some_rows(num: int, dim: int) -> torch.Tensor:
    return torch.randn(num, dim, generator=torch.Generator().manual_seed(num))


@pytest.mark.parametrize("dim", [1, 3, 64, 257])
def test_products_of_pairs_equal_double_precision(dim: int) -> None:
    first, second = some_rows(20, dim), some_rows(30, dim)
    rows = torch.arange(20).repeat_interleave(30)
    columns = torch.arange(30).repeat(20)
    exact = (first.double() @ second.double().T).flatten()
    found = numba_pair_dots(first, second, rows, columns)
    with patch.object(threads, "thread_ranges", lambda size: index_ranges(size, 7)):
        assert torch.equal(numba_pair_dots(first, second, rows, columns), found)
    scale = (
        first.double().norm(dim=1)[rows] * second.double().norm(dim=1)[columns]
    ).clamp(min=1)
    bound = dim * torch.finfo(torch.float32).eps * scale
    assert ((found - exact).abs() <= bound).all()
    assert (
        (torch_pair_dots(first, second, rows, columns) - exact).abs() <= bound
    ).all()


def test_equal_rows_have_equal_products() -> None:
    first, second = some_rows(1, 101), some_rows(7, 101)
    second[[2, 5]] = second[0].clone()
    products = numba_pair_dots(
        first, second, torch.zeros(7, dtype=torch.int64), torch.arange(7)
    )
    assert products[0] == products[2] == products[5]
    assert len(products.unique()) == 5


def test_scores_of_pairs_are_those_of_torch() -> None:
    offsets = torch.linspace(0, 1, 9), torch.linspace(0, 1, 12)
    similarity = Similarity(some_rows(9, 32), some_rows(12, 32), *offsets, scale=2.0)
    rows, columns = torch.tensor([0, 8, 3]), torch.tensor([11, 0, 5])
    with patch.object(choice, "LEAST_OPERATIONS", 0):
        found = similarity.of_pairs(rows, columns)
    with patch.object(choice._Switch, "allows_compiled", False):
        assert torch.allclose(
            found, similarity.of_pairs(rows, columns), rtol=0, atol=1e-4
        )
    assert torch.allclose(
        found, similarity.scores(rows, columns).diagonal(), rtol=0, atol=1e-4
    )


def test_all_pairs_of_a_similarity_have_the_same_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ties stay ties, however many pairs are scored at a time."""
    similarity, size = Cosine()(some_rows(9, 32), some_rows(12, 32)), (9 + 12) * 32
    for least, is_compiled in ((size, True), (size + 1, False)):
        monkeypatch.setattr(choice, "LEAST_OPERATIONS", least)
        with patch.object(module, "numba_pair_dots", wraps=numba_pair_dots) as dots:
            similarity.of_pairs(torch.arange(1), torch.arange(1))
        assert dots.called is is_compiled


def test_no_pairs_have_no_products() -> None:
    none = torch.empty(0, dtype=torch.int64)
    assert not len(numba_pair_dots(some_rows(2, 4), some_rows(2, 4), none, none))
