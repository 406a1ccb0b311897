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
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.literals.agreement import Column
from emea.literals.level_ratios import MOST_EVIDENCE, log_ratio, shares_by_level

RATE, PRIOR_COUNT = 0.11, 50.0
"""lambda, which is also the prior mean of eta where attributes are compared, and the number of
pairs that this prior counts for."""

MOST_EXPECTED = 0.45
"""Largest eta elsewhere: a pair that nothing contradicts remains more likely right than not."""

MOST_CORRELATED = 0.3
"""Largest rank correlation of an independent attribute with the similarity, among decoys."""

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
    columns: Sequence[Column], similarity: FloatArray, pairs: BestPairs
) -> Lookalikes:
    """Estimate how likely the best pairs are lookalikes.

    Args:
        columns: The agreement of the candidates.
        similarity: ``[num_pairs]`` by which candidates are selected.
        pairs: The best pairs and the decoys.
    """
    used = independent_columns(columns, similarity, pairs.decoys)
    is_compared = np.zeros(len(pairs.best), dtype=bool)
    for column in used:
        is_compared |= column.levels[pairs.best] > 0
    is_free = ~pairs.is_known
    counted = pairs.similar * (is_compared & is_free)
    prior = share = RATE
    wrong = np.where(is_free, share, 0.0)
    for _ in range(NUM_PASSES):
        evidence = _evidence(used, pairs, pairs.similar * (1 - wrong))
        odds = log_odds(evidence, np.where(is_compared, share, prior))
        wrong = np.where(is_free, 1 / (1 + np.exp(odds)), 0.0)
        num_right = (pairs.similar * (1 - wrong))[is_free].sum()
        prior = expected_share(float(num_right / max(1, is_free.sum())))
        total = RATE * PRIOR_COUNT + (wrong * counted).sum()
        share = float(total / (PRIOR_COUNT + counted.sum()))
    return Lookalikes(
        evidence=evidence,
        is_compared=is_compared,
        share=share,
        expected=prior,
        compared=[column.name for column in used],
    )


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
    from scipy.stats import rankdata  # imported late: its import takes long

    ranks = rankdata(first), rankdata(second)
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
        ratio = log_ratio(
            shares_by_level(levels, column.num_levels, right),
            shares_by_level(of_decoys, column.num_levels, pairs.weights),
            np.concatenate([levels, of_decoys]),
            MOST_EVIDENCE,
        )
        total += ratio[levels]
    return total
