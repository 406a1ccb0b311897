"""The weights of an ensemble's members, fitted on held-out links."""

from collections.abc import Sequence

import torch
from torch import Tensor

from emea.em.examples import stacked_examples
from emea.em.m_step import fit_weights
from emea.em.normaliser import DEFAULT_SHARPNESS

NUM_RIVALS = 100
"""Most similar entities that a link's counterpart is compared with."""


def member_weights(
    members: Sequence[Tensor], num_source: int, links: Tensor, ridge: float = 1e-4
) -> Tensor:
    """Return ``[num_members]`` weights that sum to 1; equal weights without links.

    The weights are those of a multinomial logit ``p(e'|e) ~ exp(sum_m beta_m cos_m(e, e'))`` and
    of the same from the target side. They are fitted by maximum likelihood with a normal prior
    around equal weights. Only the most similar entities by the mean cosine compete, so the memory
    does not grow with the product of links and entities.

    Args:
        members: ``[num_entities, width]`` unit vectors of each member, source entities first.
        num_source: Number of source entities.
        links: ``[num_links, 2]`` links that no member was trained on.
        ridge: Strength of the prior.
    """
    equal = torch.full((len(members),), 1 / len(members))
    if not len(links):
        return equal
    sides = [(rows[:num_source], rows[num_source:]) for rows in members]
    forth = _cosines(sides, links)
    back = _cosines([(target, source) for source, target in sides], links.flip(1))
    right = torch.zeros(len(links), dtype=torch.int64)
    examples = [(values, torch.zeros(values.shape[:2]), right) for values in (forth, back)]
    values, offsets, slots = stacked_examples(examples)
    prior = DEFAULT_SHARPNESS * equal.double()
    fitted = fit_weights(values, slots, ridge, prior, offsets=offsets)
    if not fitted.sum() > 0:
        return equal
    return (fitted / fitted.sum()).float()


def _cosines(sides: Sequence[tuple[Tensor, Tensor]], links: Tensor) -> Tensor:
    """Return ``[num_links, 1 + num_rivals, num_members]`` cosines, the right target first."""
    num_target = len(sides[0][1])
    num_rivals = min(NUM_RIVALS, num_target - 1)
    examples = []
    for part in torch.split(links, max(1, 2**26 // num_target)):
        own, right = part.T
        cosines = torch.stack([source[own] @ target.T for source, target in sides], dim=2)
        mean = cosines.mean(2).scatter(1, right.unsqueeze(1), -torch.inf)
        slots = torch.cat([right.unsqueeze(1), mean.topk(num_rivals, dim=1).indices], dim=1)
        examples.append(cosines.gather(1, slots.unsqueeze(2).expand(-1, -1, len(sides))).cpu())
    return torch.cat(examples)
