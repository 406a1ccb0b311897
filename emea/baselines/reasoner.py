"""The interface of reasoning baselines, and what they share: fusion and maximal assignment."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.config.settings.cardinality import Cardinality
from emea.data.arrays import NO_MATCH
from emea.matching.beliefs import Matching
from emea.matching.many_matching import ManyMatching
from emea.matching.similarity import Similarity
from emea.rules.implied_pairs import ALMOST_SURE, FIXED_POINT, ImpliedPairs

_LARGEST = 2**63 - 1


@dataclass(frozen=True, eq=False)
class ReasoningReport:
    """The state after one iteration, for observers of the run.

    Args:
        iteration: Number of the iteration in the whole run, from 0.
        matching: The current matching.
        num_changes: Number of source entities whose match changed.
        similarity: Similarity of the embedding in use, or ``None``.
    """

    iteration: int
    matching: Matching | ManyMatching
    num_changes: int
    similarity: Similarity | None = None


Observer = Callable[[ReasoningReport], None]

Embed = Callable[[Tensor], Similarity]
"""Trains an encoder on ``[num_links, 2]`` links and returns the similarity of its embeddings."""


class Reasoner(ABC):
    """Aligns two graphs from seed links by reasoning."""

    @abstractmethod
    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> Matching | ManyMatching:
        """Align from seed links.

        Args:
            seeds: ``[num_seeds, 2]`` links that are certain.
            embed: Trains an encoder, for baselines that use one.
            observer: Called with the state after each iteration.
        """


@dataclass(frozen=True, eq=False)
class Fusion:
    """Mixes probabilities with cosines: ``(1 - weight) * probability + weight * cosine``.

    Negative cosines count as 0.

    Args:
        similarity: Similarity of the embedding.
        weight: Weight of the cosine.
    """

    similarity: Similarity
    weight: float

    def __call__(self, pairs: ImpliedPairs) -> ImpliedPairs:
        """Mix the cosine into the probabilities of pairs."""
        probs = -torch.expm1(pairs.log_doubt.double() / FIXED_POINT)
        cosines = self.cosines(pairs.sources, pairs.targets)
        mixed = (1 - self.weight) * probs + self.weight * cosines
        return pairs._replace(log_doubt=fixed_log_doubt(mixed))

    def cosines(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the cosine of each pair, at least 0."""
        found = self.similarity
        plain = replace(
            found,
            source_offset=torch.zeros_like(found.source_offset),
            target_offset=torch.zeros_like(found.target_offset),
            scale=1.0,
        )
        return plain.of_pairs(sources, targets).double().clamp(0, 1)


class MaximalAssignment:
    """Selects the best pair of each source entity, then the best pair of each target entity.

    Args:
        known: Pairs that keep at least their probability. Pairs with probability 1 are certain,
            and their entities accept no other pairs.
        theta: Pairs below this probability are ignored.
    """

    def __init__(self, known: Matching, theta: float) -> None:
        self.known = known
        self.theta = theta
        certain = known.probs >= 1
        self.free_source = ~certain
        self.free_target = torch.ones(known.num_target, dtype=torch.bool, device=certain.device)
        self.free_target[known.targets[certain]] = False
        self._targets = torch.full_like(known.targets, NO_MATCH)
        self._log_doubt = torch.zeros_like(known.targets)
        self.hold(known)

    def offer(self, pairs: ImpliedPairs) -> None:
        """Offer pairs; all pairs of a source entity must be offered together."""
        accepted = self.free_target[pairs.targets] & (
            pairs.log_doubt <= fixed_log_doubt(self.theta)
        )
        sources, targets, log_doubt = (column[accepted] for column in pairs)
        ties = tie_order(sources, targets, self.known.num_target)
        best = best_of_each(sources, len(self._targets), -log_doubt, ties)
        self._take(sources[best], targets[best], log_doubt[best])

    def hold(self, matching: Matching) -> None:
        """Offer the pairs of an earlier matching."""
        sources = (self.free_source & (matching.probs >= self.theta)).nonzero().squeeze(1)
        targets, log_doubt = matching.targets[sources], fixed_log_doubt(matching.probs[sources])
        free = self.free_target[targets]
        self._take(sources[free], targets[free], log_doubt[free])

    def matching(self) -> Matching:
        """Return the matching after each target entity has chosen its best pair."""
        sources = (self._targets >= 0).nonzero().squeeze(1)
        targets, log_doubt = self._targets[sources], self._log_doubt[sources]
        ties = tie_order(sources, targets, self.known.num_target)
        best = best_of_each(targets, self.known.num_target, -log_doubt, ties)
        certain = self.known.probs >= 1
        all_targets = torch.where(certain, self.known.targets, NO_MATCH)
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


class ManyAssignment:
    """Selects all pairs that a cardinality other than one-to-one allows.

    If an entity has at most one counterpart, it keeps its best pair. It has the methods of
    :class:`MaximalAssignment`.

    Args:
        known: Pairs that keep at least their probability. An entity of a pair with probability 1
            accepts no other pairs if it has at most one counterpart.
        theta: Pairs below this probability are ignored.
        cardinality: How many counterparts an entity may have.
    """

    def __init__(self, known: ManyMatching, theta: float, cardinality: Cardinality) -> None:
        self.known = known
        self.theta = theta
        self.cardinality = cardinality
        certain = known.probs >= 1
        self.certain = known.pairs()[known.pair_probs() >= 1]
        self.free_source = ~certain.any(1) | (not cardinality.one_target)
        self.free_target = torch.ones(known.num_target, dtype=torch.bool, device=certain.device)
        if cardinality.one_source:
            self.free_target[self.certain[:, 1]] = False
        self._offered: list[ImpliedPairs] = []
        self.hold(known)

    def offer(self, pairs: ImpliedPairs) -> None:
        """Offer pairs."""
        self._offered.append(
            pairs.kept(
                self.free_source[pairs.sources]
                & self.free_target[pairs.targets]
                & (pairs.log_doubt <= fixed_log_doubt(self.theta))
            )
        )

    def hold(self, matching: ManyMatching) -> None:
        """Offer the pairs of an earlier matching."""
        sources, targets = matching.pairs().T
        self.offer(ImpliedPairs(sources, targets, fixed_log_doubt(matching.pair_probs())))

    def matching(self) -> ManyMatching:
        """Return the certain pairs, and the other pairs that the cardinality allows."""
        sources, targets, log_doubt = map(torch.cat, zip(*self._offered, strict=True))
        num_source, num_target = len(self.free_source), self.known.num_target
        keys, index = torch.unique(sources * num_target + targets, return_inverse=True)
        log_doubt = torch.zeros_like(keys).scatter_reduce_(0, index, log_doubt, "amin")
        is_certain = torch.isin(keys, self.certain[:, 0] * num_target + self.certain[:, 1])
        keys, log_doubt = keys[~is_certain], log_doubt[~is_certain]
        sources, targets = keys // num_target, keys % num_target
        ties = tie_order(sources, targets, num_target)
        kept = torch.ones_like(keys, dtype=torch.bool)
        if self.cardinality.one_target:
            kept &= best_of_each(sources, num_source, -log_doubt, ties)
        if self.cardinality.one_source:
            kept &= best_of_each(targets, num_target, -log_doubt, ties)
        probs = -torch.expm1(log_doubt[kept].double() / FIXED_POINT)
        pairs = torch.cat([self.certain, torch.stack([sources[kept], targets[kept]], dim=1)])
        probs = torch.cat([probs.new_ones(len(self.certain)), probs.clamp(max=ALMOST_SURE)])
        return ManyMatching.of_pairs(pairs, probs, num_source, num_target)


def fixed_log_doubt(probs: Tensor | float) -> Tensor:
    """Return log(1 - p) as a fixed-point number, as in :class:`ImpliedPairs`."""
    probs = torch.as_tensor(probs, dtype=torch.float64).clamp(0, ALMOST_SURE)
    return (torch.log1p(-probs) * FIXED_POINT).round().long()


def best_of_each(groups: Tensor, num_groups: int, scores: Tensor, ties: Tensor) -> Tensor:
    """Return whether each row is the best of its group.

    Args:
        groups: Group of each row.
        num_groups: Number of groups.
        scores: Integers; the largest is best.
        ties: Distinct integers that break ties; the smallest is best.
    """
    top = torch.full((num_groups,), -_LARGEST, device=scores.device)
    top.scatter_reduce_(0, groups, scores, "amax")
    is_top = scores == top[groups]
    least = torch.full((num_groups,), _LARGEST, device=scores.device)
    least.scatter_reduce_(0, groups[is_top], ties[is_top], "amin")
    return is_top & (ties == least[groups])


def tie_order(sources: Tensor, targets: Tensor, num_target: int) -> Tensor:
    """Return pseudo-random keys that break ties between pairs, the same in every run.

    In public data, most links connect id i to id i + constant. Breaking ties by id would favour the
    true links.
    """
    keys = sources * num_target + targets
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        # Shifting a negative number keeps its sign, so the sign bits are masked.
        keys = (keys ^ ((keys >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return keys
