"""The interface of reasoning baselines, and what they share: fusion and maximal assignment."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from emea.data.settings import Cardinality
from emea.matching.beliefs import Matching
from emea.matching.many_matching import ManyMatching
from emea.matching.similarity import Similarity
from emea.rules.implied_pairs import ALMOST_SURE, FIXED_POINT, ImpliedPairs

_LARGEST = 2**63 - 1

AnyMatching = Matching | ManyMatching


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
    matching: AnyMatching
    num_changes: int
    similarity: Similarity | None = None


Observer = Callable[[ReasoningReport], None]

Embed = Callable[[Tensor], Similarity]
"""Trains an encoder on ``[num_links, 2]`` links and returns the similarity of its embeddings."""


class Reasoner(ABC):
    """Aligns two graphs from seed links by reasoning."""

    @abstractmethod
    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> AnyMatching:
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


class Assignment:
    """Selects the pairs that a cardinality allows.

    If a source entity has at most one counterpart, it keeps its best pair. Of these pairs, a target
    entity that has at most one counterpart keeps its best one.

    Args:
        known: Pairs that keep at least their probability. An entity of a pair with probability 1
            accepts no other pairs if it has at most one counterpart.
        theta: Pairs below this probability are ignored.
        cardinality: How many counterparts an entity may have.
    """

    def __init__(
        self, known: AnyMatching, theta: float, cardinality: Cardinality
    ) -> None:
        self.least_doubt = fixed_log_doubt(theta)
        self.cardinality = cardinality
        self.num_source, self.num_target = len(known.targets), known.num_target
        self.certain = known.pairs()[known.pair_probs() >= 1]
        sizes = self.num_source, self.num_target
        self.free_source, self.free_target = (
            torch.ones(size, dtype=torch.bool, device=self.certain.device)
            for size in sizes
        )
        if cardinality.one_target:
            self.free_source[self.certain[:, 0]] = False
        if cardinality.one_source:
            self.free_target[self.certain[:, 1]] = False
        self._offered: list[ImpliedPairs] = []
        self.hold(known)

    def offer(self, pairs: ImpliedPairs) -> None:
        """Offer pairs; all pairs of a source entity must be offered together."""
        free = self.free_source[pairs.sources] & self.free_target[pairs.targets]
        pairs = pairs.kept(free & (pairs.log_doubt <= self.least_doubt))
        if self.cardinality.one_target:
            pairs = self._best(pairs, pairs.sources, self.num_source)
        self._offered.append(pairs)

    def hold(self, matching: AnyMatching) -> None:
        """Offer the pairs of an earlier matching."""
        sources, targets = matching.pairs().T
        self.offer(
            ImpliedPairs(sources, targets, fixed_log_doubt(matching.pair_probs()))
        )

    def matching(self) -> AnyMatching:
        """Return the certain pairs, and the other pairs that the cardinality allows."""
        sources, targets, log_doubt = map(torch.cat, zip(*self._offered, strict=True))
        keys, index = torch.unique(
            sources * self.num_target + targets, return_inverse=True
        )
        log_doubt = torch.zeros_like(keys).scatter_reduce_(0, index, log_doubt, "amin")
        known = self.certain[:, 0] * self.num_target + self.certain[:, 1]
        others = ~torch.isin(keys, known)
        keys = keys[others]
        log_doubt = log_doubt[others]
        pairs = ImpliedPairs(keys // self.num_target, keys % self.num_target, log_doubt)
        if self.cardinality.one_target:
            pairs = self._best(pairs, pairs.sources, self.num_source)
        if self.cardinality.one_source:
            pairs = self._best(pairs, pairs.targets, self.num_target)
        probs = -torch.expm1(pairs.log_doubt.double() / FIXED_POINT)
        probs = torch.cat(
            [probs.new_ones(len(self.certain)), probs.clamp(max=ALMOST_SURE)]
        )
        links = torch.cat(
            [self.certain, torch.stack([pairs.sources, pairs.targets], dim=1)]
        )
        if self.cardinality != Cardinality.ONE_TO_ONE:
            return ManyMatching.of_pairs(links, probs, self.num_source, self.num_target)
        matching = Matching.of_links(links, self.num_source, self.num_target)
        matching.probs[links[:, 0]] = probs
        return matching

    def _best(
        self, pairs: ImpliedPairs, entities: Tensor, num_entities: int
    ) -> ImpliedPairs:
        """Return the best pair of each entity."""
        ties = tie_order(pairs.sources, pairs.targets, self.num_target)
        return pairs.kept(best_of_each(entities, num_entities, -pairs.log_doubt, ties))


def fixed_log_doubt(probs: Tensor | float) -> Tensor:
    """Return log(1 - p) as a fixed-point number, as in :class:`ImpliedPairs`."""
    probs = torch.as_tensor(probs, dtype=torch.float64).clamp(0, ALMOST_SURE)
    return (torch.log1p(-probs) * FIXED_POINT).round().long()


def best_of_each(
    groups: Tensor, num_groups: int, scores: Tensor, ties: Tensor
) -> Tensor:
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
