"""Consistent clusters from probabilities of pairs: correlation clustering with constraints.

The log odds of a pair speak for or against one cluster. Clusters are joined, those with the largest
sum of log odds between them first, as long as the sum is positive (greedy additive edge
contraction; Keuper et al., ICCV 2015). A pair that was not compared may speak against a cluster,
too, so that clusters do not grow from link to link. Two clusters stay apart if a pair between them
is surely different, or if both have an entity of the same group, such as a graph without
duplicates.
"""

import heapq
from collections.abc import Sequence

import numpy as np

from emea.data.arrays import FloatArray, IntArray

SURELY_DIFFERENT = 0.01
"""A pair with a lower probability is never in one cluster, even if other pairs connect it."""

LEAST_DOUBT = 1e-6
"""Probabilities are at least this far from 0 and 1."""

Weights = dict[int, float]
"""The sum of the log odds between a cluster and each other cluster."""


def consistent_clusters(
    num_entities: int,
    pairs: IntArray,
    probs: FloatArray,
    groups: Sequence[int] | None = None,
    threshold: float = 0.5,
    *,
    uncompared: float | None = None,
) -> IntArray:
    """Return ``[num_entities]`` the smallest entity of the cluster of each entity.

    Args:
        num_entities: The number of entities.
        pairs: ``[num_pairs, 2]`` distinct pairs of different entities that were compared.
        probs: ``[num_pairs]`` the probability that they are the same.
        groups: ``[num_entities]`` the group of each entity, of which a cluster has at most one
            entity; ``None`` means that there are no groups.
        threshold: The probability from which a pair speaks for a cluster.
        uncompared: The probability of a pair that was not compared; ``None`` if that says nothing.
    """
    weights, doubt = _weights(probs, threshold, uncompared)
    around = _around(num_entities, pairs, weights)
    members = [[entity] for entity in range(num_entities)]
    held = [{group} for group in (range(num_entities) if groups is None else groups)]
    queue = [
        (-weight - doubt, first, second)
        for first, row in enumerate(around)
        for second, weight in row.items()
        if first < second and weight + doubt > 0
    ]
    heapq.heapify(queue)
    while queue:
        entry, first, second = heapq.heappop(queue)
        weight = around[first].get(second)
        if weight is None or held[first] & held[second]:
            continue
        total = weight + doubt * len(members[first]) * len(members[second])
        # the entry is out of date if one of the clusters has changed
        if total != -entry:
            if 0 < total < -entry:
                heapq.heappush(queue, (-total, first, second))
            continue
        kept, gone = sorted((first, second), key=lambda one: (-len(around[one]), one))
        members[kept] += members[gone]
        held[kept] |= held[gone]
        members[gone] = []
        for other, weight in _contracted(around, kept, gone):
            total = weight + doubt * len(members[kept]) * len(members[other])
            if total > 0:
                heapq.heappush(queue, (-total, min(kept, other), max(kept, other)))
    clusters = np.arange(num_entities)
    for row in members:
        clusters[row] = min(row, default=0)
    return clusters


def log_odds(probs: FloatArray) -> FloatArray:
    """Return log p / (1 - p)."""
    clipped = np.clip(probs, LEAST_DOUBT, 1 - LEAST_DOUBT)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def _weights(
    probs: FloatArray, threshold: float, uncompared: float | None
) -> tuple[FloatArray, float]:
    """Return what a pair adds to the sum between two clusters, beyond that of an uncompared pair.

    The second value is what each uncompared pair adds.
    """
    likely = log_odds(np.array([threshold]))
    doubt = 0.0
    if uncompared is not None:
        doubt = min(0.0, float((log_odds(np.array([uncompared])) - likely)[0]))
    weights = log_odds(probs) - likely - doubt
    weights[probs < min(SURELY_DIFFERENT, threshold)] = -np.inf
    return weights, doubt


def _around(num_entities: int, pairs: IntArray, weights: FloatArray) -> list[Weights]:
    """Return the weights of the pairs of each entity."""
    around: list[Weights] = [{} for _ in range(num_entities)]
    for (first, second), weight in zip(pairs.tolist(), weights.tolist(), strict=True):
        around[first][second] = weight
        around[second][first] = weight
    return around


def _contracted(around: list[Weights], kept: int, gone: int) -> list[tuple[int, float]]:
    """Join a cluster to another one, and return the clusters whose sums changed."""
    del around[kept][gone]
    changed = []
    for other, weight in around[gone].items():
        if other == kept:
            continue
        del around[other][gone]
        total = around[kept].get(other, 0.0) + weight
        around[kept][other] = total
        around[other][kept] = total
        changed.append((other, total))
    around[gone] = {}
    return changed
