"""Probabilities that can be taken at their word."""

import torch
from torch import Tensor

from emea.em.m_step import fit_weights
from emea.matching.beliefs import Beliefs

MARGIN = 1e-6
"""Least distance of a probability from 0 and 1, so that its logit is a number."""


def calibrated(beliefs: Beliefs, links: Tensor, ridge: float = 0.01) -> Beliefs:
    """The same candidates, in the same order, with the best one's probability calibrated.

    Platt scaling: the probability that an entity's best candidate is right is
    ``sigmoid(a logit(p) + c)``, with a >= 0 and c fitted on links by maximum likelihood, with a
    prior that changes nothing. What the best gains is taken from being none of the candidates
    first, then from the others in proportion; what it loses goes to being none of them.

    Args:
        beliefs: rows that sum to at most 1.
        links: ``[num_links, 2]`` held-out links; none: nothing changes.
        ridge: strength of the prior.
    """
    if not len(links):
        return beliefs
    best = beliefs.probs.max(1).values
    right = beliefs.best_targets()[links[:, 0]] == links[:, 1]
    slope, shift = _fitted(_logit(best[links[:, 0]]), right, ridge)
    scaled = torch.where(best > 0, torch.sigmoid(slope * _logit(best) + shift), 0.0)
    is_best = torch.zeros_like(beliefs.probs, dtype=torch.bool)
    is_best.scatter_(1, beliefs.best_slots().unsqueeze(1), True)
    # not as a difference: beside a best one of nearly 1, rounding would leave the others nothing
    others = beliefs.probs.masked_fill(is_best, 0).sum(1)
    room = torch.where(others > 0, ((1 - scaled) / others.clamp(min=MARGIN)).clamp(max=1), 0.0)
    # no other candidate may come up to the best one
    second = beliefs.probs.topk(min(2, beliefs.num_candidates), dim=1).values[:, -1]
    room = torch.minimum(room, (1 - MARGIN) * scaled / second.clamp(min=MARGIN))
    probs = torch.where(is_best, scaled.unsqueeze(1), beliefs.probs * room.unsqueeze(1))
    return Beliefs(beliefs.targets, probs)


def _fitted(logits: Tensor, right: Tensor, ridge: float) -> tuple[float, float]:
    """Slope and shift of the calibration, as a choice between right (slot 1) and wrong (0)."""
    values = torch.zeros(len(logits), 2, 2, dtype=torch.float64)
    values[:, 1, 0] = logits.cpu()
    values[:, 1, 1] = 1
    prior, least = torch.tensor([1.0, 0.0]).double(), torch.tensor([0.0, -torch.inf]).double()
    slope, shift = fit_weights(values, right.long().cpu(), ridge, prior, least=least).tolist()
    return slope, shift


def _logit(probs: Tensor) -> Tensor:
    return torch.logit(probs.clamp(MARGIN, 1 - MARGIN))
