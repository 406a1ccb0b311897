"""Candidates and probabilities of both sides, against softmaxes over all pairs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from emea.matching.pair_table import PairTable, tabulate
from emea.matching.similarity import Similarity
from emea.matching.two_sided import NOTHING_LEFT, TwoSided, two_sided

Array = np.ndarray
TENSORS = ("source", "target", "source_offset", "target_offset")


def random_similarity(num_source: int, num_target: int) -> Similarity:
    generator = torch.Generator().manual_seed(num_source)
    sizes = (num_source, 3), (num_target, 3), (num_source,), (num_target,)
    parts = [torch.randn(size, dtype=torch.float64, generator=generator) for size in sizes]
    return Similarity(*parts, scale=2.0)


def dense(similarity: Similarity) -> Array:
    scores: Array = similarity.scores(torch.arange(similarity.num_source)).numpy()
    return scores


def pairs_in(found: TwoSided) -> set[tuple[int, int]]:
    return set(zip(found.pairs.sources.tolist(), found.pairs.targets.tolist(), strict=True))


def laid_out(found: TwoSided, similarity: Similarity) -> PairTable:
    alike = torch.zeros(len(found.pairs.sources))
    return tabulate(found.pairs, alike, similarity.num_source, similarity.num_target, width=99)


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize(("num_source", "num_target", "k"), [(9, 6, 2), (4, 11, 3), (5, 3, 8)])
def test_candidates_are_the_best_of_each_entity(
    num_source: int, num_target: int, k: int, both: bool
) -> None:
    similarity = random_similarity(num_source, num_target)
    scores = dense(similarity)
    found = two_sided(similarity, k, (3.0, 5.0), both)
    best = {(s, t) for s in range(num_source) for t in np.argsort(-scores[s])[:k].tolist()}
    of_targets = {(s, t) for t in range(num_target) for s in np.argsort(-scores[:, t])[:k].tolist()}
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
            assert log_probs[side][s, slot].item() == pytest.approx(expected[side][s, t])
            mass[side][(s, t)[side]] += np.exp(expected[side][s, t])
    for rest, gone in zip(found.log_rest(table), mass, strict=True):
        left = np.log(np.maximum(1 - gone, NOTHING_LEFT))
        np.testing.assert_allclose(rest, left, atol=1e-9)
    # a target that nobody proposes leaves everything to the rest
    assert both or (mass[1] == 0).any()


def test_with_all_pairs_as_candidates_nothing_is_left() -> None:
    similarity = random_similarity(4, 5)
    found = two_sided(similarity, 5, (2.0, 2.0))
    for rest in found.log_rest(laid_out(found, similarity)):
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
    for rest in found.log_rest(table):
        assert rest.isfinite().all()


def test_pairs_that_a_search_passed_over_are_no_more_than_certain() -> None:
    """What neighbours propose may lie outside the cells that were searched."""
    similarity = random_similarity(6, 9)
    scores = torch.from_numpy(dense(similarity))
    whole = scores.sort(1, descending=True)
    table = PairTable(whole.indices, whole.values, torch.ones(6, 9, dtype=torch.bool), 9)
    unseen = torch.full((6,), -50.0).double(), torch.full((9,), -50.0).double()
    found = TwoSided(two_sided(similarity, 1, (3.0, 0.7)).pairs, (3.0, 0.7), unseen)
    forth, back = found.log_probs(table)
    np.testing.assert_allclose(forth, torch.log_softmax(3.0 * whole.values, 1))
    of_target = torch.log_softmax(0.7 * scores, 0)
    np.testing.assert_allclose(back, of_target.gather(1, whole.indices))
