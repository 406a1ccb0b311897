"""The share of entities that have a counterpart, and examples of entities that have none.

Every link is an example of an entity with a counterpart. Without the link's pair among its
candidates, the same entity is an example of one without: the counterpart is *masked*.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import Tensor

from emea.data.arrays import FloatArray, IntArray
from emea.em.m_step import Choices, stacked_examples

LEAST_SHARE = 0.02
"""Smallest estimate of the share; a smaller one would make links negligible in a fit."""

FIRST_SHARE = 0.5
"""Share with which weights are fitted before there is an estimate."""

LEAST_GAP = 1e-3
"""Smallest number that an estimate divides by."""

NUM_SAMPLES, INTERVAL = 500, 0.95
"""Bootstrap samples of a variance, and the probability of an interval."""

NEAR_MEAN = 0.1
"""Standard deviation of the prior around the mean probability, for the estimate itself. A wider one
follows few links too far: the calibration error on EN_FR with 40% deleted rises from .04 to .07."""

MEAN_DEVIATION = 0.35
"""The same for the interval. With few links, this mean was 0.2 to 0.6 too low on EN_FR, because
pseudo-labels confirm it."""

LINKS_DIFFER = 0.04
"""Standard deviation of an adjusted count even with many links, which other entities are not quite
like."""

MOST_DEVIATIONS = 30.0
"""Further beyond a limit, a normal distribution has no precision."""

MOST_COUNT = 1.5
"""Largest absolute value of an adjusted count."""


class Share(NamedTuple):
    """An estimate with its interval."""

    value: float
    low: float
    high: float


class Estimate(NamedTuple):
    """The mean and the standard deviation of an estimated share."""

    mean: float
    deviation: float


class WeightedChoices(NamedTuple):
    """Examples as in `Choices`, and how much each of them counts in a fit."""

    values: Tensor
    offsets: Tensor
    slots: Tensor
    counts: Tensor


def masked_copies(given: Choices) -> Choices:
    """Return examples without their correct pair; the right answer is to match none."""
    none = torch.full_like(given.slots, given.values.shape[1] - 1)
    # minus infinity in the slot of the correct pair takes it out of the softmax
    rows = (given.slots != none).nonzero().squeeze(1)
    offsets = given.offsets.clone()
    offsets[rows, given.slots[rows]] = -torch.inf
    return Choices(given.values, offsets, none)


def weighted_examples(
    examples: Sequence[Choices], shares: Sequence[Share] | None
) -> WeightedChoices:
    """Return examples and their masked copies, with their counts.

    A copy has the weight ``(1 - share) / share``, so that the links have the share ``value`` of the
    total weight of their side. A link whose pair is not a candidate is an example of no match, too,
    because other entities with a counterpart lack it among their candidates just as often.
    """
    # first the links of both sides, each with the count 1, then their masked copies
    parts = list(examples)
    counts = [torch.ones(len(one.slots)) for one in examples]
    for side, one in enumerate(examples):
        share = FIRST_SHARE if shares is None else max(shares[side].value, LEAST_SHARE)
        if share < 1:
            parts.append(masked_copies(one))
            counts.append(torch.full((len(one.slots),), (1 - share) / share))
    stacked = stacked_examples(parts)
    return WeightedChoices(*stacked, torch.cat(counts))


def estimated_shares(
    matched: Sequence[Tensor],
    unlabelled: Sequence[Tensor],
    examples: Sequence[Choices],
    weights: Tensor,
) -> tuple[Share, ...]:
    """Return the estimated share of entities with a counterpart on each side.

    Args:
        matched: Probability of each entity of a side to have a match.
        unlabelled: The unlabelled entities of each side.
        examples: The links of each side.
        weights: Weights of the features.
    """
    counts = []
    sizes = []
    for side, given in enumerate(examples):
        of_unlabelled = matched[side][unlabelled[side]]
        linked = matched_probs(given, weights)
        masked = matched_probs(masked_copies(given), weights)
        counts.append(adjusted_count(of_unlabelled, linked, masked))
        sizes.append(max(1, len(of_unlabelled)))
    number = common_number([near_mean(one) for one in counts], sizes).mean
    most = min(sizes)
    number = min(max(number, LEAST_SHARE * most), most)
    intervals = pooled([admitting_errors(one) for one in counts], sizes)
    return tuple(
        Share(min(max(number / num, low), high), low, high)
        for num, (_, low, high) in zip(sizes, intervals, strict=True)
    )


def common_number(estimates: Sequence[Estimate], sizes: Sequence[int]) -> Estimate:
    """Return the number of matches, which is equal on both sides, from the shares of the sides."""
    numbers, deviations = np.array(estimates).T * np.array(sizes)
    weights = deviations**-2 / (deviations**-2).sum()
    # with fully correlated errors, deviations add up like the numbers
    return Estimate(float(weights @ numbers), float(weights @ deviations))


def pooled(estimates: Sequence[Estimate], sizes: Sequence[int]) -> tuple[Share, ...]:
    """Return the shares that follow from a common number of matches.

    A match has one entity of each side. Both sides therefore have equally many entities with a
    counterpart, at most as many as the smaller side has entities. The estimates of this number are
    averaged by the inverse of their variances. Their errors are taken as fully correlated, because
    both sides have the same links. The number has a normal distribution, truncated to what is
    possible: its mean is the estimate, which is therefore below the limit, and its most probable
    range is the interval.

    Args:
        estimates: The estimated share of each side.
        sizes: The number of unlabelled entities of each side.
    """
    number, deviation = common_number(estimates, sizes)
    most = min(sizes)
    least = LEAST_SHARE * most
    value, low, high = truncated(number, max(deviation, LEAST_GAP), least, most)
    return tuple(Share(value / num, low / num, high / num) for num in sizes)


def truncated(
    mean: float, deviation: float, least: float, most: float
) -> tuple[float, float, float]:
    """Return the mean of a truncated normal distribution, and the ends of its most probable range.

    Args:
        mean: The mean of the distribution before it is truncated.
        deviation: Its standard deviation.
        least: The smallest possible value.
        most: The largest one.
    """
    if mean < least:  # the upper tail has no precision, so it is mirrored
        value, low, high = truncated(-mean, deviation, -most, -least)
        return -value, -high, -low
    start = (least - mean) / deviation
    end = max((most - mean) / deviation, -MOST_DEVIATIONS)
    start = min(start, end - LEAST_GAP)
    below, above = ndtr(start), ndtr(end)
    total = above - below
    density = np.exp(-(start**2) / 2) - np.exp(-(end**2) / 2)
    value = mean + deviation * float(density) / (2 * np.pi) ** 0.5 / total
    # the range around the mean, unless it leaves an end
    half = float(ndtri((1 + INTERVAL * total) / 2))
    low, high = -half, half
    if half > end:
        low, high = float(ndtri(above - INTERVAL * total)), end
    elif -half < start:
        low, high = start, float(ndtri(below + INTERVAL * total))
    ends = (mean + deviation * one for one in (low, high))
    value, low, high = (min(max(float(one), least), most) for one in (value, *ends))
    return value, low, high


def matched_probs(given: Choices, weights: Tensor) -> Tensor:
    """Return the probability that each example matches any candidate, ``[num_examples]``."""
    logits = given.values.double() @ weights.double() + given.offsets.double()
    return 1 - torch.softmax(logits, dim=1)[:, -1]


class AdjustedCount(NamedTuple):
    """The mean probability of unlabelled entities, and the adjusted count with its variance."""

    mean: float
    counted: float
    variance: float


def adjusted_count(unlabelled: Tensor, linked: Tensor, masked: Tensor) -> AdjustedCount:
    """Count the entities with a counterpart from their probabilities of a match.

    The adjusted count (Forman, 2008) only assumes that links are drawn like other entities with a
    counterpart, and masked links like those without::

        mean(unlabelled) = share * mean(linked) + (1 - share) * mean(masked)

    With few links, its variance is large.
    """
    both = torch.stack([linked, masked]).double().cpu().numpy()
    # the mean probability of unlabelled entities, and the standard error of this mean
    of_all = unlabelled.double()
    num = len(of_all)
    mean, deviation = 1.0, 0.0
    if num:  # both numbers at once: reading them waits for a GPU
        moments = torch.stack([of_all.mean(), of_all.std(correction=0)])
        mean, deviation = moments.tolist()
    # the variance of the adjusted count: links are drawn with replacement, a link together with
    # its masked copy, and the mean of the many unlabelled entities from a normal distribution
    draws, normal = _samples(both.shape[1])
    means = mean + deviation / max(1, num) ** 0.5 * normal
    counts = _adjusted(means, *both.take(draws, axis=1).mean(2))
    count = float(_adjusted(np.array(mean), *both.mean(1)))
    # if all links are matched, a bootstrap sees no variance; that of a share's posterior is left
    variance = float(counts.var()) + (len(linked) + 2) ** -2
    return AdjustedCount(mean, count, variance)


def near_mean(found: AdjustedCount) -> Estimate:
    """Estimate the share with a counterpart, near the mean probability unless links contradict.

    The mean has little variance, but depends on the weights and thus on earlier estimates. The
    estimate combines both: a normal prior around the mean, and the adjusted count as an
    observation with the variance of a bootstrap over links and entities.
    """
    # a count below 0 is at least so far from the truth: links and other entities differ in more
    # than their pairs, for example because entities without a counterpart have fewer triples
    variance = found.variance + min(found.counted, 0.0) ** 2
    return _posterior(found, variance, NEAR_MEAN)


def admitting_errors(found: AdjustedCount) -> Estimate:
    """Estimate the share for an interval, which admits that mean and links may be wrong."""
    variance = found.variance + LINKS_DIFFER**2
    if found.counted < 0:
        variance += (found.mean - found.counted) ** 2
    return _posterior(found, variance, MEAN_DEVIATION)


def _posterior(found: AdjustedCount, variance: float, deviation: float) -> Estimate:
    """Return the posterior of a normal prior around the mean, with the count as an observation."""
    precision = 1 / variance
    total = precision + deviation**-2
    weighted = precision * max(found.counted, 0.0) + deviation**-2 * found.mean
    return Estimate(weighted / total, total**-0.5)


@functools.lru_cache(maxsize=4)
def _samples(num_links: int) -> tuple[IntArray, FloatArray]:
    """Return the links that each bootstrap sample draws, and a normal number per sample."""
    rng = np.random.default_rng(0)
    draws = rng.integers(0, num_links, (NUM_SAMPLES, num_links))
    return draws, rng.standard_normal(NUM_SAMPLES)


def _adjusted(means: FloatArray, linked: FloatArray, masked: FloatArray) -> FloatArray:
    """Return the adjusted count, kept beyond 0 and 1 so that its variance is not too small."""
    found: FloatArray = (means - masked) / np.maximum(linked - masked, LEAST_GAP)
    return np.clip(found, -MOST_COUNT, MOST_COUNT)
