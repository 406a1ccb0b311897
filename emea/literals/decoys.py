"""Probabilities of pairs without links: a model that compares the best pairs with decoys.

Which of the best pairs are right is unknown. But if the best pair of a source entity is right, its
second best pair is wrong, and looks like the best pair of an entity without a counterpart: it is a
*decoy*. A share pi of the best pairs is right. With the agreement x_k of each attribute k,

- L_k(x) = log m_k(x) / u_k(x), where m_k and u_k are the shares of level x among the right pairs
  and among the wrong ones (``log_ratio``; Fellegi and Sunter, 1969),
- s = b + sum_k w_k L_k(x_k), where non-negative weights account for attributes that say the same
  (``fit_weights``). The margins to the runners-up of both entities are attributes, too,
- p = 1 / (1 + exp(-s - log pi / (1 - pi))) (``posterior``).

All of it is estimated in turn: right pairs are best pairs with weight p; wrong pairs are decoys
with weight p and best pairs with weight 1 - p. Last, pi is estimated without these weights: below a
score that most decoys have, best pairs are wrong, too (``share_of_right``; Storey, 2002). If
nothing distinguishes the best pairs from decoys, pi is 0.

A best pair that is not like a decoy can still be a lookalike (``emea.literals.lookalikes``), with
log odds t against it. So the answer has

- p = 1 / (1 + exp(-s - log pi / (1 - pi)) + exp(-t)) (``right_probs``).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.literals.agreement import Column
from emea.literals.bounded_newton import Examples, Prior, bounded_logistic
from emea.literals.level_ratios import MOST_EVIDENCE, log_ratio, shares_by_level
from emea.literals.lookalikes import BestPairs, Lookalikes, find_lookalikes

NUM_PASSES = 10
"""How often weights and probabilities are estimated in turn."""

MOST_OF_MARGIN = 4.0
"""Largest log ratio of a margin."""

LEAST_WEIGHT, USUAL_WEIGHT, RIDGE = 0.05, 0.5, 0.02
"""Weights of attributes: minimum, prior mean, and strength of the prior."""

MARGIN_STEPS = 12
"""Levels of the margins, with about as many pairs in each."""

WORDS_SHARE = 0.5
"""Weight of the cosine of all words in the ranking of the candidates. It breaks ties."""

SHARPNESS = 2.0
"""Odds are raised to this power when pairs are counted as right and wrong. Without it, the
estimates drift: soft labels lower the weights, and lower weights make softer labels."""

LENIENT, STRICT = (0.95, 0.05), (0.98, 0.02)
"""Probability of the pairs that count as right, and of the others, at first."""

STRICT_QUANTILE = 0.6
"""The strict start takes the mutual best pairs whose similarity is above this quantile."""

LEAST_GAIN, LEAST_ATTRIBUTES = 0.15, 3
"""The strict start is chosen if it predicts each attribute better from the others: by so many nats
for each best pair, in at least so many attributes. Then several differences outweigh an equal
title."""

SHARE_LEVELS = (0.7, 0.8, 0.9)
"""Quantiles of the decoys' scores below which best pairs count as wrong. The lowest share is
taken."""

LEAST_SHARE = 1e-3


class Ranking(NamedTuple):
    """The places of the best three candidates of each group, -1 if there are fewer."""

    best: IntArray
    second: IntArray
    third: IntArray


class Candidates(NamedTuple):
    """Pairs that are compared.

    Args:
        pairs: ``[num_pairs, 2]`` source and target entities.
        columns: Their agreement.
        words: ``[num_pairs]`` cosine of all their words.
        similarity: ``[num_pairs]`` by which candidates are ranked at first.
        is_known: ``[num_pairs]`` whether a pair is a link.
        alike: Agreement in attributes with equal names that do not show which pairs are right.
    """

    pairs: IntArray
    columns: Sequence[Column]
    words: FloatArray
    similarity: FloatArray
    is_known: np.ndarray
    alike: Sequence[Column] = ()


class Sample(NamedTuple):
    """The best pairs and the decoys, in this order.

    Args:
        best: ``[num_best]`` places of the best candidate of each source entity.
        decoys: ``[num_decoys]`` places of the second best candidates.
        has_decoy: ``[num_best]`` whether a source entity has a second candidate.
        is_mutual: ``[num_best]`` whether the source entity is the best one of its target.
        margins: Two arrays ``[num_best + num_decoys]``: the score minus that of the best other
            candidate of the source entity, and of the target entity. Decoys are compared as if
            the best candidate of their source entity did not exist.
    """

    best: IntArray
    decoys: IntArray
    has_decoy: np.ndarray
    is_mutual: np.ndarray
    margins: tuple[FloatArray, FloatArray]


class MarginEvidence(NamedTuple):
    """The ends of the levels of a margin, and its log ratios by level, from 1."""

    ends: FloatArray
    evidence: FloatArray


class Weighted(NamedTuple):
    """What one pass has found.

    Args:
        evidence: ``[num_columns]`` log ratios by level; level 0 has none.
        of_margins: The same for both margins.
        weights: ``[num_columns + 2]`` the weight of each column and of both margins.
        offset: b.
        scores: ``[num_best + num_decoys]`` s.
        predicted: The pseudo log likelihood of the attributes, each predicted from the others.
    """

    evidence: list[FloatArray]
    of_margins: list[MarginEvidence]
    weights: FloatArray
    offset: float
    scores: FloatArray
    predicted: float


class Fit(NamedTuple):
    """What the last pass has found.

    Args:
        sample: The best pairs and the decoys.
        weighed: Log ratios, weights and scores.
        probs: ``[num_best]`` probability that a best pair is not like a decoy.
        ranks: ``[num_pairs]`` by which the best pairs were chosen.
    """

    sample: Sample
    weighed: Weighted
    probs: FloatArray
    ranks: FloatArray


class Judgement(NamedTuple):
    """Probabilities of the best pairs.

    Args:
        places: ``[num_best]`` the best candidate of each source entity that has one.
        probs: ``[num_best]`` the probability that it is right.
        share: The estimated share of the best pairs that are not like decoys.
        is_known: ``[num_best]`` whether it is a link.
        fit: Weights, log ratios and scores.
        lookalikes: How likely the best pairs only look right.
    """

    places: IntArray
    probs: FloatArray
    share: float
    is_known: np.ndarray
    fit: Fit
    lookalikes: Lookalikes


def judge_best(candidates: Candidates) -> Judgement:
    """Return the best candidate of each source entity and the probability that it is right."""
    fit = _fitted(candidates)
    sample = fit.sample
    scores, of_decoys = np.split(fit.weighed.scores, [len(sample.best)])
    is_known = candidates.is_known[sample.best]
    is_decoy = sample.has_decoy & ~is_known
    share = share_of_right(
        scores[~is_known], of_decoys[~is_known[sample.has_decoy]], fit.probs[is_decoy]
    )
    prior = float(np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE))
    pairs = BestPairs(
        best=sample.best,
        decoys=sample.decoys,
        is_known=is_known,
        similar=posterior(scores, prior),
        weights=fit.probs[sample.has_decoy],
    )
    found = find_lookalikes(
        candidates.columns, candidates.similarity, pairs, candidates.alike
    )
    probs = right_probs(scores, prior, found.log_odds())
    # so many decoys cannot show a smaller share of wrong pairs
    probs = np.minimum(probs, 1 - 1 / (1 + len(sample.decoys)))
    probs[is_known] = 1
    return Judgement(
        places=sample.best,
        probs=probs,
        share=share,
        is_known=is_known,
        fit=fit,
        lookalikes=found,
    )


def right_probs(scores: FloatArray, share: float, log_odds: FloatArray) -> FloatArray:
    """Return p = 1 / (1 + exp(-s - log pi / (1 - pi)) + exp(-t))."""
    like_decoys = np.exp(-np.clip(scores + np.log(share / (1 - share)), -500, 500))
    return np.asarray(1 / (1 + like_decoys + np.exp(-log_odds)))


def _fitted(candidates: Candidates) -> Fit:
    """Estimate weights from the start that predicts the attributes better."""
    lenient = fitted_from(candidates, is_strict=False)
    num_attributes = sum(column.is_attribute for column in candidates.columns)
    if num_attributes < LEAST_ATTRIBUTES:
        return lenient
    strict = fitted_from(candidates, is_strict=True)
    gain = strict.weighed.predicted - lenient.weighed.predicted
    return strict if gain > LEAST_GAIN * len(lenient.sample.best) else lenient


def fitted_from(candidates: Candidates, is_strict: bool) -> Fit:
    """Estimate weights and probabilities in turn, from a lenient start or a strict one.

    The lenient start takes all pairs of entities that are each other's best for right. The strict
    one takes only the most similar of them.
    """
    ranks = candidates.similarity
    sample = draw_sample(candidates, ranks)
    probs = _first_probs(candidates, sample, is_strict)
    for _ in range(NUM_PASSES):
        used = ranks
        sample = draw_sample(candidates, used)
        weighed = weigh(candidates, sample, probs)
        share = float(np.clip(probs.mean(), LEAST_SHARE, 1 - LEAST_SHARE))
        probs = posterior(weighed.scores[: len(sample.best)], share)
        probs[candidates.is_known[sample.best]] = 1
        ranks = WORDS_SHARE * candidates.words
        for column, evidence, weight in zip(
            candidates.columns, weighed.evidence, weighed.weights, strict=False
        ):
            ranks = ranks + weight * evidence[column.levels]
    return Fit(sample, weighed, probs, used)


def posterior(scores: FloatArray, share: float) -> FloatArray:
    """Return p = 1 / (1 + exp(-s - log pi / (1 - pi)))."""
    odds = scores + np.log(share / (1 - share))
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -500, 500))))


def share_of_right(
    right: FloatArray,
    decoys: FloatArray,
    weights: FloatArray,
    levels: Sequence[float] = SHARE_LEVELS,
) -> float:
    """Return a cautious estimate of the share of the best pairs that are right.

    If a share h of the decoys has a score of at most t, so has that share of the wrong best pairs.
    So at most (share of the best pairs at or below t) / h of the best pairs are wrong.

    Args:
        right: ``[num_best]`` scores of the best pairs.
        decoys: ``[num_decoys]`` scores of the decoys.
        weights: ``[num_decoys]`` probability that each is a decoy.
        levels: The shares h.
    """
    if not len(right) or weights.sum() <= 0:
        return 0.0
    order = np.argsort(decoys)
    below = np.cumsum(weights[order]) / weights.sum()
    shares = []
    for level in levels:
        place = min(int(np.searchsorted(below, level)), len(order) - 1)
        limit = decoys[order[place]]
        shares.append(1 - float((right <= limit).mean()) / level)
    return max(0.0, min(shares))


def draw_sample(candidates: Candidates, ranks: FloatArray) -> Sample:
    """Return the best pairs and the decoys by a ranking, with their margins."""
    sources, targets = candidates.pairs.T
    chosen = np.where(candidates.is_known, np.inf, ranks)
    of_source = best_three(sources, chosen, ranks)
    of_target = best_three(targets, chosen, ranks)
    best = of_source.best[of_source.best >= 0]
    second = of_source.second[of_source.best >= 0]
    third = of_source.third[of_source.best >= 0]
    has_decoy = second >= 0
    decoys = second[has_decoy]
    by_source = np.concatenate(
        [ranks[best] - _at(ranks, second), ranks[decoys] - _at(ranks, third[has_decoy])]
    )
    both = np.concatenate([best, decoys])
    first, other = (part[targets[both]] for part in (of_target.best, of_target.second))
    rival = np.where(first == both, other, first)
    by_target = ranks[both] - _at(ranks, rival)
    is_mutual = first[: len(best)] == best
    return Sample(best, decoys, has_decoy, is_mutual, (by_source, by_target))


def _at(ranks: FloatArray, places: IntArray) -> FloatArray:
    """Return the scores of candidates, and 0 for those that do not exist."""
    return np.where(places >= 0, ranks[places], 0.0)


def best_three(groups: IntArray, scores: FloatArray, ties: FloatArray) -> Ranking:
    """Return the best three candidates of each group by score; ties are broken by another one."""
    num_groups = int(groups.max(initial=-1)) + 1
    order = np.lexsort((-ties, -scores, groups))
    ordered = groups[order]
    places = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    found = []
    for place in range(3):
        of_group = np.full(num_groups, -1)
        of_group[ordered[places == place]] = order[places == place]
        found.append(of_group)
    return Ranking(*found)


def _first_probs(candidates: Candidates, sample: Sample, is_strict: bool) -> FloatArray:
    """Return the probabilities of the best pairs before the first pass."""
    right, wrong = STRICT if is_strict else LENIENT
    is_right = sample.is_mutual
    if is_strict and is_right.any():
        similarity = candidates.similarity[sample.best]
        is_right = is_right & (
            similarity >= np.quantile(similarity[is_right], STRICT_QUANTILE)
        )
    probs = np.where(is_right, right, wrong)
    probs[candidates.is_known[sample.best]] = 1
    return probs


def weigh(candidates: Candidates, sample: Sample, probs: FloatArray) -> Weighted:
    """Estimate log ratios and weights from the probabilities of the best pairs.

    Args:
        candidates: The pairs.
        sample: The best pairs and the decoys.
        probs: ``[num_best]`` the current probability of each best pair.
    """
    right = sharpened(probs)
    wrong = np.concatenate([1 - right, right[sample.has_decoy]])
    return weigh_counted(candidates.columns, sample, right, wrong, float(probs.mean()))


def weigh_counted(
    columns: Sequence[Column],
    sample: Sample,
    right: FloatArray,
    wrong: FloatArray,
    share: float,
) -> Weighted:
    """Estimate log ratios and weights from how much pairs count as right and as wrong.

    Args:
        columns: The agreement of the candidates.
        sample: The best pairs and the decoys.
        right: ``[num_best]`` how much each best pair counts as right.
        wrong: ``[num_best + num_decoys]`` how much each pair counts as wrong.
        share: The share of the best pairs that are right.
    """
    both = np.concatenate([sample.best, sample.decoys])
    num_best = len(sample.best)
    features = []
    evidence = []
    predictions = []
    for column in columns:
        levels = column.levels[both]
        shares = level_shares(levels, column.num_levels, right, wrong)
        evidence.append(log_ratio(*shares, levels, MOST_EVIDENCE))
        features.append(evidence[-1][levels])
        if column.is_attribute:
            predictions.append((len(features) - 1, levels, shares))
    of_margins = []
    for margin in sample.margins:
        ends = margin_ends(margin)
        levels = np.digitize(margin, ends) + 1
        shares = level_shares(levels, len(ends) + 1, right, wrong)
        found = log_ratio(*shares, levels, MOST_OF_MARGIN)
        of_margins.append(MarginEvidence(ends, found))
        features.append(found[levels])
    table = np.stack(features, axis=1)
    weights, offset = fit_weights(table, right, wrong)
    share = float(np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE))
    # each attribute is predicted from the other attributes
    own = [place for place, _, _ in predictions]
    total = table[:num_best, own] @ weights[own] + offset
    predicted = 0.0
    for place, levels, shares in predictions:
        others = posterior(total - weights[place] * table[:num_best, place], share)
        predicted += predicted_log_likelihood(levels, others, *shares)
    scores = table @ weights + offset
    return Weighted(evidence, of_margins, weights, offset, scores, predicted)


def sharpened(probs: FloatArray) -> FloatArray:
    """Return probabilities whose odds are raised to a power."""
    right = probs**SHARPNESS
    wrong = (1 - probs) ** SHARPNESS
    return np.asarray(right / (right + wrong))


def level_shares(
    levels: IntArray, num_levels: int, right: FloatArray, wrong: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return m_k and u_k: the share of each level, from 1, among right pairs and wrong ones.

    Args:
        levels: ``[num_best + num_decoys]`` level of each pair, 0 if it is missing.
        num_levels: The number of levels.
        right: ``[num_best]`` how much each best pair counts as right.
        wrong: ``[num_best + num_decoys]`` how much each pair counts as wrong.
    """
    of_best = levels[: len(right)]
    return (
        shares_by_level(of_best, num_levels, right),
        shares_by_level(levels, num_levels, wrong),
    )


def fit_weights(
    features: FloatArray, right: FloatArray, wrong: FloatArray
) -> tuple[FloatArray, float]:
    """Return the weights w_k and b: a logistic regression of right pairs against wrong ones.

    Both classes have the same total weight, so that b does not depend on their numbers. The weights
    are at least ``LEAST_WEIGHT``, and a prior draws them to ``USUAL_WEIGHT``.

    Args:
        features: ``[num_best + num_decoys, num_columns]`` log ratios.
        right: ``[num_best]`` how much each best pair counts as right.
        wrong: ``[num_best + num_decoys]`` how much each pair counts as wrong.
    """
    # a best pair is an example of both classes, weighted by how much it counts as each
    num_examples, num_columns = features.shape
    as_right = np.zeros(num_examples)
    as_right[: len(right)] = right / max(right.sum(), 1e-9) / 2
    as_wrong = wrong / max(wrong.sum(), 1e-9) / 2
    # b has neither a prior nor a bound
    table = np.concatenate([features.T, np.ones((1, num_examples))])
    prior = Prior(
        mean=np.append(np.full(num_columns, USUAL_WEIGHT), 0.0),
        strength=np.append(np.full(num_columns, RIDGE), 0.0),
        least=np.append(np.full(num_columns, LEAST_WEIGHT), -np.inf),
    )
    found = bounded_logistic(Examples(table, as_right, as_wrong), prior)
    return found[:num_columns], float(found[num_columns])


def predicted_log_likelihood(
    levels: IntArray, probs: FloatArray, right: FloatArray, wrong: FloatArray
) -> float:
    """Return log p m_k + (1 - p) u_k of the best pairs plus log u_k of the decoys.

    Args:
        levels: ``[num_best + num_decoys]`` levels of one attribute, 0 if it is missing.
        probs: ``[num_best]`` p, without this attribute.
        right: ``[num_levels]`` m_k.
        wrong: ``[num_levels]`` u_k.
    """
    # a missing value is certain
    right = np.append(1.0, right)
    wrong = np.append(1.0, wrong)
    best, decoys = np.split(levels, [len(probs)])
    mixed = probs * right[best] + (1 - probs) * wrong[best]
    return float(np.log(mixed).sum() + np.log(wrong[decoys]).sum())


def margin_ends(margins: FloatArray) -> FloatArray:
    """Return the ends of levels with about as many margins in each."""
    return np.unique(np.quantile(margins, np.arange(1, MARGIN_STEPS) / MARGIN_STEPS))


def competing(targets: IntArray, probs: FloatArray) -> FloatArray:
    """Return the probabilities, lowered where a target has a better pair.

    The better pair must be wrong for another one to be right.
    """
    order = np.lexsort((-probs, targets))
    ordered = targets[order]
    first = np.searchsorted(ordered, ordered)
    is_best = first == np.arange(len(order))
    lowered = probs.copy()
    lowered[order] = probs[order] * np.where(is_best, 1.0, 1 - probs[order[first]])
    return lowered
