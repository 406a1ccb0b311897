"""Probabilities that two entities of one graph are the same, judged by decoys.

The model is that of two graphs (`emea.literals.decoys`). What differs:

- An entity is not compared with itself, nor with entities of another kind (``own_records``): a
  state that has only a name says nothing about how people differ.
- An entity may have several duplicates. Those in its present cluster are its best pairs, or else
  its best candidate is; its decoy is the best candidate of another cluster. Entities of one cluster
  do not compete, so a margin is the lead over the best candidate of a third cluster.
- Noisy copies of some entities are duplicates that are known (`noisy_copies`). The first pass
  learns from them, and from their decoys, only.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emea.clusters.correlation import consistent_clusters
from emea.clusters.own_records import (
    OwnAgreement,
    OwnRecords,
    first_equal,
    places_among,
    possible_pairs,
)
from emea.data.arrays import FloatArray, IntArray
from emea.literals.agreement import Column, code_column, word_column
from emea.literals.decoys import (
    LEAST_SHARE,
    LENIENT,
    NUM_PASSES,
    WORDS_SHARE,
    Sample,
    Weighted,
    best_three,
    posterior,
    share_of_right,
    sharpened,
    weigh_counted,
)
from emea.literals.records import Records, WordVectors, row_cosines
from emea.literals.similar_texts import WORDS
from emea.literals.term_weights import term_weights

logger = logging.getLogger(__name__)

LIKELY = 0.5
"""Minimum probability of the pairs that make a cluster, unless a threshold is given."""


EQUAL_PROB = 0.9
"""Probability of entities with exactly the same values, if there are no others to compare."""

FEW_ENTITIES = 50
FEW = (
    "Only %d different entities%s show what entities look like that are not the same. The "
    "probabilities are rough: look at the clusters."
)

UNJUDGED = (
    "No pair%s shows what entities look like that are not the same: their values are too much "
    "alike. Only entities with exactly the same values are in clusters. Add columns that "
    "distinguish them."
)
MANY_SHARE = 0.5
MANY = (
    "%d of %d entities are in clusters. If so many duplicates are unlikely, the values do not "
    "distinguish entities well enough: look at the clusters, or add columns."
)


UNCOMPARED = 0.05
"""Probability of a pair of one cluster that was not compared: other pairs were more similar."""


class Duplicates(NamedTuple):
    """Pairs of entities of one graph that may be the same, and their clusters.

    Args:
        pairs: ``[num_pairs, 2]`` pairs that were compared, the smaller entity first.
        probs: ``[num_pairs]`` the probability that both are the same.
        clusters: ``[num_entities]`` the smallest entity of the cluster of each entity.
        num_decoys: The number of decoys.
        weights: The weight of each kind of evidence, for each kind of entities.
    """

    pairs: IntArray
    probs: FloatArray
    clusters: IntArray
    num_decoys: int
    weights: dict[str, dict[str, float]]


def find_duplicates(
    kinds: Sequence[OwnRecords], threshold: float = LIKELY
) -> Duplicates:
    """Return the probable duplicates of a graph, in clusters.

    Args:
        kinds: The values of the entities of each kind.
        threshold: Minimum probability of the pairs that make a cluster.
    """
    found = [duplicates_of_kind(own, threshold) for own in kinds]
    clusters = np.arange(sum(own.num_real for own in kinds))
    for own, one in zip(kinds, found, strict=True):
        clusters[own.entities] = own.entities[one.clusters]
    _warn_of_many(clusters)
    entities = [own.entities[one.pairs] for own, one in zip(kinds, found, strict=True)]
    return Duplicates(
        pairs=np.concatenate([np.zeros((0, 2), dtype=np.int64), *entities]),
        probs=np.concatenate([np.zeros(0), *(one.probs for one in found)]),
        clusters=clusters,
        num_decoys=sum(one.num_decoys for one in found),
        weights={key: row for one in found for key, row in one.weights.items()},
    )


def duplicates_of_kind(own: OwnRecords, threshold: float) -> Duplicates:
    """Return the probable duplicates among the entities of one kind."""
    first = first_equal(own.records)[: own.num_real]
    places = places_among(first)
    # more equal entities would say the same
    candidates = own_candidates(own, wanted=places < 2)
    found = judge_own(candidates)
    _warn_of_few(own, places, found)
    kept = candidates.is_forward & candidates.is_real
    pairs = candidates.pairs[kept]
    probs = found.probs[kept]
    if not found.num_decoys:
        probs = np.where(_are_equal(first, pairs), EQUAL_PROB, 0.0)
    prob_of = np.zeros(own.num_real)
    is_equal = _are_equal(first, pairs)
    prob_of[pairs[is_equal, 0]] = probs[is_equal]
    # equal entities are one, so that their number says nothing about others
    everyone = np.arange(own.num_real)
    nodes = np.where(prob_of[first] >= threshold, first, everyone)
    is_node = (nodes[pairs] == pairs).all(axis=1)
    clusters = consistent_clusters(
        own.num_real,
        pairs[is_node],
        probs[is_node],
        threshold=threshold,
        uncompared=UNCOMPARED,
    )
    # further equal entities are as probable as the first two
    further = np.flatnonzero(places >= 2)
    added = np.stack([first[further], further], axis=1)
    names = [*(column.name for column in candidates.columns), "margin", "margin back"]
    return Duplicates(
        pairs=np.concatenate([pairs, added]),
        probs=np.append(probs, prob_of[first[further]]),
        clusters=clusters[nodes],
        num_decoys=found.num_decoys,
        weights={own.kind: dict(zip(names, found.weights, strict=False))},
    )


def _warn_of_few(own: OwnRecords, places: IntArray, found: "OwnJudgement") -> None:
    """Warn if few entities of a kind show what entities look like that are not the same."""
    has_values = np.isin(np.arange(own.num_real), own.records.entities)
    num_distinct = int((has_values & (places == 0)).sum())
    which = f" of {own.kind}" if own.kind else ""
    if 0 < num_distinct < FEW_ENTITIES:
        logger.warning(FEW, num_distinct, which)
    if num_distinct > 1 and not found.num_decoys:
        logger.warning(UNJUDGED, which)


def _warn_of_many(clusters: IntArray) -> None:
    """Warn if most entities are duplicates, which values that say little also lead to."""
    sizes = np.bincount(clusters)
    num_members = int(sizes[sizes > 1].sum())
    if num_members > MANY_SHARE * len(clusters):
        logger.warning(MANY, num_members, len(clusters))


class OwnCandidates:
    """Pairs of entities of one graph that are compared, in both directions.

    Args:
        pairs: ``[num_pairs, 2]`` the pairs, ascending.
        words: ``[num_pairs]`` cosine of all their words.
        columns: Their agreement.
        originals: ``[num_copies]`` the entity of which each noisy copy is made.
        num_real: The number of entities without the copies.

    Attributes:
        reverse: ``[num_pairs]`` the place of each pair in the other direction.
        is_forward: ``[num_pairs]`` whether the smaller entity comes first.
        is_real: ``[num_pairs]`` whether a pair has no copy.
        is_known: ``[num_pairs]`` whether a pair is a copy and its original.
        is_open: ``[num_entities]`` whether an entity neither is a copy nor has one.
    """

    def __init__(
        self,
        pairs: IntArray,
        words: FloatArray,
        columns: list[Column],
        originals: IntArray,
        num_real: int,
    ) -> None:
        self.pairs = pairs
        self.words = words
        self.columns = columns
        self.num_entities = num_real + len(originals)
        self.reverse = reversed_places(pairs, self.num_entities)
        self.is_forward = pairs[:, 0] < pairs[:, 1]
        smaller = pairs.min(axis=1)
        larger = pairs.max(axis=1)
        self.is_real = larger < num_real
        copied = np.append(originals, -1)[np.where(self.is_real, -1, larger - num_real)]
        self.is_known = copied == smaller
        self.is_open = np.arange(self.num_entities) < num_real
        self.is_open[originals] = False


def reversed_places(pairs: IntArray, num_entities: int) -> IntArray:
    """Return the place of each pair in the other direction."""
    keys = pairs @ [num_entities, 1]
    return np.searchsorted(keys, pairs @ [1, num_entities])


def own_candidates(own: OwnRecords, wanted: np.ndarray) -> OwnCandidates:
    """Return the pairs to compare, and their agreement.

    Args:
        own: The values of the entities.
        wanted: ``[num_real]`` whether to compare an entity. Noisy copies always are.
    """
    records = own.records
    wanted = np.append(wanted, np.ones(len(own.originals), dtype=bool))
    texts = records.words()
    if not any(texts):
        nothing = np.zeros((0, 2), dtype=np.int64)
        return OwnCandidates(nothing, np.zeros(0), [], own.originals, own.num_real)
    vectors, _ = term_weights(texts, [], WORDS)
    pairs = possible_pairs(records, vectors, wanted)
    words = row_cosines(vectors, vectors, pairs[:, 0], pairs[:, 1])
    columns = _attributes(records, pairs, words)
    columns.append(word_column(WordVectors(vectors, vectors), pairs, words))
    columns.append(code_column(texts, texts, pairs))
    columns = [column for column in columns if column.levels.any()]
    return OwnCandidates(pairs, words, columns, own.originals, own.num_real)


def _attributes(records: Records, pairs: IntArray, words: FloatArray) -> list[Column]:
    """Return the agreement of the attributes that distinguish the most similar pairs."""
    best = best_three(pairs[:, 0], words, words)
    is_mutual = mutual_best(pairs, words, records.num_entities)
    chosen = best.second >= 0
    chosen[chosen] = is_mutual[best.best[chosen]]
    agreement = OwnAgreement(records)
    return list(agreement.columns(pairs, best.best[chosen], best.second[chosen]))


def mutual_best(pairs: IntArray, words: FloatArray, num_entities: int) -> np.ndarray:
    """Return whether both entities of each pair are the most similar one of each other."""
    best = best_three(pairs[:, 0], words, words).best
    is_best = np.zeros(len(pairs), dtype=bool)
    is_best[best[best >= 0]] = True
    found: np.ndarray = is_best & is_best[reversed_places(pairs, num_entities)]
    return found


class OwnSample(NamedTuple):
    """The best pairs and the decoys of the entities of one graph.

    Args:
        drawn: Both, as the model takes them.
        is_leading: ``[num_best]`` whether a best pair is the best one of its first entity.
        margins: ``[num_pairs]`` the margin of each candidate.
    """

    drawn: Sample
    is_leading: np.ndarray
    margins: FloatArray


def draw_own_sample(
    candidates: OwnCandidates, ranks: FloatArray, clusters: IntArray
) -> OwnSample:
    """Return best pairs and decoys by a ranking, with the margins of all pairs.

    Args:
        candidates: The pairs.
        ranks: ``[num_pairs]`` the ranking.
        clusters: ``[num_entities]`` the present cluster of each entity.
    """
    sources, targets = candidates.pairs.T
    words = candidates.words
    other = clusters[targets]
    is_mate = clusters[sources] == other
    first, second, third = _best_clusters(candidates, ranks, other, ~is_mate)
    # a margin ignores the clusters of both entities
    rival = first[sources]
    is_rival = (rival >= 0) & (other == other[rival]) & ~is_mate
    rival = np.where(is_rival, second[sources], rival)
    margins = ranks - _at(ranks, rival)
    # the mates of an entity are its best pairs, or else its best candidate is
    mates = np.flatnonzero(is_mate)
    best_mate = best_three(sources[mates], ranks[mates], words[mates]).best
    is_best_mate = np.isin(np.arange(len(mates)), best_mate)
    has_mate = np.zeros(candidates.num_entities, dtype=bool)
    has_mate[sources[mates]] = True
    lone = first[~has_mate & (first >= 0)]
    best = np.concatenate([mates, lone])
    is_leading = np.append(is_best_mate, np.ones(len(lone), dtype=bool))
    # decoys are compared as if the best pairs did not exist
    decoy = np.where(has_mate, first, second)[sources[best]]
    has_decoy = is_leading & (decoy >= 0)
    decoys = decoy[has_decoy]
    next_best = np.where(has_mate, second, third)[sources[decoys]]
    of_decoys = ranks[decoys] - _at(ranks, next_best)
    by_source = np.concatenate([margins[best], of_decoys])
    by_target = margins[candidates.reverse[np.concatenate([best, decoys])]]
    drawn = Sample(best, decoys, has_decoy, is_leading, (by_source, by_target))
    return OwnSample(drawn, is_leading, margins)


def _best_clusters(
    candidates: OwnCandidates,
    ranks: FloatArray,
    other: IntArray,
    is_outside: np.ndarray,
) -> list[IntArray]:
    """Return the best candidates of each entity in its best three other clusters, or -1.

    Args:
        candidates: The pairs.
        ranks: ``[num_pairs]`` the ranking.
        other: ``[num_pairs]`` the cluster of the second entity of each pair.
        is_outside: ``[num_pairs]`` whether that is another cluster than that of the first.
    """
    sources = candidates.pairs[:, 0]
    words = candidates.words
    order = np.lexsort((-words, -ranks, other, sources))
    order = order[is_outside[order]]
    keys = sources[order] * candidates.num_entities + other[order]
    best = order[np.unique(keys, return_index=True)[1]]
    found = []
    for places in best_three(sources[best], ranks[best], words[best]):
        of_entity = np.full(candidates.num_entities, -1)
        of_entity[: len(places)] = np.where(places >= 0, best[places], -1)
        found.append(of_entity)
    return found


def _at(ranks: FloatArray, places: IntArray) -> FloatArray:
    """Return the scores of candidates, and 0 for those that do not exist."""
    return np.where(places >= 0, ranks[places], 0.0)


class OwnJudgement(NamedTuple):
    """The probability of each pair, the number of decoys, and the weights of the evidence."""

    probs: FloatArray
    num_decoys: int
    weights: list[float]


def judge_own(candidates: OwnCandidates) -> OwnJudgement:
    """Estimate the probability of each pair, the same in both directions."""
    known = candidates.is_known
    if not known.any():
        return OwnJudgement(np.zeros(len(known)), 0, [])
    ranks = candidates.words
    probs = _first_probs(candidates)
    for number in range(NUM_PASSES):
        clusters = _clusters(candidates, probs)
        sample = draw_own_sample(candidates, ranks, clusters)
        drawn = sample.drawn
        right = sharpened(probs[drawn.best])
        # an entity outside may be a duplicate, too
        as_decoys = right[drawn.has_decoy] * (1 - sharpened(probs[drawn.decoys]))
        wrong = np.append(1 - right, as_decoys)
        if number == 0:
            right = known[drawn.best].astype(float)
            wrong = np.append(0 * right, right[drawn.has_decoy] * as_decoys)
        is_open = (
            sample.is_leading & candidates.is_open[candidates.pairs[drawn.best, 0]]
        )
        share = float(probs[drawn.best][is_open].mean()) if is_open.any() else 0.0
        found = weigh_counted(candidates.columns, drawn, right, wrong, share)
        scores, ranks = scored(candidates, found, sample.margins)
        if number == 0:
            share = _share(found, is_open, wrong)
        probs = posterior(scores, float(np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)))
        probs[known] = 1
    share = _share(found, is_open, np.append(right, probs[drawn.best][drawn.has_decoy]))
    probs = posterior(scores, float(np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)))
    num_decoys = len(drawn.decoys)
    # so many decoys cannot show a smaller share of wrong pairs
    probs = np.minimum(probs, 1 - 1 / (1 + num_decoys))
    return OwnJudgement(probs, num_decoys, found.weights.tolist())


def _share(found: Weighted, is_open: np.ndarray, weights: FloatArray) -> float:
    """Return the share of the entities that have a duplicate, from the scores of the decoys."""
    best, decoys = np.split(found.scores, [len(is_open)])
    return share_of_right(best[is_open], decoys, weights[len(is_open) :])


def _first_probs(candidates: OwnCandidates) -> FloatArray:
    """Return first probabilities: best pairs as similar as half of the copies are likely."""
    known = candidates.is_known
    words = candidates.words
    is_similar = words >= np.median(words[known])
    # a copy, which is more similar, must not make a decoy of a duplicate of its original
    real = np.flatnonzero(candidates.is_real)
    is_mutual = np.zeros(len(words), dtype=bool)
    is_mutual[real] = mutual_best(
        candidates.pairs[real], words[real], candidates.num_entities
    )
    probs = np.where(is_mutual & is_similar, *LENIENT)
    return np.where(known, 1.0, probs)


def _clusters(candidates: OwnCandidates, probs: FloatArray) -> IntArray:
    """Return the clusters that likely pairs make."""
    likely = candidates.is_forward & (probs >= LIKELY)
    pairs = candidates.pairs[likely]
    return consistent_clusters(candidates.num_entities, pairs, probs[likely])


def scored(
    candidates: OwnCandidates, found: Weighted, margins: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return s of each pair, the mean of both directions, and the ranking of the next pass."""
    weights = found.weights
    static = np.zeros(len(margins))
    for column, evidence, weight in zip(
        candidates.columns, found.evidence, weights, strict=False
    ):
        static += weight * evidence[column.levels]
    total = static + found.offset
    both = (margins, margins[candidates.reverse])
    of_margins = weights[len(candidates.columns) :]
    for values, one, weight in zip(both, found.of_margins, of_margins, strict=True):
        total = total + weight * one.evidence[np.digitize(values, one.ends) + 1]
    total = (total + total[candidates.reverse]) / 2
    return total, static + WORDS_SHARE * candidates.words


def _are_equal(first: IntArray, pairs: IntArray) -> np.ndarray:
    """Return whether both entities of each pair have exactly the same values."""
    found: np.ndarray = first[pairs[:, 0]] == first[pairs[:, 1]]
    return found
