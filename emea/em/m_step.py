"""The M-step: rule weights by penalised maximum likelihood (Eq. 13)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairTable, places_in_groups, widened
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
    bound = zeros + least
    weights = torch.maximum(zeros + prior, bound)
    if not len(values):
        return weights
    likelihood = _Likelihood(values, slots, offsets, counts)
    ridge *= max(1.0, FEW_EXAMPLES / len(values))

    def evaluated(w: Tensor) -> tuple[Tensor, Tensor]:
        """Return the candidates' logits and the negative objective."""
        logits, loss = likelihood.loss(w)
        return logits, loss + ridge / 2 * (w - prior).square().sum()

    of_prior = ridge * torch.eye(len(weights), dtype=torch.float64)
    logits, loss = evaluated(weights)
    for _ in range(MAX_STEPS):
        slope, curvature = likelihood.derivatives(logits)
        slope = slope + ridge * (weights - prior)
        step = _newton_step(curvature + of_prior, slope, weights - bound)
        updated, logits, loss = _descend(evaluated, (weights, logits, loss), step, bound)
        if (updated - weights).abs().max() < 1e-8 * (1 + weights.abs().max()):
            return updated
        weights = updated
    return weights


class _Likelihood:
    """Computes the negative log-likelihood of the weights and its derivatives.

    The sums over the examples are computed on their device. The results are small and on the CPU,
    where steps with them do not wait for a GPU.

    Args:
        values: ``[num_examples, k, num_rules]`` indicator values.
        slots: ``[num_examples]`` the right candidate of each example.
        offsets: ``[num_examples, k]`` added to the candidates' logits; ``None`` means 0.
        counts: ``[num_examples]`` how often each example counts; ``None`` means once.
    """

    def __init__(
        self, values: Tensor, slots: Tensor, offsets: Tensor | None, counts: Tensor | None
    ) -> None:
        self.values = values.double()
        self.flat = self.values.flatten(0, 1)
        self.right = self.values[torch.arange(len(slots), device=slots.device), slots]
        shift = torch.zeros((), dtype=torch.float64) if offsets is None else offsets.double()
        self.shift = shift.to(values.device)
        ones = self.values.new_ones(len(slots))
        self.counts = ones if counts is None else (counts / counts.mean()).to(ones)

    def loss(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return the candidates' logits and the mean negative log-likelihood."""
        weights = weights.to(self.values.device)
        logits = self.values @ weights + self.shift
        fit = torch.logsumexp(logits, dim=1) - self.right @ weights
        return logits, (fit * self.counts).mean().cpu()

    def derivatives(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first and second derivatives of the mean negative log-likelihood."""
        probs = torch.softmax(logits, dim=1)
        mean = torch.bmm(probs.unsqueeze(1), self.values).squeeze(1)
        counts = self.counts.unsqueeze(1)
        slope = ((mean - self.right) * counts).mean(0)
        second = ((probs * counts).view(-1, 1) * self.flat).T @ self.flat / len(self.values)
        curvature = second - (mean * counts).T @ mean / len(self.values)
        both = torch.cat([slope.unsqueeze(0), curvature]).cpu()
        return both[0], both[1:]


def link_examples(beliefs: Beliefs, links: Tensor) -> tuple[Tensor, Tensor]:
    """Return the links' source entities whose target is a candidate, and its slot."""
    rows, labels = links.T
    found = beliefs.targets[rows] == labels.unsqueeze(1)
    known = found.any(1)
    return rows[known], found[known].int().argmax(1)


def _newton_step(curvature: Tensor, slope: Tensor, room: Tensor) -> Tensor:
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
        solution: Tensor = torch.linalg.solve(curvature, slope)
        return solution
    free = ~at_bound | (slope < 0)
    while True:
        step = torch.where(at_bound & (slope >= 0), room, 0.0)
        if free.any():
            step[free] = torch.linalg.solve(curvature[free][:, free], slope[free])
        blocked = free & at_bound & (step > 0)
        if not blocked.any():
            return step
        free &= ~blocked


def _descend(
    evaluated: Callable[[Tensor], tuple[Tensor, Tensor]],
    now: tuple[Tensor, Tensor, Tensor],
    step: Tensor,
    bound: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply the Newton step, halved until the loss decreases; return weights, logits and loss."""
    weights, _, loss = now
    for halvings in range(30):
        candidate = torch.maximum(weights - step / 2.0**halvings, bound)
        logits, changed = evaluated(candidate)
        if changed <= loss:
            return candidate, logits, changed
    return now


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

    def given(self, columns: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return features, offsets and correct slots of the candidates and of no match, on the CPU.

        Args:
            columns: One tensor ``[num_source, width]`` per feature.

        Returns:
            Features ``[n, k + 1, num_features]``, which are 0 for no match and in empty slots, and
            offsets of the logits, which are minus infinity in empty slots and 0 elsewhere. The last
            slot means no match. It is correct if a link is not among the pairs.
        """
        pairs = torch.stack([column.flatten()[self.places] for column in columns], dim=2).cpu()
        pairs.masked_fill_(~self.filled.unsqueeze(2), 0.0)
        values = torch.cat([pairs, pairs.new_zeros(len(pairs), 1, len(columns))], dim=1)
        offsets = torch.where(self.filled, 0.0, -torch.inf)
        offsets = torch.cat([offsets, torch.zeros(len(offsets), 1)], dim=1)
        return values, offsets, torch.where(self.slots < 0, self.places.shape[1], self.slots)


def source_examples(table: PairTable, links: Tensor) -> Examples:
    """Return the pairs of the links' source entities."""
    sources, targets = links.T
    width = table.targets.shape[1]
    places = sources.unsqueeze(1) * width + torch.arange(width, device=links.device)
    filled = table.filled[sources]
    is_right = (table.targets[sources] == targets.unsqueeze(1)) & filled
    return Examples.of(torch.where(filled, places, -1), sources, is_right)


def target_examples(table: PairTable, links: Tensor) -> Examples:
    """Return the pairs of the links' target entities."""
    sources, targets = links.T
    wanted = torch.zeros(table.num_target, dtype=torch.bool, device=links.device)
    wanted[targets] = True
    flat = (table.filled & wanted[table.targets]).flatten().nonzero().squeeze(1)
    of_target = table.targets.flatten()[flat]
    order = torch.argsort(of_target, stable=True)
    flat, of_target = flat[order], of_target[order]
    slots = places_in_groups(of_target, table.num_target)
    width = int(slots.max()) + 1 if len(slots) else 1
    # rows for the links' entities only: there may be a million others
    number = wanted.cumsum(0) - 1
    places = torch.full((int(wanted.sum()), width), -1, device=links.device)
    places[number[of_target], slots] = flat
    places = places[number[targets]]
    is_right = (places // table.targets.shape[1] == sources.unsqueeze(1)) & (places >= 0)
    return Examples.of(places, targets, is_right)


def stacked_examples(
    examples: Sequence[tuple[Tensor, Tensor, Tensor]],
) -> tuple[Tensor, Tensor, Tensor]:
    """Concatenate features, offsets and correct slots, padded with empty slots to one width."""
    width = max(values.shape[1] for values, _, _ in examples)
    values = torch.cat([widened(values, width, 0.0) for values, _, _ in examples])
    offsets = torch.cat([widened(offset, width, -torch.inf) for _, offset, _ in examples])
    return values, offsets, torch.cat([slots for _, _, slots in examples])
