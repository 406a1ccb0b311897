"""Lookalikes, a third kind of pairs: they look right, but they are different entities.

A best pair is the most similar of many candidates. So it can be wrong although its texts are much
more similar than those of decoys: two films have the same title, two products the same name. Such
pairs are *lookalikes*. Decoys do not show how many there are, but attributes do that are
*independent* of the words that selected the pair (``independent_columns``), such as the year: in
lookalikes they agree as rarely as in decoys. With a share eta of lookalikes among the best pairs
that are not decoys,

- t = log (1 - eta) / eta + sum_k L'_k(x_k), where L'_k = log m'_k / u_k, m'_k is the share of level
  x among right pairs, u_k that among decoys, and k are the independent attributes (``log_odds``),
- h = 1 / (1 + exp(t)) is the probability of a lookalike, and 1 - h that of a right pair.

m'_k, eta and h are estimated in turn, with a prior. Where nothing can be compared, an equal name is
still not a proof: an entity without a counterpart has a lookalike with a probability of about
lambda. If a share pi' of the source entities has a counterpart, eta is there
lambda (1 - pi') / (lambda (1 - pi') + pi') (``expected_share``).

If no best pair is right, no attribute but the one that selected the pairs agrees more often in them
than in decoys. Then attributes with equal names (``near_keys``) show it: right pairs agree in them
with a prior of 90%. Each of them contradicts the pairs by at most log 1 / ``ARE_FOREIGN``, because
both sources can number their entities in their own way (``contradiction``). If this outweighs the
other evidence and the prior ``NONE_RIGHT``, eta is estimated from a second start, at which almost
all pairs are lookalikes. Three such attributes are needed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from emea.data.arrays import FloatArray, IntArray
from emea.data.sorting import average_ranks
from emea.literals.agreement import TEXT_STEPS, Column
from emea.literals.level_ratios import MOST_EVIDENCE, log_ratio, shares_by_level

RATE, PRIOR_COUNT = 0.11, 50.0
"""lambda, which is also the prior mean of eta where attributes are compared, and the number of
pairs that this prior counts for."""

MOST_EXPECTED = 0.45
"""Largest eta elsewhere: a pair that nothing contradicts remains more likely right than not."""

MOST_CORRELATED = 0.3
"""Largest rank correlation of an independent attribute with the similarity, among decoys."""

MANY_LOOKALIKES = 0.95
"""eta of the second start."""

KEY_AGREES, KEY_COUNT = 0.9, 20.0
"""Share of the right pairs in which near-keys agree, and how many pairs this prior counts for."""

ARE_FOREIGN, NONE_RIGHT = 0.1, 0.005
"""Prior probabilities: an attribute does not correspond to the one of its name, and no pair is
right."""

MOST_BY_CHANCE = 0.3
"""Largest share of the decoys in which near-keys agree."""

FEWEST_COMPARED = 10
"""Decoys that must have both values of an attribute."""

NUM_PASSES = 50
"""How often eta, m' and h are estimated in turn."""


class BestPairs(NamedTuple):
    """The best pairs and the decoys.

    Args:
        best: ``[num_best]`` places of the best pairs.
        decoys: ``[num_decoys]`` places of the decoys.
        is_known: ``[num_best]`` whether a best pair is a link.
        similar: ``[num_best]`` probability that a best pair is not like a decoy.
        weights: ``[num_decoys]`` probability that each decoy is one.
    """

    best: IntArray
    decoys: IntArray
    is_known: np.ndarray
    similar: FloatArray
    weights: FloatArray


class Lookalikes(NamedTuple):
    """How likely pairs are lookalikes.

    Args:
        evidence: ``[num_best]`` sum_k L'_k.
        is_compared: ``[num_best]`` whether independent attributes can be compared.
        share: eta where independent attributes can be compared.
        expected: eta elsewhere.
        compared: Names of the independent attributes.
    """

    evidence: FloatArray
    is_compared: np.ndarray
    share: float
    expected: float
    compared: list[str]

    def log_odds(self) -> FloatArray:
        """Return ``[num_best]`` t: the log odds of a right pair against a lookalike."""
        share = np.where(self.is_compared, self.share, self.expected)
        return log_odds(self.evidence, share)


def find_lookalikes(
    columns: Sequence[Column],
    similarity: FloatArray,
    pairs: BestPairs,
    alike: Sequence[Column] = (),
) -> Lookalikes:
    """Estimate how likely the best pairs are lookalikes.

    Args:
        columns: The agreement of the candidates.
        similarity: ``[num_pairs]`` by which candidates are selected.
        pairs: The best pairs and the decoys.
        alike: Agreement in attributes with equal names that agree in best pairs no more often.
    """
    used = independent_columns(columns, similarity, pairs.decoys)
    keys = near_keys(alike, pairs)
    if not keys:
        return estimated_from(RATE, used, pairs)[0]
    # the text that agrees most in best pairs has selected them, even if decoys do not show it
    texts = [column for column in columns if column.num_levels == TEXT_STEPS + 1]
    selecting = {column.name for column in texts[:1]}
    used = [column for column in used if column.name not in selecting]
    found, log_likelihood = estimated_from(RATE, used, pairs)
    if contradiction(keys, pairs) + np.log(NONE_RIGHT) > log_likelihood:
        return estimated_from(MANY_LOOKALIKES, [*used, *keys], pairs)[0]
    return found


def near_keys(alike: Sequence[Column], pairs: BestPairs) -> list[Column]:
    """Return the attributes that seldom agree in decoys."""
    found = []
    for column in alike:
        num_known = [
            (column.levels[one] > 0).sum() for one in (pairs.best, pairs.decoys)
        ]
        num, num_agreeing = _counts(column, pairs.decoys, pairs.weights)
        if min(num_known) >= FEWEST_COMPARED and num_agreeing <= MOST_BY_CHANCE * num:
            found.append(column)
    return found


def contradiction(keys: Sequence[Column], pairs: BestPairs) -> float:
    """Return by how much near-keys contradict that best pairs are right, as log odds.

    The number of best pairs that agree has a beta-binomial distribution if they are right, and a
    binomial one, with at most the share of the decoys, if they are not.
    """
    total = 0.0
    for column in keys:
        num, num_agreeing = _counts(column, pairs.best, pairs.similar)
        of_decoys, agreeing_decoys = _counts(column, pairs.decoys, pairs.weights)
        shares = [
            (agreeing_decoys + 1) / (of_decoys + 2),
            (num_agreeing + 1) / (num + 2),
        ]
        by_chance = min(shares)
        prior = KEY_COUNT * KEY_AGREES, KEY_COUNT * (1 - KEY_AGREES)
        of_right = betaln(prior[0] + num_agreeing, prior[1] + num - num_agreeing)
        of_wrong = num_agreeing * np.log(by_chance)
        of_wrong += (num - num_agreeing) * np.log(1 - by_chance)
        odds = float(of_wrong - of_right + betaln(*prior))
        total += min(max(odds, 0.0), -np.log(ARE_FOREIGN))
    return total


def _counts(
    column: Column, places: IntArray, weights: FloatArray
) -> tuple[float, float]:
    """Return how many pairs have both values of a near-key, and how many agree, by weight."""
    levels = column.levels[places]
    agree = levels > column.num_levels - column.num_agreeing
    return float(weights @ (levels > 0)), float(weights @ agree)


def estimated_from(
    start: float, used: Sequence[Column], pairs: BestPairs
) -> tuple[Lookalikes, float]:
    """Estimate m', eta and h in turn, and return them with the log likelihood.

    Args:
        start: The first eta where attributes are compared.
        used: The attributes.
        pairs: The best pairs and the decoys.
    """
    is_compared = np.zeros(len(pairs.best), dtype=bool)
    for column in used:
        is_compared |= column.levels[pairs.best] > 0
    is_free = ~pairs.is_known
    counted = pairs.similar * (is_compared & is_free)
    prior = RATE
    share = start
    wrong = np.where(is_free, share, 0.0)
    for _ in range(NUM_PASSES):
        evidence = _evidence(used, pairs, pairs.similar * (1 - wrong))
        odds = log_odds(evidence, np.where(is_compared, share, prior))
        wrong = np.where(is_free, 1 / (1 + np.exp(odds)), 0.0)
        num_right = (pairs.similar * (1 - wrong))[is_free].sum()
        prior = expected_share(float(num_right / max(1, is_free.sum())))
        total = RATE * PRIOR_COUNT + (wrong * counted).sum()
        share = float(total / (PRIOR_COUNT + counted.sum()))
    found = Lookalikes(
        evidence=evidence,
        is_compared=is_compared,
        share=share,
        expected=prior,
        compared=[column.name for column in used],
    )
    mixed = np.logaddexp(np.log(1 - share) + evidence, np.log(share))
    return found, float(counted @ mixed)


def expected_share(share_of_right: float, rate: float = RATE) -> float:
    """Return eta without attributes to compare, if a share pi' of entities has a counterpart."""
    lookalikes = rate * (1 - share_of_right)
    expected = lookalikes / max(lookalikes + share_of_right, 1e-9)
    return float(min(expected, MOST_EXPECTED))


def log_odds(evidence: FloatArray, share: float | FloatArray) -> FloatArray:
    """Return t = log (1 - eta) / eta + sum_k L'_k, within bounds."""
    share = np.clip(share, 1e-9, 1 - 1e-9)
    return np.asarray(np.clip(np.log((1 - share) / share) + evidence, -500, 500))


def independent_columns(
    columns: Sequence[Column], similarity: FloatArray, decoys: IntArray
) -> list[Column]:
    """Return the attributes that agree in decoys no more often if their words are similar."""
    found = []
    for column in columns:
        levels = column.levels[decoys]
        have_both = levels > 0
        if not column.is_attribute or have_both.sum() < FEWEST_COMPARED:
            continue
        common = rank_correlation(levels[have_both], similarity[decoys][have_both])
        # few decoys show a correlation with an error of about 1 / sqrt(n)
        if common - have_both.sum() ** -0.5 < MOST_CORRELATED:
            found.append(column)
    return found


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return the correlation of the ranks; 0 if all values of one are equal."""
    ranks = average_ranks(first), average_ranks(second)
    if not all(np.ptp(one) for one in ranks):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _evidence(
    columns: Sequence[Column], pairs: BestPairs, right: FloatArray
) -> FloatArray:
    """Return sum_k L'_k of the best pairs, if each counts as right as given."""
    total = np.zeros(len(pairs.best))
    for column in columns:
        levels = column.levels[pairs.best]
        of_decoys = column.levels[pairs.decoys]
        added = _expected_counts(column)
        ratio = log_ratio(
            shares_by_level(levels, column.num_levels, right, added),
            shares_by_level(of_decoys, column.num_levels, pairs.weights),
            np.concatenate([levels, of_decoys]),
            MOST_EVIDENCE,
        )
        total += ratio[levels]
    return total


def _expected_counts(column: Column) -> FloatArray | None:
    """Return the pseudo-counts of a near-key by level; ``None`` for other attributes."""
    num = column.num_agreeing
    if not num:
        return None
    shares = np.full(column.num_levels, (1 - KEY_AGREES) / (column.num_levels - num))
    shares[-num:] = KEY_AGREES / num
    return KEY_COUNT * shares
