"""The answer of a run without links from literals: best pairs, judged by decoys."""

import logging
from typing import NamedTuple

import numpy as np

from emea.data.arrays import NO_MATCH, FloatArray, IntArray, are_among
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.literals.agreement import (
    Agreement,
    Column,
    code_column,
    neighbour_column,
    word_column,
)
from emea.literals.decoy_share import Share, counterpart_share
from emea.literals.decoys import Candidates, best_three, competing, judge_best
from emea.literals.records import (
    Records,
    both_records,
    candidate_pairs,
    row_cosines,
    word_vectors,
)
from emea.literals.similar_texts import best_few

logger = logging.getLogger(__name__)

LIKELY = 0.5
"""Minimum probability of an answer, unless a threshold or a target precision is set."""

LEAST_RELATED, MOST_RELATED = 0.1, 10
"""Pairs that neighbours suggest: minimum probability, and number for each source entity."""

FEWEST_SOURCES = 100
"""Fewer source entities with candidates do not show what decoys look like."""

NOTHING_IN_COMMON = (
    "Nothing is matched: no attribute distinguishes the best candidates from decoys, which look "
    "like the best candidates of entities without a counterpart. The data may have no entities in "
    "common, or only numbers that count the rows."
)


class RelatedPairs(NamedTuple):
    """Pairs of entities that matched neighbours support.

    Args:
        pairs: ``[num_pairs, 2]`` source and target entities.
        log_doubt: ``[num_pairs]`` log of the doubt that the evidence leaves.
        matched: ``[num_matched, 2]`` the matched entities.
    """

    pairs: IntArray
    log_doubt: FloatArray
    matched: IntArray


class DecoyAnswer(NamedTuple):
    """The best candidate of each source entity and its probability.

    Args:
        targets: ``[num_source]`` the best candidate, or ``NO_MATCH``.
        probs: ``[num_source]`` the probability that it is right.
        share: The estimated share of the source entities without a link that have a counterpart,
            with its interval.
        expected_precision: The mean probability of the answers from ``LIKELY``; NaN if there are
            none.
        num_decoys: The number of decoys.
        weights: The weight of each kind of evidence.
        lookalikes: The estimated share of lookalikes among pairs that are not like decoys.
    """

    targets: IntArray
    probs: FloatArray
    share: Share
    expected_precision: float
    num_decoys: int
    weights: dict[str, float]
    lookalikes: float

    def winners(self) -> IntArray:
        """Return ``[n, 2]`` the answers: each entity is in one of them at most."""
        sources = np.flatnonzero((self.probs >= LIKELY) & (self.targets != NO_MATCH))
        return np.stack([sources, self.targets[sources]], axis=1)


def answer_by_decoys(
    pair: GraphPair, related: RelatedPairs, links: IntArray, rejected: IntArray
) -> DecoyAnswer | None:
    """Judge the best candidate of each source entity by decoys.

    Args:
        pair: The graphs, with their matched values.
        related: What neighbours suggest.
        links: ``[num_links, 2]`` pairs that are right.
        rejected: ``[num_rejected, 2]`` pairs that are wrong.

    Returns:
        The answer; ``None`` if there are too few entities to learn from.
    """
    source, target = both_records(pair)
    texts = source.words(), target.words()
    vectors = word_vectors(*texts)
    further = np.concatenate([_likely_pairs(related), links])
    pairs = candidate_pairs(pair, source, target, vectors, further)
    pairs = pairs[~are_among(pairs, rejected)]
    num_free = source.num_entities - len(np.unique(links[:, 0]))
    if min(source.num_entities, target.num_entities) < FEWEST_SOURCES:
        return None
    words = row_cosines(*vectors, pairs[:, 0], pairs[:, 1])
    similarity, columns = _neighbours(pair, related, pairs, words)
    is_known = are_among(pairs, links)
    attributes, alike = _attributes(source, target, pairs, similarity, is_known)
    columns += attributes
    if not columns or not len(pairs):
        return _empty(source.num_entities)
    columns += [word_column(vectors, pairs, words), code_column(*texts, pairs)]
    columns = [column for column in columns if column.levels.any()]
    found = judge_best(Candidates(pairs, columns, words, similarity, is_known, alike))
    best = pairs[found.places]
    probs = competing(best[:, 1], found.probs)
    targets = np.full(source.num_entities, NO_MATCH)
    of_source = np.zeros(source.num_entities)
    targets[best[:, 0]], of_source[best[:, 0]] = best[:, 1], probs
    is_open = ~is_known[found.places]
    likely = probs[is_open & (probs >= LIKELY)]
    names = [
        *(column.name for column in columns),
        "margin of the source",
        "margin of the target",
    ]
    return DecoyAnswer(
        targets=targets,
        probs=of_source,
        share=counterpart_share(found, best[:, 1], num_free),
        expected_precision=float(likely.mean()) if len(likely) else float("nan"),
        num_decoys=len(found.fit.sample.decoys),
        weights=dict(zip(names, found.fit.weighed.weights.tolist(), strict=True)),
        lookalikes=found.lookalikes.share,
    )


def _empty(num_source: int) -> DecoyAnswer:
    nothing = np.full(num_source, NO_MATCH), np.zeros(num_source)
    unknown = float("nan")
    return DecoyAnswer(*nothing, Share(0.0, 0.0, 0.0), unknown, 0, {}, unknown)


def _likely_pairs(related: RelatedPairs) -> IntArray:
    """Return the pairs that neighbours support best."""
    probs = -np.expm1(related.log_doubt)
    kept = best_few(related.pairs[:, 0], probs, MOST_RELATED) & (probs >= LEAST_RELATED)
    return related.pairs[kept]


def _neighbours(
    pair: GraphPair, related: RelatedPairs, pairs: IntArray, words: FloatArray
) -> tuple[FloatArray, list[Column]]:
    """Return the first similarity of candidates, and the evidence of neighbours if there is any."""
    if not len(related.pairs):
        return words, []
    width = pair.target.num_entities
    order = np.argsort(related.pairs @ [width, 1])
    known = (related.pairs @ [width, 1])[order]
    keys = pairs @ [width, 1]
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    log_doubt = np.where(known[place] == keys, related.log_doubt[order][place], 0.0)
    probs = np.clip(-np.expm1(log_doubt), 0, 1 - 1e-12)
    with np.errstate(divide="ignore"):
        log_odds = np.log(probs) - log_doubt
    sides = zip((pair.source, pair.target), related.matched.T, pairs.T, strict=True)
    have = [_has_neighbour(graph, matched)[column] for graph, matched, column in sides]
    return words + probs, [neighbour_column(log_odds, have[0] & have[1])]


def _has_neighbour(graph: KnowledgeGraph, entities: IntArray) -> np.ndarray:
    """Return whether each entity is a neighbour of one of these entities."""
    wanted = np.zeros(graph.num_entities, dtype=bool)
    wanted[entities] = True
    found = np.zeros(graph.num_entities, dtype=bool)
    heads = graph.triples[:, 0]
    tails = graph.triples[:, 2]
    found[heads[wanted[tails]]] = True
    found[tails[wanted[heads]]] = True
    return found


def _attributes(
    source: Records,
    target: Records,
    pairs: IntArray,
    similarity: FloatArray,
    is_known: np.ndarray,
) -> tuple[list[Column], list[Column]]:
    """Return the agreement of the attributes that correspond, and of others with equal names."""
    if not len(source.values) or not len(target.values) or not len(pairs):
        return [], []
    ranks = np.where(is_known, np.inf, similarity)
    of_source = best_three(pairs[:, 0], ranks, similarity)
    of_target = best_three(pairs[:, 1], ranks, similarity)
    best = of_source.best[of_source.second >= 0]
    second = of_source.second[of_source.second >= 0]
    is_mutual = of_target.best[pairs[best, 1]] == best
    agreement = Agreement(source, target)
    found = list(agreement.columns(pairs, best[is_mutual], second[is_mutual]))
    return found, list(agreement.alike(pairs, {column.name for column in found}))
