"""A search among unlabelled entities, against a search of a smaller problem."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import torch

from emea.matching.search import SearchGroup
from emea.matching.similarity import Cosine, Similarity
from emea.matching.subset import Subset
from emea.matching.two_sided import two_sided

LABELS = torch.tensor([[0, 3], [4, 1], [7, 7], [2, 0]])


@dataclass(frozen=True)
class NearestScope:
    """The nearest targets of each row, for all rows together or for each row."""

    dots: torch.Tensor
    of_each_row: bool

    def groups(self, least: int) -> Iterator[SearchGroup]:
        for rows in torch.arange(len(self.dots)).split(4):
            found = self.dots[rows].topk(least, dim=1)
            if self.of_each_row:
                yield SearchGroup(rows, found.indices, found.values)
            else:
                yield SearchGroup(rows, found.indices.unique())

    def reversed(self) -> "NearestScope":
        return NearestScope(self.dots.T, self.of_each_row)


def similarity() -> Similarity:
    generator = torch.Generator().manual_seed(0)
    return Cosine()(*(torch.randn(n, 5, generator=generator).double() for n in (11, 12)))


@pytest.mark.parametrize("of_each_row", [None, False, True])
def test_only_unlabelled_entities_are_found(of_each_row: bool | None) -> None:
    exact = similarity()
    searched = exact
    if of_each_row is not None:
        scope = NearestScope(exact.source @ exact.target.T, of_each_row)
        searched = replace(exact, scope=scope)
    free = Subset.unlabelled(exact, LABELS)
    sides = free.restored(two_sided(free.similarity(searched), 3, (5.0, 7.0)))
    scores = exact.scores(torch.arange(11))
    scores[~free.source] = -torch.inf
    scores[:, ~free.target] = -torch.inf
    found = set(zip(*(ids.tolist() for ids in sides.pairs[:2]), strict=True))
    by_source = [(s, t) for s in free.source.nonzero() for t in scores[s].topk(3).indices[0]]
    by_target = [(s, t) for t in free.target.nonzero() for s in scores.T[t].topk(3).indices[0]]
    expected = {(int(s), int(t)) for s, t in (*by_source, *by_target)}
    if of_each_row is None:
        assert found == expected
        mass = torch.logsumexp(5.0 * scores[free.source], dim=1)
        torch.testing.assert_close(sides.log_mass[0][free.source], mass)
    else:
        assert len(found & expected) > 0.8 * len(expected)
    assert all(free.source[s] and free.target[t] for s, t in found)
    at = torch.tensor(sorted(found)).T
    torch.testing.assert_close(exact.of_pairs(*at), scores[at[0], at[1]])
    assert all(bool(mass.isfinite().all()) for mass in sides.log_mass)


def test_links_are_numbered_as_in_the_similarity() -> None:
    free = Subset.unlabelled(similarity(), LABELS)
    links = free.between(torch.tensor([[1, 2], [0, 5], [5, 1], [10, 11]]))
    assert links.tolist() == [[1, 2], [10, 11]]
    assert free.numbered(links).tolist() == [[0, 0], [6, 7]]


def test_with_all_entities_labelled_nothing_is_found() -> None:
    given = similarity()
    everyone = torch.tensor([[min(i, 10), i] for i in range(12)])
    free = Subset.unlabelled(given, everyone)
    sides = free.restored(two_sided(free.similarity(given), 3, (5.0, 7.0)))
    assert len(sides.pairs.sources) == 0
    assert (sides.log_mass[0] == 0).all() and (sides.log_mass[1] == 0).all()
