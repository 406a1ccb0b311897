"""The share of entities with a counterpart, against loops and synthetic truth."""

import numpy as np
import pytest

from emea.literals import decoy_share
from emea.literals.decoy_share import corrected_share, counterpart_share, seen_pairs
from emea.literals.decoys import judge_best
from tests.literals.test_decoys import drawn


def estimated(num_source: int, share: float, seed: int) -> tuple[bool, float, float]:
    """Whether the interval covers the true share, the error of the estimate, and the width."""
    candidates, is_right = drawn(np.random.default_rng(seed), num_source, share)
    judged = judge_best(candidates)
    targets = candidates.pairs[judged.places, 1]

    found = counterpart_share(judged, targets, num_source)

    truth = is_right.sum() / num_source
    covers = found.low <= truth <= found.high
    assert 0 <= found.low <= found.value <= found.high <= 1
    return bool(covers), abs(found.value - truth), found.high - found.low


def test_the_interval_covers_the_share() -> None:
    covers, error, width = estimated(500, 0.6, 1)

    assert covers
    assert error < 0.06
    assert width < 0.4


@pytest.mark.slow
def test_intervals_cover_the_share_in_most_cases() -> None:
    cases = [
        estimated(num_source, share, seed)
        for seed, num_source in ((1, 300), (2, 600), (3, 900), (4, 1200))
        for share in (0.3, 0.4, 0.5, 0.7, 0.9)
    ]

    assert np.mean([covers for covers, _, _ in cases]) >= 0.85
    assert np.mean([width for _, _, width in cases]) < 0.35


def test_missed_counterparts_are_counted() -> None:
    # a right pair of rank 2 is the best one of half of the entities
    probs = np.array([1.0, 1.0, 0.0, 0.5])
    ranks = np.array([2.0, 9.0, 9.0, 9.0])
    others = np.array([1.0, 2.0, 3.0, 4.0])

    found = corrected_share(probs, ranks, others)

    expected = sum(
        prob / max(sum(other <= rank for other in others) / 4, decoy_share.LEAST_SEEN)
        for prob, rank in zip(probs, ranks, strict=True)
    )
    assert found == pytest.approx(expected / 4) == pytest.approx((2 + 1 + 0.5) / 4)


def test_links_do_not_count() -> None:
    candidates, is_right = drawn(np.random.default_rng(5), 300, 0.6)
    is_known = np.zeros(len(is_right), dtype=bool)
    is_known[np.flatnonzero(is_right)[:50]] = True

    judged = judge_best(candidates._replace(is_known=is_known))
    seen = seen_pairs(judged, candidates.pairs[judged.places, 1])

    assert len(seen.scores) == len(judged.places) - 50


def test_without_candidates_the_share_is_zero() -> None:
    candidates, _ = drawn(np.random.default_rng(6), 120, 0.6)
    known = candidates._replace(is_known=np.ones(len(candidates.pairs), dtype=bool))
    judged = judge_best(known)
    targets = candidates.pairs[judged.places, 1]

    assert counterpart_share(judged, targets, 0) == (0.0, 0.0, 0.0)
