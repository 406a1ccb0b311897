"""M-step: rule weights by penalised maximum likelihood, Eq. 13."""

from collections.abc import Callable

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs

FEW_EXAMPLES = 100
"""Examples below which the prior counts as much as it does beside so many."""

AT_ZERO = 1e-6
"""Weights up to here count as zero once the objective pushes them down."""


def fit_weights(
    values: Tensor,
    slots: Tensor,
    ridge: float,
    prior: float | Tensor = 1.0,
    num_steps: int = 50,
    least: float | Tensor = 0.0,
    offsets: Tensor | None = None,
) -> Tensor:
    """Weights that make the given candidates most probable under Eq. 7.

    Maximises the mean of ``log p(y_e = slot | y_-e)`` less ``ridge / 2 * |phi - prior|^2``:
    convex, solved by Newton's method. With less than ``FEW_EXAMPLES`` the prior counts more, as
    it must beside few of them. A rule's weight never falls below zero: a rule may turn out
    useless, but not to speak for the opposite of what it says. What is no rule may have another
    bound, or none.

    Args:
        values: ``[num_examples, k, num_rules]`` indicator values.
        slots: ``[num_examples]`` the right candidate of each example.
        ridge: strength of the prior; keeps a rule that is always right from running away.
        prior: weight a rule has before any example is seen, if its bound allows; one for all, or
            one each.
        num_steps: bound on Newton's steps.
        least: bound of the weights, one for all or one each.
        offsets: ``[num_examples, k]`` added to the candidates' logits; minus infinity for those
            that are none.
    """
    num_rules = values.shape[2]
    zeros = torch.zeros(num_rules, dtype=torch.float64, device=values.device)
    bound = zeros + least
    weights = torch.maximum(zeros + prior, bound)
    if not len(values):
        return weights
    values = values.double()
    shift = torch.zeros((), dtype=torch.float64) if offsets is None else offsets.double()
    shift = shift.to(values.device)
    right = values[torch.arange(len(slots), device=slots.device), slots]
    ridge *= max(1.0, FEW_EXAMPLES / len(values))

    def objective(w: Tensor) -> Tensor:
        fit = torch.logsumexp(values @ w + shift, dim=1) - right @ w
        return fit.mean() + ridge / 2 * (w - prior).square().sum()

    for _ in range(num_steps):
        probs = torch.softmax(values @ weights + shift, dim=1)
        mean = torch.einsum("ek,ekr->er", probs, values)
        slope = (mean - right).mean(0) + ridge * (weights - prior)
        second = torch.einsum("ek,ekr,eks->rs", probs, values, values) / len(values)
        curvature = second - mean.T @ mean / len(values)
        curvature += ridge * torch.eye(num_rules, dtype=torch.float64, device=values.device)
        step = _newton_step(curvature, slope, weights - bound)
        updated = _descend(objective, weights, step, bound)
        if (updated - weights).abs().max() < 1e-8 * (1 + weights.abs().max()):
            return updated
        weights = updated
    return weights


def link_examples(beliefs: Beliefs, links: Tensor) -> tuple[Tensor, Tensor]:
    """Entities of the links whose target is among their candidates, and its slot."""
    rows, labels = links.T
    found = beliefs.targets[rows] == labels.unsqueeze(1)
    known = found.any(1)
    return rows[known], found[known].int().argmax(1)


def sampled_examples(
    beliefs: Beliefs, sampling: str, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """All entities with a label from q: the best candidate, or a drawn one (Eq. 13)."""
    rows = torch.arange(beliefs.num_source, device=beliefs.targets.device)
    if sampling == "argmax":
        return rows, beliefs.best_slots()
    return rows, torch.multinomial(beliefs.probs + 1e-30, 1, generator=generator).squeeze(1)


def _newton_step(curvature: Tensor, slope: Tensor, room: Tensor) -> Tensor:
    """Newton's step (to be taken off) in the weights that are free to move.

    A weight at its bound, or so near that no halving would spare it, leaves the system where the
    slope or the step would push it below: a step bent at the bound need not descend.

    Args:
        curvature: second derivatives.
        slope: first derivatives.
        room: how far each weight is above its bound.
    """
    at_bound = room <= AT_ZERO
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
    objective: Callable[[Tensor], Tensor], weights: Tensor, step: Tensor, bound: Tensor
) -> Tensor:
    """Newton's step, halved until the objective falls."""
    now = objective(weights)
    for halvings in range(30):
        candidate = torch.maximum(weights - step / 2.0**halvings, bound)
        if objective(candidate) <= now:
            return candidate
    return weights
