"""Candidates and probabilities of both sides, against softmaxes over all pairs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from emea.matching.pair_table import PairTable, tabulate
from emea.matching.search import SearchGroup
from emea.matching.similarity import Cosine, Similarity
from emea.matching.two_sided import (
    NOTHING_LEFT,
    Subset,
    SubsetScope,
    TwoSided,
    two_sided,
)

from .random_tables import random_similarity

Array = np.ndarray
TENSORS = ("source", "target", "source_offset", "target_offset")


def dense(similarity: Similarity) -> Array:
    scores: Array = similarity.scores(torch.arange(similarity.num_source)).numpy()
    return scores


def pairs_in(found: TwoSided) -> set[tuple[int, int]]:
    return set(
        zip(found.pairs.sources.tolist(), found.pairs.targets.tolist(), strict=True)
    )


def laid_out(found: TwoSided, similarity: Similarity) -> PairTable:
    alike = torch.zeros(len(found.pairs.sources))
    return tabulate(
        found.pairs, alike, similarity.num_source, similarity.num_target, width=99
    )


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize(
    ("num_source", "num_target", "k"), [(9, 6, 2), (4, 11, 3), (5, 3, 8)]
)
def test_candidates_are_the_best_of_each_entity(
    num_source: int, num_target: int, k: int, both: bool
) -> None:
    similarity = random_similarity(num_source, num_target)
    scores = dense(similarity)
    found = two_sided(similarity, k, (3.0, 5.0), both)
    best = {
        (s, t) for s in range(num_source) for t in np.argsort(-scores[s])[:k].tolist()
    }
    of_targets = {
        (s, t)
        for t in range(num_target)
        for s in np.argsort(-scores[:, t])[:k].tolist()
    }
    assert pairs_in(found) == (best | of_targets if both else best)
    given = scores[found.pairs.sources.numpy(), found.pairs.targets.numpy()]
    np.testing.assert_allclose(found.pairs.scores, given)


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("both", [True, False])
def test_probabilities_are_of_all_entities_of_the_other_side(both: bool) -> None:
    similarity = random_similarity(6, 9)
    scores = dense(similarity)
    found = two_sided(similarity, 1, (3.0, 0.7), both)
    table = laid_out(found, similarity)
    log_probs = found.log_probs(table)
    expected = log_softmax(3.0 * scores, axis=1), log_softmax(0.7 * scores, axis=0)
    mass = np.zeros(6), np.zeros(9)
    for s, slot in table.filled.nonzero().tolist():
        t = int(table.targets[s, slot])
        for side in (0, 1):
            assert log_probs[side][s, slot].item() == pytest.approx(
                expected[side][s, t]
            )
            mass[side][(s, t)[side]] += np.exp(expected[side][s, t])
    for rest, gone in zip(
        found.log_rest(table, found.log_probs(table)), mass, strict=True
    ):
        left = np.log(np.maximum(1 - gone, NOTHING_LEFT))
        np.testing.assert_allclose(rest, left, atol=1e-9)
    # a target that nobody proposes leaves everything to the rest
    assert both or (mass[1] == 0).any()


def test_with_all_pairs_as_candidates_nothing_is_left() -> None:
    similarity = random_similarity(4, 5)
    found = two_sided(similarity, 5, (2.0, 2.0))
    table = laid_out(found, similarity)
    for rest in found.log_rest(table, found.log_probs(table)):
        np.testing.assert_allclose(rest.exp(), NOTHING_LEFT)


def test_a_sharp_softmax_bears_empty_slots() -> None:
    # all scores far below those that empty slots hold, and sharp enough to overflow there
    similarity = replace(random_similarity(6, 9), source_offset=torch.full((6,), 20.0))
    similarity = replace(
        similarity, **{name: getattr(similarity, name).float() for name in TENSORS}
    )
    found = two_sided(similarity, 1, (1000.0, 1000.0))
    table = laid_out(found, similarity)
    assert not table.filled.all()
    for rest in found.log_rest(table, found.log_probs(table)):
        assert rest.isfinite().all()


def test_pairs_that_a_search_passed_over_are_no_more_than_certain() -> None:
    """What neighbours propose may lie outside the cells that were searched."""
    similarity = random_similarity(6, 9, seed=6)
    scores = torch.from_numpy(dense(similarity))
    whole = scores.sort(1, descending=True)
    table = PairTable(
        whole.indices, whole.values, torch.ones(6, 9, dtype=torch.bool), 9
    )
    unseen = torch.full((6,), -50.0).double(), torch.full((9,), -50.0).double()
    found = TwoSided(two_sided(similarity, 1, (3.0, 0.7)).pairs, (3.0, 0.7), unseen)
    forth, back = found.log_probs(table)
    np.testing.assert_allclose(forth, torch.log_softmax(3.0 * whole.values, 1))
    of_target = torch.log_softmax(0.7 * scores, 0)
    np.testing.assert_allclose(back, of_target.gather(1, whole.indices))


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


def test_a_reversed_subset_has_the_other_sides() -> None:
    source, target = torch.tensor([True, False]), torch.tensor([True, True, False])
    found = SubsetScope(NearestScope(torch.eye(3)[:2], True), source, target).reversed()
    assert found.source is target and found.target is source
    ((rows, columns, _),) = found.groups(1)
    assert rows.tolist() == [0, 1] and int(columns.max()) == 0


def similarity() -> Similarity:
    generator = torch.Generator().manual_seed(0)
    return Cosine()(
        *(torch.randn(n, 5, generator=generator).double() for n in (11, 12))
    )


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
    by_source = [
        (s, t) for s in free.source.nonzero() for t in scores[s].topk(3).indices[0]
    ]
    by_target = [
        (s, t) for t in free.target.nonzero() for s in scores.T[t].topk(3).indices[0]
    ]
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
