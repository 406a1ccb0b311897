"""The share of entities that have a counterpart, and examples of entities that have none.

Every link is an example of an entity with a counterpart. Without the link's pair among its
candidates, the same entity is an example of one without: the counterpart is *masked*.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.em.m_step import stacked_examples

Given = tuple[Tensor, Tensor, Tensor]
"""Features, offsets and correct slots of some examples; the last slot means no match."""

LEAST_SHARE = 0.02
"""Smallest estimate of the share; a smaller one would make links negligible in a fit."""

FIRST_SHARE = 0.5
"""Share with which weights are fitted before there is an estimate."""

LEAST_GAP = 1e-3
"""Smallest number that an estimate divides by."""

NUM_SAMPLES, LEVEL = 500, 0.95
"""Bootstrap samples of an interval, and its level."""


class Share(NamedTuple):
    """An estimate with its interval, and the share whose counterpart is among the candidates."""

    value: float
    low: float
    high: float
    found: float


def masked_copies(given: Given) -> Given:
    """Return examples without their correct pair; the right answer is to match none."""
    values, offsets, slots = given
    none = torch.full_like(slots, values.shape[1] - 1)
    rows = (slots != none).nonzero().squeeze(1)
    offsets = offsets.clone()
    offsets[rows, slots[rows]] = -torch.inf
    return values, offsets, none


def weighted_examples(
    examples: Sequence[Given], shares: Sequence[Share] | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features, offsets, correct slots and counts of examples and of their masked copies.

    The copies count so often that links are the share ``found`` of all examples of their side.
    """
    parts, counts = list(examples), [torch.ones(len(one[2])) for one in examples]
    for side, one in enumerate(examples):
        share = FIRST_SHARE if shares is None else shares[side].found
        if share < 1:
            parts.append(masked_copies(one))
            counts.append(torch.full((len(one[2]),), (1 - share) / share))
    return *stacked_examples(parts), torch.cat(counts)


def estimated_shares(
    matched: Sequence[Tensor],
    unlabelled: Sequence[Tensor],
    examples: Sequence[Given],
    weights: Tensor,
) -> tuple[Share, ...]:
    """Return the estimated share of entities with a counterpart on each side."""
    return tuple(
        estimated_share(
            matched[side][unlabelled[side]],
            matched_probs(given, weights),
            matched_probs(masked_copies(given), weights),
            float((given[2] < given[0].shape[1] - 1).double().mean()),
        )
        for side, given in enumerate(examples)
    )


def matched_probs(given: Given, weights: Tensor) -> Tensor:
    """Return the probability that each example matches any candidate, ``[num_examples]``."""
    values, offsets, _ = given
    logits = values.double() @ weights.double() + offsets.double()
    return 1 - torch.softmax(logits, dim=1)[:, -1]


def estimated_share(unlabelled: Tensor, linked: Tensor, masked: Tensor, recall: float) -> Share:
    """Estimate the share of entities with a counterpart from their probabilities of a match.

    The mean probability estimates the share of the entities whose counterpart is a candidate. The
    recall of the candidates completes it. The mean is precise, but it follows the weights, which
    follow earlier estimates. It is therefore bounded by the interval of an estimate that only
    assumes that links are drawn like other entities with a counterpart (adjusted count; Forman,
    2008)::

        mean(unlabelled) = share * mean(linked) + (1 - share) * mean(masked)

    The interval is that of a bootstrap over links and entities.
    """
    rng = np.random.default_rng(0)
    both = torch.stack([linked, masked]).double().cpu().numpy()
    of_all = unlabelled.double()
    mean, num = float(of_all.mean()), max(1, len(of_all))
    deviation = float(of_all.std(correction=0)) / num**0.5
    draws = rng.integers(0, both.shape[1], (NUM_SAMPLES, both.shape[1]))
    means = mean + deviation * rng.standard_normal(NUM_SAMPLES)
    linked_means, masked_means = both[:, draws].mean(2)
    gaps = np.maximum(linked_means - masked_means, LEAST_GAP)
    samples = np.clip((means - masked_means) / gaps, LEAST_SHARE, 1.0)
    tail = (1 - LEVEL) / 2
    low, high = (float(bound) for bound in np.quantile(samples, [tail, 1 - tail]))
    found = min(max(mean, low), high)
    value = min(max(mean / max(recall, LEAST_GAP), low), high)
    return Share(value, low, high, found)
