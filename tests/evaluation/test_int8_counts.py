"""Counts by 8-bit products, compared with scores of all pairs in double precision."""

import numpy as np
import pytest
import torch

from emea.evaluation import int8_counts as module
from emea.evaluation.int8_counts import int8_counts, is_quick
from emea.evaluation.ranks import link_ranks
from emea.matching import compiled, int8_vectors
from emea.matching.int8_vectors import LOOP_INSTRUCTIONS, TORCH_INSTRUCTIONS
from emea.matching.similarity import Similarity

NUM_POOLED = 100


@pytest.fixture(autouse=True, params=[LOOP_INSTRUCTIONS, TORCH_INSTRUCTIONS])
def in_small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use either kind of products on every processor, and blocks smaller than the graphs."""
    monkeypatch.setattr(int8_vectors, "_has", lambda features: features == request.param)
    monkeypatch.setattr(module, "MIN_PAIRS", 0)
    monkeypatch.setattr(module, "ROWS_PER_BLOCK", 50)
    monkeypatch.setattr(module, "COLUMNS_PER_BLOCK", 70)


def noisy_copies(noise: float = 1.0, length: float = 1.0, dim: int = 40) -> Similarity:
    """Unit vectors with noisy copies; some targets are equal."""
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(300, dim, generator=generator)
    source = target[:200] + noise * torch.randn(200, dim, generator=generator)
    target[250:270] = target[:20]
    offsets = torch.rand(2, 300, generator=generator) / 5
    offsets[1, 250:270] = offsets[1, :20]
    source, target = (length * torch.nn.functional.normalize(side) for side in (source, target))
    return Similarity(source, target, offsets[0, :200], offsets[1], scale=2.0)


def exact_counts(
    similarity: Similarity, sources: torch.Tensor, right: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts in double precision, where scores of equal targets count as equal."""
    sides = (similarity.source.double(), similarity.target.double())
    scores = similarity.scale * sides[0] @ sides[1].T - similarity.source_offset[:, None]
    scores = (scores - similarity.target_offset)[sources]
    reference = scores.gather(1, right[:, None])
    equal = (scores - reference).abs() < 1e-12
    counted = (scores > reference) & ~equal, equal
    better, tied = (
        torch.stack([counts[:, :NUM_POOLED].sum(1), counts.sum(1)]) for counts in counted
    )
    return better, tied


@pytest.mark.parametrize("noise", [0.3, 2.0])
@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("num_threads", [1, 3])
def test_counts_are_exact(
    noise: float, length: float, num_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "available_threads", lambda: num_threads)
    similarity = noisy_copies(noise, length)
    sources = torch.randperm(200, generator=torch.Generator().manual_seed(1))[:130]
    better, equal = int8_counts(similarity, sources, sources, NUM_POOLED)
    expected = exact_counts(similarity, sources, sources)
    assert torch.equal(better, expected[0])
    assert torch.equal(equal, expected[1])
    assert (equal[1] == 2).sum() == (sources < 20).sum()


def test_products_decide_most_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    pair_dots = compiled.pair_dots

    def counted(*given: torch.Tensor) -> torch.Tensor:
        compared.append(len(given[2]))
        return pair_dots(*given)

    monkeypatch.setattr(compiled, "pair_dots", counted)
    sources = torch.arange(200)
    int8_counts(noisy_copies(), sources, sources, NUM_POOLED)
    assert 200 <= sum(compared) - 200 < 0.1 * 200 * 300


def test_ranks_are_those_of_all_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity, links = noisy_copies(), np.stack([np.arange(150)] * 2, axis=1)
    assert is_quick(similarity, len(links))
    found = link_ranks(similarity, links, pool=np.arange(180))
    monkeypatch.setattr(module, "MIN_PAIRS", 10**9)
    assert not is_quick(similarity, len(links))
    expected = link_ranks(similarity, links, pool=np.arange(180))
    assert found.in_pool.tolist() == expected.in_pool.tolist()
    assert found.in_all.tolist() == expected.in_all.tolist()


@pytest.mark.parametrize("side", ["source", "target", "target_offset"])
def test_without_finite_numbers_all_scores_are_compared(side: str) -> None:
    similarity, sources = noisy_copies(), torch.arange(200)
    getattr(similarity, side)[7] = torch.nan
    assert int8_counts(similarity, sources, sources, NUM_POOLED) is None
    ranks = link_ranks(similarity, np.stack([np.arange(200)] * 2, axis=1))
    assert ranks.in_all[7] == 301


def test_only_single_precision_has_bounds() -> None:
    similarity = noisy_copies()
    double = Similarity(*(getattr(similarity, name).double() for name in FIELDS))
    assert is_quick(similarity, 1) and not is_quick(double, 1)


FIELDS = ("source", "target", "source_offset", "target_offset")
