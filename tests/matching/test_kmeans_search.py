"""Approximate search: what it covers, what it finds, and that it can be exact."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.matching.auto_search import AutoSearch
from emea.matching.candidates import search_recall, top_candidates
from emea.matching.csls import CSLS, neighbourhood_means
from emea.matching.kmeans_search import KMeansCells, KMeansSearch
from emea.matching.similarity import Cosine


def clustered(
    num_source: int = 400, num_target: int = 300, dim: int = 16, spread: float = 0.4
) -> tuple[Tensor, Tensor]:
    """Two sides around twelve common points."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(12, dim, generator=generator)

    def side(size: int) -> Tensor:
        of = torch.randint(12, (size,), generator=generator)
        return points[of] + spread * torch.randn(size, dim, generator=generator)

    return side(num_source), side(num_target)


def test_every_entity_is_searched_once_among_distinct_targets() -> None:
    similarity = Cosine(KMeansSearch(num_probes=3))(*clustered())
    blocks = list(similarity.search())
    rows = torch.cat([block.rows for block in blocks])
    assert sorted(rows.tolist()) == list(range(400))
    for block in blocks:
        assert block.columns is not None
        assert len(block.columns.unique()) == len(block.columns) < 300
        torch.testing.assert_close(
            block.scores, similarity.scores(block.rows)[:, block.columns]
        )


@pytest.mark.parametrize("decoder", [Cosine, CSLS])
def test_with_all_cells_probed_it_is_exact(decoder: type) -> None:
    source, target = clustered()
    exact = top_candidates(decoder()(source, target), 7)
    everywhere = decoder(search=KMeansSearch(num_probes=10_000))(source, target)
    found = top_candidates(everywhere, 7)
    torch.testing.assert_close(found.scores, exact.scores)
    assert torch.equal(found.targets, exact.targets)
    assert search_recall(everywhere, found.targets, 50) == 1


def test_few_cells_find_most_and_the_recall_says_how_many() -> None:
    source, target = clustered()
    similarity = Cosine(KMeansSearch(num_probes=2))(source, target)
    found = top_candidates(similarity, 5).targets
    best = similarity.scores(torch.arange(400)).topk(5, dim=1).indices
    hits = [
        len(set(a) & set(b)) for a, b in zip(found.tolist(), best.tolist(), strict=True)
    ]
    assert search_recall(similarity, found, 400) == pytest.approx(sum(hits) / 2000)
    assert 0.5 < sum(hits) / 2000 < 1


def test_too_few_targets_nearby_widen_the_search() -> None:
    # each target has a cell of its own, so one probe finds one target
    cells = KMeansCells(
        torch.zeros(2).long(), torch.arange(5), torch.arange(5).repeat(5, 1), 1
    )
    ((rows, columns, _),) = cells.groups(3)
    assert rows.tolist() == [0, 1]
    assert columns.tolist() == [0, 1, 2]


def test_reversed_cells_look_from_the_other_side() -> None:
    source, target = clustered()
    similarity = Cosine(KMeansSearch(num_probes=10_000))(source, target)
    exact = Cosine()(source, target)
    assert torch.equal(
        top_candidates(similarity.reversed(), 4).targets,
        top_candidates(exact.reversed(), 4).targets,
    )
    for found, expected in zip(
        neighbourhood_means(similarity, 4), neighbourhood_means(exact, 4), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_the_same_seed_gives_the_same_cells() -> None:
    first, again, other = (KMeansSearch(seed=seed)(*clustered()) for seed in (0, 0, 1))
    assert torch.equal(first.source, again.source)
    assert not torch.equal(first.source, other.source)


def test_the_recall_of_a_sample() -> None:
    source, target = (normalize(side) for side in clustered())
    cells = KMeansSearch(num_probes=2)(source, target)
    similarity = Cosine(KMeansSearch(num_probes=2))(source, target)
    whole = search_recall(similarity, top_candidates(similarity, 5).targets, 400)
    assert cells.recall(source, target, 5, 400) == pytest.approx(whole)
    assert cells.recall(source, target, 5, 40) == pytest.approx(whole, abs=0.15)
    everywhere = KMeansSearch(num_probes=10_000)(source, target)
    assert everywhere.recall(source, target, 5, 40) == 1


@pytest.mark.parametrize("num_target", [1, 3, 10])
def test_the_recall_of_few_targets(num_target: int) -> None:
    source, target = (normalize(side) for side in clustered(num_target=num_target))
    cells = KMeansSearch(num_probes=1)(source, target)
    assert cells.recall(source, target, 10, 40) == 1


@pytest.mark.parametrize("spread", [0.4, 100.0])
def test_a_gpu_uses_cells_of_large_graphs_if_they_find_most(
    spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OnGPU(Tensor):
        """Says that it is on a GPU."""

        @property
        def device(self) -> torch.device:  # type: ignore[override]
            return torch.device("cuda")

    source, target = (normalize(side) for side in clustered(spread=spread))
    is_clustered = spread < 1
    cells = KMeansSearch(num_probes=8)(source, target)
    assert (cells.recall(source, target, 10, 200) >= 0.95) == is_clustered
    monkeypatch.setattr(KMeansSearch, "__call__", lambda *_: cells)
    monkeypatch.setattr(
        KMeansCells, "recall", lambda *_: 0.95 if is_clustered else 0.94
    )
    given = source.as_subclass(OnGPU), target
    assert AutoSearch(1, 120_000)(*given) is None
    assert AutoSearch(1, 119_999)(*given) is (cells if is_clustered else None)
