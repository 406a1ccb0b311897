"""One clustering of several graphs, from the runs of all their pairs.

The runs of the pairs do not know of each other: a = b and b = c may be found, and a = c missed, or
a = d found instead. The clusters follow all probabilities at once. With one counterpart for each
entity, a cluster has at most one entity of each graph.

A run that does not find a = c, although b connects them, says something, too. How much is estimated
from sure triangles: of the pairs that two sure matches imply, the runs find a share r. So a missing
pair is as likely as 1 - r if both are the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from emea.clusters.correlation import consistent_clusters
from emea.data.arrays import FloatArray, IntArray, are_among

SURE = 0.9
"""Probability of the matches that make sure triangles."""

LIKELY = 0.5

LEAST_LISTED = 0.01
"""Less probable candidates of a run are left out: others of the same entity are more probable."""


LEAST_OF_MISSING = 0.05
"""Least probability of a missing pair: that a run does not find it proves nothing."""


class PairMatches(NamedTuple):
    """What the run of two graphs says.

    Args:
        first, second: The places of the graphs.
        pairs: ``[num_pairs, 2]`` entities of both graphs.
        probs: ``[num_pairs]`` the probability that they are the same.
    """

    first: int
    second: int
    pairs: IntArray
    probs: FloatArray


class SeveralClusters(NamedTuple):
    """The clusters of the entities of several graphs, numbered one graph after the other.

    Args:
        pairs: ``[num_pairs, 2]`` pairs of entities.
        probs: ``[num_pairs]`` the probability that they are the same.
        clusters: ``[num_entities]`` the smallest entity of the cluster of each entity.
        confirmed: The estimated share of the implied pairs that the runs find.
    """

    pairs: IntArray
    probs: FloatArray
    clusters: IntArray
    confirmed: float


def cluster_several(
    sizes: Sequence[int],
    matches: Sequence[PairMatches],
    is_single: bool,
    threshold: float = LIKELY,
) -> SeveralClusters:
    """Return one consistent clustering of several graphs.

    Args:
        sizes: The number of entities of each graph.
        matches: What the runs of all pairs of graphs say.
        is_single: Whether a cluster has at most one entity of each graph.
        threshold: The probability from which a pair speaks for a cluster.
    """
    starts = np.append(0, np.cumsum(sizes))
    num_entities = int(starts[-1])
    found = [one.pairs + starts[[one.first, one.second]] for one in matches]
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *found])
    probs = np.concatenate([np.zeros(0), *(one.probs for one in matches)])
    places = np.repeat(np.arange(len(sizes)), sizes)
    sure = implied_pairs(pairs[probs >= SURE], places, num_entities)
    num_found = int(are_among(sure, pairs[probs >= LIKELY]).sum())
    confirmed = (num_found + 1) / (len(sure) + 2)
    missing = implied_pairs(pairs[probs >= threshold], places, num_entities)
    missing = missing[~are_among(missing, pairs)]
    # log odds log(1 - r), as a probability
    prob = max((1 - confirmed) / (2 - confirmed), LEAST_OF_MISSING)
    pairs = np.concatenate([pairs, missing])
    probs = np.append(probs, np.full(len(missing), prob))
    clusters = consistent_clusters(
        num_entities,
        pairs,
        probs,
        groups=places.tolist() if is_single else None,
        threshold=threshold,
    )
    return SeveralClusters(pairs, probs, clusters, confirmed)


def implied_pairs(pairs: IntArray, places: IntArray, num_entities: int) -> IntArray:
    """Return ``[n, 2]`` pairs of entities of two graphs that both match one of a third graph.

    Args:
        pairs: ``[num_pairs, 2]`` matches; the graph of the first entity comes first.
        places: ``[num_entities]`` the graph of each entity.
        num_entities: The number of entities.
    """
    both = np.concatenate([pairs, pairs[:, ::-1]])
    ones = np.ones(len(both), dtype=np.float32)
    matrix = sp.csr_matrix((ones, tuple(both.T)), shape=(num_entities, num_entities))
    reached = (matrix @ matrix).tocoo()
    found = np.stack([reached.row, reached.col], axis=1).astype(np.int64)
    return found[places[found[:, 0]] < places[found[:, 1]]]


def closed_share(pairs: IntArray, places: IntArray, num_entities: int) -> float:
    """Return the share of the implied pairs that are among the pairs; 1 if none is implied."""
    implied = implied_pairs(pairs, places, num_entities)
    return float(are_among(implied, pairs).mean()) if len(implied) else 1.0
