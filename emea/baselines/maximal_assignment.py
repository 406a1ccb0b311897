"""One counterpart for each entity: the best of all pairs on offer."""

import torch
from torch import Tensor

from emea.matching.matching import NOBODY, Matching
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs

ALMOST_SURE = 1 - 1e-12
"""Largest probability of a pair that is inferred: only what is known has 1."""

_LARGEST = 2**63 - 1


class MaximalAssignment:
    """Takes offers of pairs; each source entity keeps its best, then each target entity.

    Args:
        known: pairs that never fall below their probability. Those of probability 1 are
            certain: their entities take no offers.
        theta: pairs below this probability are ignored.
    """

    def __init__(self, known: Matching, theta: float) -> None:
        self.known = known
        self.theta = theta
        certain = known.probs >= 1
        self.free_source = ~certain
        self.free_target = torch.ones(known.num_target, dtype=torch.bool, device=certain.device)
        self.free_target[known.targets[certain]] = False
        self._targets = torch.full_like(known.targets, NOBODY)
        self._log_doubt = torch.zeros_like(known.targets)
        self.hold(known)

    def offer(self, pairs: ImpliedPairs) -> None:
        """Some pairs, all of a source entity's at once."""
        heard = self.free_target[pairs.targets] & (pairs.log_doubt <= fixed_log_doubt(self.theta))
        sources, targets, log_doubt = (column[heard] for column in pairs)
        ties = tie_order(sources, targets, self.known.num_target)
        best = best_of_each(sources, len(self._targets), -log_doubt, ties)
        self._take(sources[best], targets[best], log_doubt[best])

    def hold(self, matching: Matching) -> None:
        """A matching, of which source entities keep what is better than their offers."""
        sources = (self.free_source & (matching.probs >= self.theta)).nonzero().squeeze(1)
        targets, log_doubt = matching.targets[sources], fixed_log_doubt(matching.probs[sources])
        free = self.free_target[targets]
        self._take(sources[free], targets[free], log_doubt[free])

    def matching(self) -> Matching:
        """What is left once each target entity has chosen, too."""
        sources = (self._targets >= 0).nonzero().squeeze(1)
        targets, log_doubt = self._targets[sources], self._log_doubt[sources]
        ties = tie_order(sources, targets, self.known.num_target)
        best = best_of_each(targets, self.known.num_target, -log_doubt, ties)
        certain = self.known.probs >= 1
        all_targets = torch.where(certain, self.known.targets, NOBODY)
        all_probs = torch.where(certain, self.known.probs, 0.0)
        sources = sources[best]
        all_targets[sources] = targets[best]
        probs = -torch.expm1(log_doubt[best].double() / FIXED_POINT)
        all_probs[sources] = probs.clamp(max=ALMOST_SURE)
        return Matching(all_targets, all_probs, self.known.num_target)

    def _take(self, sources: Tensor, targets: Tensor, log_doubt: Tensor) -> None:
        better = log_doubt < self._log_doubt[sources]
        sources = sources[better]
        self._targets[sources] = targets[better]
        self._log_doubt[sources] = log_doubt[better]


def fixed_log_doubt(probs: Tensor | float) -> Tensor:
    """What a probability leaves in doubt, as implied pairs tell it."""
    probs = torch.as_tensor(probs, dtype=torch.float64).clamp(0, ALMOST_SURE)
    return (torch.log1p(-probs) * FIXED_POINT).round().long()


def best_of_each(groups: Tensor, num_groups: int, scores: Tensor, ties: Tensor) -> Tensor:
    """Bool: whether a row is the best of its group.

    Args:
        groups: group of each row.
        num_groups: how many there are.
        scores: whole numbers; the largest is best.
        ties: distinct whole numbers; of equal scores the row with the smallest is best.
    """
    top = torch.full((num_groups,), -_LARGEST, device=scores.device)
    top.scatter_reduce_(0, groups, scores, "amax")
    is_top = scores == top[groups]
    least = torch.full((num_groups,), _LARGEST, device=scores.device)
    least.scatter_reduce_(0, groups[is_top], ties[is_top], "amin")
    return is_top & (ties == least[groups])


def tie_order(sources: Tensor, targets: Tensor, num_target: int) -> Tensor:
    """A place in line for each pair that looks random, and is the same in every run.

    In public data most links join id i to id i + constant: the smaller id as the winner would
    be the right one too often.
    """
    keys = sources * num_target + targets
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        # shifts of negative numbers keep the sign: mask it off, so that nothing is lost
        keys = (keys ^ ((keys >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return keys
