"""The M-step: rule weights by penalised maximum likelihood (Eq. 13)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import FloatArray
from emea.kernels.flat_groups import places_in_groups
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairTable, widened
from emea.runtime.threads import one_thread

FEW_EXAMPLES = 100
"""With fewer examples, the prior has the same weight relative to them as with this many."""

MAX_STEPS = 50
"""Largest number of Newton steps."""

AT_ZERO = 1e-6
"""Weights up to this distance from their bound are at the bound if the objective falls there."""


@one_thread()  # the products are too small for several threads
def fit_weights(
    values: Tensor,
    slots: Tensor,
    ridge: float,
    *,
    prior: float | Tensor = 1.0,
    least: float | Tensor = 0.0,
    offsets: Tensor | None = None,
    counts: Tensor | None = None,
) -> Tensor:
    """Return the weights that make the given candidates most probable under Eq. 7.

    The objective is the mean of ``log p(y_e = slot | y_-e)`` minus ``ridge / 2 * |phi - prior|^2``.
    It is concave, and Newton's method finds its maximum. With fewer than ``FEW_EXAMPLES`` examples,
    the prior has more weight. The weight of a rule is not negative: a rule can be useless, but a
    low value is never evidence for a candidate. Features that are not rules may have another lower
    bound, or none.

    Args:
        values: ``[num_examples, k, num_rules]`` indicator values.
        slots: ``[num_examples]`` the right candidate of each example.
        ridge: Strength of the prior. It keeps the weight of a rule that is always right finite.
        prior: Weights without any example, if the bounds allow them: one number for all weights, or
            one number per weight.
        least: Lower bound of the weights: one number for all weights, or one number per weight.
        offsets: ``[num_examples, k]`` added to the candidates' logits; minus infinity for empty
            slots.
        counts: ``[num_examples]`` how often each example counts; ``None`` means once.

    Returns:
        ``[num_rules]`` weights on the CPU.
    """
    zeros = torch.zeros(values.shape[2], dtype=torch.float64)
    bound = (zeros + least).numpy()
    # adding zeros makes a vector of a single number
    expected = (zeros + prior).numpy()
    # the start is the prior
    weights = np.maximum(expected, bound)
    if not len(values):
        return torch.from_numpy(weights)
    likelihood = _likelihood(values, slots, offsets, counts)
    ridge *= max(1.0, FEW_EXAMPLES / len(values))
    return torch.from_numpy(
        _minimised(_Objective(likelihood, ridge, expected), weights, bound)
    )


def _minimised(
    objective: "_Objective", weights: FloatArray, bound: FloatArray
) -> FloatArray:
    """Return the weights that minimise the objective, by Newton's method.

    The few weights are arrays of NumPy: an operation of torch takes several times as long to start.

    Args:
        objective: The negative penalised likelihood.
        weights: The first weights.
        bound: Lower bound of each weight.
    """
    # derivatives of likelihood and prior, a step that respects the bounds, and halved steps until
    # the objective falls. It ends when no weight moves any more
    probs, loss = objective.loss(weights)
    for _ in range(MAX_STEPS):
        slope, curvature = objective.derivatives(weights, probs)
        step = _newton_step(curvature, slope, weights - bound)
        updated, probs, loss = _descend(
            objective.loss, (weights, probs, loss), step, bound
        )
        moved = np.abs(updated - weights).max()
        if moved < 1e-8 * (1 + np.abs(weights).max()):
            return updated
        weights = updated
    return weights


class _Likelihood(Protocol):
    """The negative log-likelihood of the weights and its derivatives."""

    def loss(self, weights: FloatArray) -> tuple[Tensor, float]:
        """Return the candidates' probabilities and the mean negative log-likelihood."""

    def derivatives(self, probs: Tensor) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of the mean negative log-likelihood.

        The gradient of an example is the expected features minus those of the right candidate, its
        curvature their covariance: ``E[ff'] - E[f] E[f]'``.
        """


@dataclass(frozen=True, eq=False)
class _Objective:
    """The negative objective of a fit.

    Args:
        likelihood: The likelihood of the examples.
        ridge: Strength of the prior.
        expected: Weights without any example.
    """

    likelihood: _Likelihood
    ridge: float
    expected: FloatArray

    def loss(self, weights: FloatArray) -> tuple[Tensor, float]:
        """Return the candidates' probabilities and the negative objective."""
        probs, loss = self.likelihood.loss(weights)
        distance = float(np.square(weights - self.expected).sum())
        return probs, loss + self.ridge / 2 * distance

    def derivatives(
        self, weights: FloatArray, probs: Tensor
    ) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of the negative objective."""
        slope, curvature = self.likelihood.derivatives(probs)
        of_prior = self.ridge * np.eye(len(weights))
        return slope + self.ridge * (weights - self.expected), curvature + of_prior


def _likelihood(
    values: Tensor, slots: Tensor, offsets: Tensor | None, counts: Tensor | None
) -> _Likelihood:
    """Return the form that suits the examples; both compute the same function.

    Padded examples have as many slots as the entity with most candidates. On a CPU, a list without
    the empty slots is several times shorter.
    """
    ones = values.new_ones(len(slots), dtype=torch.float64)
    relative = ones if counts is None else (counts / counts.mean()).to(ones)
    shift = values.new_zeros((), dtype=torch.float64)
    if offsets is not None:
        shift = offsets.double().to(values.device)
    filled = shift > -torch.inf
    if values.device.type == "cpu" and not filled.all():
        return _ListedLikelihood(values, slots, shift, filled, relative)
    return _PaddedLikelihood(values, slots, shift, relative)


class _PaddedLikelihood:
    """Computes the likelihood of examples that have equally many slots.

    The sums over the examples are computed on their device. The results are small and on the CPU,
    where steps with them do not wait for a GPU.

    Args:
        values: ``[num_examples, k, num_rules]`` indicator values.
        slots: ``[num_examples]`` the right candidate of each example.
        shift: ``[num_examples, k]`` added to the candidates' logits, or a single 0.
        counts: ``[num_examples]`` how often each example counts, 1 on average.
    """

    def __init__(
        self, values: Tensor, slots: Tensor, shift: Tensor, counts: Tensor
    ) -> None:
        self.values = values.double()
        self.flat = self.values.flatten(0, 1)
        self.right = self.values[torch.arange(len(slots), device=slots.device), slots]
        self.shift = shift
        self.counts = counts

    def loss(self, weights: FloatArray) -> tuple[Tensor, float]:
        """Return the candidates' probabilities and the mean negative log-likelihood."""
        own = torch.from_numpy(weights).to(self.values.device)
        logits = self.values @ own + self.shift
        fit = torch.logsumexp(logits, dim=1) - self.right @ own
        return torch.softmax(logits, dim=1), float((fit * self.counts).mean())

    def derivatives(self, probs: Tensor) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of the mean negative log-likelihood."""
        mean = torch.bmm(probs.unsqueeze(1), self.values).squeeze(1)
        counts = self.counts.unsqueeze(1)
        slope = ((mean - self.right) * counts).mean(0)
        second = (
            ((probs * counts).view(-1, 1) * self.flat).T @ self.flat / len(self.values)
        )
        curvature = second - (mean * counts).T @ mean / len(self.values)
        # one copy from the device instead of two
        both = torch.cat([slope.unsqueeze(0), curvature]).cpu().numpy()
        return both[0], both[1:]


class _ListedLikelihood:
    """Computes the likelihood from one list of the candidates of all examples, on a CPU.

    Args:
        values: ``[num_examples, k, num_rules]`` indicator values.
        slots: ``[num_examples]`` the right candidate of each example.
        shift: ``[num_examples, k]`` added to the candidates' logits.
        filled: ``[num_examples, k]`` whether a slot has a candidate; each example has at least one.
        counts: ``[num_examples]`` how often each example counts, 1 on average.
    """

    def __init__(
        self,
        values: Tensor,
        slots: Tensor,
        shift: Tensor,
        filled: Tensor,
        counts: Tensor,
    ) -> None:
        listed = values[filled].double()
        # one row per feature, so that the sums over the candidates of an example are contiguous
        self.columns = listed.T.contiguous()
        self.shift = shift[filled]
        self.right = values[torch.arange(len(slots)), slots].double()
        self.counts = counts
        self.sizes = filled.sum(1)
        self.starts = (self.sizes.cumsum(0) - self.sizes).numpy()
        self.counted = listed * self._spread(counts).unsqueeze(1)

    def loss(self, weights: FloatArray) -> tuple[Tensor, float]:
        """Return the candidates' probabilities and the mean negative log-likelihood."""
        own = torch.from_numpy(weights)
        logits = torch.addmv(self.shift, self.columns.T, own)
        most = torch.from_numpy(np.maximum.reduceat(logits.numpy(), self.starts))
        terms = logits.sub_(self._spread(most)).exp_()
        total = self._summed(terms)
        fit = most + total.log() - self.right @ own
        return terms.div_(self._spread(total)), float((fit * self.counts).mean())

    def derivatives(self, probs: Tensor) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivatives of the mean negative log-likelihood."""
        expected = self.columns * probs
        mean = self._summed(expected).T
        counts = self.counts.unsqueeze(1)
        slope = ((mean - self.right) * counts).mean(0)
        second = expected @ self.counted - (mean * counts).T @ mean
        return slope.numpy(), (second / len(self.counts)).numpy()

    def _summed(self, values: Tensor) -> Tensor:
        """Return the sum over the candidates of each example, ``[..., num_examples]``."""
        return torch.from_numpy(np.add.reduceat(values.numpy(), self.starts, axis=-1))

    def _spread(self, values: Tensor) -> Tensor:
        """Return the value of each candidate's example."""
        return values.repeat_interleave(self.sizes)


def link_examples(beliefs: Beliefs, links: Tensor) -> tuple[Tensor, Tensor]:
    """Return the links' source entities whose target is a candidate, and its slot."""
    rows, labels = links.T
    found = beliefs.targets[rows] == labels.unsqueeze(1)
    known = found.any(1)
    return rows[known], found[known].int().argmax(1)


def _newton_step(
    curvature: FloatArray, slope: FloatArray, room: FloatArray
) -> FloatArray:
    """Return the Newton step for the weights that can move; the caller subtracts it.

    A weight at its bound is fixed if the slope or the step would push it below the bound. A step
    that is cut off at the bound might not decrease the objective.

    Args:
        curvature: Second derivatives.
        slope: First derivatives.
        room: Distance of each weight from its bound.
    """
    at_bound = room <= AT_ZERO
    if not at_bound.any():
        return np.linalg.solve(curvature, slope).astype(np.float64, copy=False)
    # weights at their bound may leave it only if the objective falls in that direction. The step of
    # the free weights depends on which are free, so it is solved again whenever one is blocked
    free = ~at_bound | (slope < 0)
    while True:
        step = np.where(at_bound & (slope >= 0), room, 0.0)
        if free.any():
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        blocked = free & at_bound & (step > 0)
        if not blocked.any():
            return step
        free &= ~blocked


Fit = tuple[FloatArray, Tensor, float]
"""Weights, the probabilities of the candidates under them, and the loss."""


def _descend(
    evaluated: Callable[[FloatArray], tuple[Tensor, float]],
    now: Fit,
    step: FloatArray,
    bound: FloatArray,
) -> Fit:
    """Apply the Newton step, halved until the loss decreases."""
    weights, _, loss = now
    for halvings in range(30):
        candidate = np.maximum(weights - step / 2.0**halvings, bound)
        probs, changed = evaluated(candidate)
        if changed <= loss:
            return candidate, probs, changed
    return now


class Choices(NamedTuple):
    """The candidates of some entities, and which one is correct; the last slot means no match.

    Args:
        values: ``[n, k + 1, num_features]`` features.
        offsets: ``[n, k + 1]`` offsets of the logits, minus infinity in empty slots.
        slots: ``[n]`` the correct slot.
    """

    values: Tensor
    offsets: Tensor
    slots: Tensor


@dataclass(frozen=True, eq=False)
class Examples:
    """Holds where a table has the candidates of one side's entities of some links.

    The features of the candidates change with the beliefs, the examples do not.

    Args:
        places: ``[n, k]`` positions of each entity's pairs in the flattened table, 0 in empty
            slots.
        ids: ``[n]`` the entities.
        filled: ``[n, k]`` whether a slot contains a pair, on the CPU.
        slots: ``[n]`` the correct pair of each entity, -1 if it is not in the table, on the CPU.
    """

    places: Tensor
    ids: Tensor
    filled: Tensor
    slots: Tensor

    @classmethod
    def of(cls, places: Tensor, ids: Tensor, is_right: Tensor) -> "Examples":
        """Return the examples.

        Args:
            places: ``[n, k]`` positions of each entity's pairs, -1 in empty slots.
            ids: ``[n]`` the entities.
            is_right: ``[n, k]`` whether a slot contains the link of the entity.
        """
        slots = torch.where(is_right.any(1), is_right.int().argmax(1), -1)
        return cls(places.clamp(min=0), ids, (places >= 0).cpu(), slots.cpu())

    def given(self, columns: Sequence[Tensor]) -> Choices:
        """Return features, offsets and correct slots of the candidates and of no match, on the CPU.

        Args:
            columns: One tensor ``[num_source, width]`` per feature.

        Returns:
            Features ``[n, k + 1, num_features]``, which are 0 for no match and in empty slots, and
            offsets of the logits, which are minus infinity in empty slots and 0 elsewhere. The last
            slot means no match. It is correct if a link is not among the pairs.
        """
        pairs = torch.stack(
            [column.flatten()[self.places] for column in columns], dim=2
        ).cpu()
        pairs.masked_fill_(~self.filled.unsqueeze(2), 0.0)
        values = torch.cat([pairs, pairs.new_zeros(len(pairs), 1, len(columns))], dim=1)
        offsets = torch.where(self.filled, 0.0, -torch.inf)
        offsets = torch.cat([offsets, torch.zeros(len(offsets), 1)], dim=1)
        slots = torch.where(self.slots < 0, self.places.shape[1], self.slots)
        return Choices(values, offsets, slots)


def source_examples(table: PairTable, links: Tensor) -> Examples:
    """Return the pairs of the links' source entities."""
    sources, targets = links.T
    width = table.targets.shape[1]
    # a row of the table has the pairs of a source entity, so its places follow each other
    places = sources.unsqueeze(1) * width + torch.arange(width, device=links.device)
    filled = table.filled[sources]
    is_right = (table.targets[sources] == targets.unsqueeze(1)) & filled
    return Examples.of(torch.where(filled, places, -1), sources, is_right)


def target_examples(table: PairTable, links: Tensor) -> Examples:
    """Return the pairs of the links' target entities."""
    sources, targets = links.T
    wanted = torch.zeros(table.num_target, dtype=torch.bool, device=links.device)
    wanted[targets] = True
    # places of all pairs of the links' targets in the flattened table, grouped by target
    flat = (table.filled & wanted[table.targets]).flatten().nonzero().squeeze(1)
    of_target = table.targets.flatten()[flat]
    order = torch.argsort(of_target, stable=True)
    flat = flat[order]
    of_target = of_target[order]
    slots = places_in_groups(of_target, table.num_target)
    width = int(slots.max()) + 1 if len(slots) else 1
    # rows for the links' entities only: there may be a million others
    number = wanted.cumsum(0) - 1
    places = torch.full((int(wanted.sum()), width), -1, device=links.device)
    places[number[of_target], slots] = flat
    # back to the order of the links; a place divided by the width is the source entity
    places = places[number[targets]]
    is_right = (places // table.targets.shape[1] == sources.unsqueeze(1)) & (
        places >= 0
    )
    return Examples.of(places, targets, is_right)


def stacked_examples(examples: Sequence[Choices]) -> Choices:
    """Concatenate examples, padded with empty slots to one width."""
    width = max(one.values.shape[1] for one in examples)
    values = [widened(one.values, width, 0.0) for one in examples]
    offsets = [widened(one.offsets, width, -torch.inf) for one in examples]
    slots = [one.slots for one in examples]
    return Choices(torch.cat(values), torch.cat(offsets), torch.cat(slots))
