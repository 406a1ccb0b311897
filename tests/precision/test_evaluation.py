"""Ranks and what is judged by them in single against double precision."""

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.answer.decision import reaching
from emea.answer.decoding import accepted
from emea.evaluation.calibration import NUM_BINS, JudgedAnswer, answer_calibration
from emea.evaluation.joint_ranks import fused_ranks, joint_ranks
from emea.evaluation.ranks import Ranks, link_ranks
from emea.matching.beliefs import Beliefs
from emea.matching.csls import CSLS
from emea.matching.pair_table import PairRanking, PairTable
from emea.matching.similarity import Cosine

from ..matching.random_tables import from_scores
from .both_precisions import ROUNDOFF, all_scores, both
from .embeddings import HARD_EMBEDDINGS, csls_error

LINKS = np.stack([np.arange(40), np.arange(40)], axis=1)


@pytest.mark.parametrize("embeddings", HARD_EMBEDDINGS.values(), ids=HARD_EMBEDDINGS)
def test_ranks_differ_by_near_ties_alone(embeddings: tuple[Tensor, Tensor]) -> None:
    single, double = both(CSLS(10), *embeddings)
    scores, error = all_scores(double), 2 * csls_error(10)
    right = scores.diagonal().unsqueeze(1)
    for columns, kind in ((slice(0, 40), "in_pool"), (slice(0, 50), "in_all")):
        least = 1 + (scores[:, columns] > right + error).sum(1).numpy()
        most = (scores[:, columns] >= right - error).sum(1).numpy()
        for similarity in (single, double):
            ranks = getattr(link_ranks(similarity, LINKS), kind)
            assert ((least <= ranks) & (ranks <= most)).all()


@pytest.mark.parametrize("num_links", [1, 2, 3, 16])
@pytest.mark.parametrize("num_target", [16, 17, 40, 257])
@pytest.mark.parametrize("dim", [3, 100, 300])
def test_equal_targets_tie_in_blocks_of_any_size(
    num_links: int, num_target: int, dim: int
) -> None:
    generator = torch.Generator().manual_seed(dim)
    source, one = (
        torch.randn(size, dim, generator=generator) for size in (num_links, 1)
    )
    similarity = Cosine()(source, one.repeat(num_target, 1))
    # the last target: what rounds the ends of rows otherwise would show here
    links = np.stack([np.arange(num_links), np.full(num_links, num_target - 1)], axis=1)
    assert (link_ranks(similarity, links).in_all == (num_target + 1) / 2).all()


def tied(*shape: int) -> Tensor:
    """Few values, from next to nothing to next to 1."""
    values = torch.tensor([0, 1e-38, 1e-30, 0.3, 0.3 + 1e-7, 1 - ROUNDOFF, 1])
    generator = torch.Generator().manual_seed(0)
    return values[torch.randint(len(values), shape, generator=generator)]


def test_ranks_by_beliefs_are_the_same() -> None:
    neural = Ranks(np.full(40, 7.0), np.full(40, 9.0))
    generator = torch.Generator().manual_seed(1)
    targets = torch.rand(40, 50, generator=generator).argsort(1)[:, :30]
    exact = Cosine()(torch.rand(40, 2), torch.rand(50, 2))
    single, double = both(
        lambda probs: joint_ranks(neural, exact, Beliefs(targets, probs), LINKS),
        tied(40, 30),
    )
    np.testing.assert_array_equal(single.in_all, double.in_all)
    np.testing.assert_array_equal(single.in_pool, double.in_pool)


def test_ranks_by_ranked_pairs_are_the_same() -> None:
    generator = torch.Generator().manual_seed(1)
    targets = torch.rand(40, 50, generator=generator).argsort(1)[:, :30]
    filled = torch.rand(40, 30, generator=generator) < 0.7

    def ranked(scores: Tensor, beliefs: Tensor) -> Ranks:
        similarity = from_scores(scores)
        table = PairTable(targets, scores.gather(1, targets), filled, 50)
        neural = link_ranks(similarity, LINKS)
        return fused_ranks(neural, similarity, PairRanking(table, beliefs), LINKS)

    single, double = both(ranked, tied(40, 50), tied(40, 30).log())
    np.testing.assert_array_equal(single.in_all, double.in_all)
    np.testing.assert_array_equal(single.in_pool, double.in_pool)


def answers(num_source: int = 1000) -> tuple[Beliefs, np.ndarray]:
    """Probabilities of all sizes, on the edges of bins among them, and what would be right."""
    rng = np.random.default_rng(0)
    probs = np.concatenate(
        [
            rng.random(num_source - 300),
            1 - np.logspace(-12, -1, 100),
            np.logspace(-38, -1, 100),
            rng.integers(0, NUM_BINS + 1, 100) / NUM_BINS,
        ]
    )
    targets = torch.arange(num_source).unsqueeze(1)
    links = np.stack([np.arange(num_source), np.arange(num_source)], axis=1)
    links[rng.random(num_source) > probs, 1] = num_source
    return Beliefs(targets, torch.from_numpy(probs).unsqueeze(1)), links


def test_calibration_error() -> None:
    answer, links = answers()
    rounded = Beliefs(answer.targets, answer.probs.float())
    single, double = (answer_calibration(given, links) for given in (rounded, answer))
    assert single["num_unmatched"] == double["num_unmatched"]
    # who stands on an edge may fall into the bin below, and carries its whole gap along
    rows = zip(single["bins"], double["bins"], strict=True)
    num_moved = sum(
        abs(one["num_entities"] - other["num_entities"]) for one, other in rows
    )
    assert num_moved <= 2 * 100
    allowed = ROUNDOFF + 2 * num_moved / len(links)
    assert single["ece"] == pytest.approx(double["ece"], abs=allowed)


@pytest.mark.parametrize("precision", [0.1, 0.5, 0.8, 0.95, 1.0])
def test_a_threshold_accepts_what_it_was_chosen_by(precision: float) -> None:
    answer, links = answers()
    rounded = Beliefs(answer.targets, answer.probs.float())
    no_labels = torch.zeros(0, 2, dtype=torch.int64)
    found = {}
    for name, given in (("single", rounded), ("double", answer)):
        threshold = reaching(
            given, no_labels, precision, JudgedAnswer(given, links)
        ).threshold
        kept = accepted(given, threshold, no_labels)
        found[name] = JudgedAnswer(given, links).at(threshold)
        assert int((kept.probs > 0).sum()) == found[name].num_accepted
    # those that single precision cannot tell from 1 are accepted together
    num_tied = int((rounded.probs == 1).sum())
    assert abs(found["single"].num_accepted - found["double"].num_accepted) <= num_tied
