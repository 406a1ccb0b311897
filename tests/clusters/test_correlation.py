"""Clusters against a slow loop, and their constraints."""

import numpy as np
import pytest

from emea.clusters.correlation import SURELY_DIFFERENT, consistent_clusters, log_odds


def slow_clusters(num_entities, pairs, probs, groups=None, uncompared=0.5) -> list[int]:
    """Join the two clusters with the largest sum of log odds, as long as one is positive."""
    weight = {}
    for (first, second), prob in zip(pairs.tolist(), probs.tolist(), strict=True):
        odds = -np.inf if prob < SURELY_DIFFERENT else float(np.log(prob / (1 - prob)))
        weight[frozenset((first, second))] = odds
    clusters = [{entity} for entity in range(num_entities)]
    doubt = float(np.log(uncompared / (1 - uncompared)))

    def between(one: set[int], other: set[int]) -> float:
        if groups is not None and {groups[a] for a in one} & {groups[b] for b in other}:
            return -np.inf
        return sum(weight.get(frozenset((a, b)), doubt) for a in one for b in other)

    while True:
        totals = [
            (between(one, other), place, further)
            for place, one in enumerate(clusters)
            for further, other in enumerate(clusters[:place])
        ]
        best = max(totals, default=(0.0, 0, 0))
        if best[0] <= 1e-12:
            break
        clusters[best[2]] |= clusters.pop(best[1])
    found = [0] * num_entities
    for members in clusters:
        for entity in members:
            found[entity] = min(members)
    return found


def drawn(seed: int, num_entities: int = 12):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(num_entities, 1)
    kept = rng.random(len(first)) < 0.5
    pairs = np.stack([first[kept], second[kept]], axis=1)
    probs = rng.beta(0.4, 0.6, len(pairs)).clip(1e-4, 1 - 1e-4)
    return pairs, probs, rng.integers(0, 4, num_entities).tolist()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("has_groups", [False, True])
def test_clusters_are_those_of_a_slow_loop(seed: int, has_groups: bool) -> None:
    pairs, probs, groups = drawn(seed)
    groups = groups if has_groups else None

    found = consistent_clusters(12, pairs, probs, groups)

    assert found.tolist() == slow_clusters(12, pairs, probs, groups)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("uncompared", [0.05, 0.3])
def test_pairs_that_were_not_compared_count(seed: int, uncompared: float) -> None:
    pairs, probs, _ = drawn(seed)

    found = consistent_clusters(12, pairs, probs, uncompared=uncompared)

    slow = slow_clusters(12, pairs, probs, uncompared=uncompared)
    assert found.tolist() == slow


def test_clusters_do_not_grow_from_link_to_link() -> None:
    chain = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    probs = np.full(9, 0.8)

    assert consistent_clusters(10, chain, probs).tolist() == [0] * 10
    found = consistent_clusters(10, chain, probs, uncompared=0.05)
    assert np.bincount(found).max() == 2


def test_entities_that_are_surely_different_are_never_joined_through_a_third() -> None:
    pairs = np.array([[0, 1], [1, 2], [0, 2]])

    found = consistent_clusters(3, pairs, np.array([0.999, 0.99, 0.01]))

    assert found.tolist() == [0, 0, 2]


def test_weak_doubt_does_not_part_what_strong_evidence_joins() -> None:
    pairs = np.array([[0, 1], [1, 2], [0, 2]])

    found = consistent_clusters(3, pairs, np.array([0.999, 0.99, 0.3]))

    assert found.tolist() == [0, 0, 0]


def test_a_cluster_has_one_entity_of_each_group() -> None:
    pairs = np.array([[0, 1], [1, 2]])

    found = consistent_clusters(3, pairs, np.array([0.7, 0.9]), groups=[0, 1, 0])

    assert found.tolist() == [0, 1, 1]


def test_threshold_is_the_probability_from_which_pairs_are_joined() -> None:
    pairs = np.array([[0, 1], [2, 3]])
    probs = np.array([0.7, 0.9])

    assert consistent_clusters(4, pairs, probs, threshold=0.8).tolist() == [0, 1, 2, 2]
    assert consistent_clusters(4, pairs, probs, threshold=0.6).tolist() == [0, 0, 2, 2]


def test_order_of_pairs_does_not_matter() -> None:
    pairs, probs, _ = drawn(7)
    order = np.random.default_rng(0).permutation(len(pairs))

    found = consistent_clusters(12, pairs[order][:, ::-1], probs[order])

    assert found.tolist() == consistent_clusters(12, pairs, probs).tolist()


def test_log_odds_are_finite() -> None:
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()
