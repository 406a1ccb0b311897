"""M-step: rule weights by penalised maximum likelihood, Eq. 13."""

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs

AT_ZERO = 1e-6
"""Weights up to here count as zero once the objective pushes them down."""


def fit_weights(
    values: Tensor, slots: Tensor, ridge: float, prior: float = 1.0, num_steps: int = 50
) -> Tensor:
    """Weights that make the given candidates most probable under Eq. 7.

    Maximises the mean of ``log p(y_e = slot | y_-e)`` less ``ridge / 2 * |phi - prior|^2``:
    convex, solved by Newton's method. A rule's weight never falls below zero: a rule may turn
    out useless, but not to speak for the opposite of what it says.

    Args:
        values: ``[num_examples, k, num_rules]`` indicator values.
        slots: ``[num_examples]`` the right candidate of each example.
        ridge: strength of the prior; keeps a rule that is always right from running away.
        prior: weight a rule has before any example is seen.
        num_steps: bound on Newton's steps.
    """
    num_rules = values.shape[2]
    weights = torch.full((num_rules,), prior, dtype=torch.float64, device=values.device)
    if not len(values):
        return weights
    values = values.double()
    right = values[torch.arange(len(slots), device=slots.device), slots]
    for _ in range(num_steps):
        probs = torch.softmax(values @ weights, dim=1)
        mean = torch.einsum("ek,ekr->er", probs, values)
        slope = (mean - right).mean(0) + ridge * (weights - prior)
        second = torch.einsum("ek,ekr,eks->rs", probs, values, values) / len(values)
        curvature = second - mean.T @ mean / len(values)
        curvature += ridge * torch.eye(num_rules, dtype=torch.float64, device=values.device)
        step = _newton_step(curvature, slope, weights)
        updated = _descend(values, right, weights, step, ridge, prior)
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


def _newton_step(curvature: Tensor, slope: Tensor, weights: Tensor) -> Tensor:
    """Newton's step (to be taken off) in the weights that are free to move.

    A weight at zero, or so near that no halving would spare it, leaves the system where the
    slope or the step would push it below: a step bent at the bound need not descend.
    """
    at_zero = weights <= AT_ZERO
    free = ~at_zero | (slope < 0)
    while True:
        step = torch.where(at_zero & (slope >= 0), weights, 0.0)
        if free.any():
            step[free] = torch.linalg.solve(curvature[free][:, free], slope[free])
        blocked = free & at_zero & (step > 0)
        if not blocked.any():
            return step
        free &= ~blocked


def _descend(
    values: Tensor, right: Tensor, weights: Tensor, step: Tensor, ridge: float, prior: float
) -> Tensor:
    """Newton's step, halved until the objective falls."""

    def objective(w: Tensor) -> Tensor:
        fit = torch.logsumexp(values @ w, dim=1) - right @ w
        return fit.mean() + ridge / 2 * (w - prior).square().sum()

    now = objective(weights)
    for halvings in range(30):
        candidate: Tensor = (weights - step / 2.0**halvings).clamp(min=0)
        if objective(candidate) <= now:
            return candidate
    return weights
