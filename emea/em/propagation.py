"""Candidates that the encoder misses but confidently matched neighbours imply."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from emea.kernels.flat_groups import group_sizes, group_starts, places_in_groups
from emea.matching.beliefs import Matching
from emea.matching.similarity import Similarity
from emea.matching.two_sided import Subset
from emea.rules.directed_triples import DirectedTriples, TailGroups
from emea.rules.implied_pairs import EVIDENCE_PER_BLOCK, ImpliedPairs, implied_pairs
from emea.rules.literal_rows import LiteralRows
from emea.rules.subsumption import Subsumption
from emea.runtime.block_memory import block_budget, in_smaller_blocks


class Propagation:
    """Finds the pairs that matched neighbours imply, and keeps the best few per entity.

    Many pairs have exactly equal evidence, because a match implies all members of a group in the
    same way. If the limit falls among equal pairs, the most similar ones are kept.

    Args:
        source: The source graph.
        target: The target graph.
        num_pairs: Pairs kept per entity.
        least_evidence: Pieces of evidence of this probability or less are dropped.
        literals: Matched values, if the graphs are extended by them.
    """

    def __init__(
        self,
        source: DirectedTriples,
        target: DirectedTriples,
        num_pairs: int = 5,
        least_evidence: float = 0.01,
        literals: LiteralRows | None = None,
    ) -> None:
        self.literals = literals
        self.groups = TailGroups(source), TailGroups(target)
        self.num_pairs = num_pairs
        self.least_evidence = least_evidence

    @in_smaller_blocks
    def __call__(
        self,
        matching: Matching,
        included: Subsumption,
        similarity: Similarity,
        free: Subset | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return source and target ids of the pairs.

        Args:
            matching: Matched neighbours, with their probabilities.
            included: Inclusions of the relations.
            similarity: Orders pairs with equal evidence.
            free: Entities whose pairs are wanted; ``None``: all entities.
        """
        wanted = torch.ones_like(matching.targets, dtype=torch.bool)
        if free is not None:
            wanted = free.source
        if self.literals is not None:
            matching = self.literals.matching(matching)
            wanted = self.literals.wanted(wanted)
        blocks = implied_pairs(
            *self.groups,
            matching,
            wanted=wanted,
            included=included.of,
            least_evidence=self.least_evidence,
        )
        if self.literals is not None:
            # literal values have larger ids than entities
            blocks = (
                pairs.kept(pairs.targets < similarity.num_target) for pairs in blocks
            )
        if free is not None:
            blocks = (pairs.kept(free.target[pairs.targets]) for pairs in blocks)
        pairs = self._selected(blocks, similarity)
        return pairs.sources, pairs.targets

    def _selected(
        self, blocks: Iterator[ImpliedPairs], similarity: Similarity
    ) -> ImpliedPairs:
        """Return the best pairs of all blocks, with only a few times as many in memory.

        A pair that is among the best of neither entity in some blocks is not among the best of
        all. Dropping such pairs early does not change the result.
        """
        ids = torch.zeros(0, dtype=torch.int64, device=similarity.source.device)
        selected = ImpliedPairs(ids, ids, ids)
        pending = []
        limit = block_budget(EVIDENCE_PER_BLOCK, ids.device)
        for block in blocks:
            pending.append(block)
            if sum(len(pairs.sources) for pairs in pending) > max(
                limit, len(selected.sources)
            ):
                selected = self._best_of([selected, *pending], similarity)
                pending = []
        return self._best_of([selected, *pending], similarity)

    def _best_of(
        self, parts: Sequence[ImpliedPairs], similarity: Similarity
    ) -> ImpliedPairs:
        pairs = ImpliedPairs(
            torch.cat([part.sources for part in parts]),
            torch.cat([part.targets for part in parts]),
            torch.cat([part.log_doubt for part in parts]),
        )
        kept = self._best(pairs, pairs.sources, similarity.num_source, similarity)
        kept |= self._best(pairs, pairs.targets, similarity.num_target, similarity)
        return pairs.kept(kept)

    def _best(
        self,
        pairs: ImpliedPairs,
        entities: Tensor,
        num_entities: int,
        similarity: Similarity,
    ) -> Tensor:
        """Return which pairs are among their entity's pairs with the least doubt."""
        doubts = pairs.log_doubt
        # 1 is above all doubts: with few pairs, all are kept
        last = smallest_of_groups(
            doubts, entities, num_entities, self.num_pairs, filler=1
        )
        kept = doubts < last[entities]
        is_tied = doubts == last[entities]
        room = self.num_pairs - group_sizes(entities, num_entities, kept)
        fits = (group_sizes(entities, num_entities, is_tied) <= room)[entities]
        kept |= is_tied & fits
        tied = (is_tied & ~fits).nonzero().squeeze(1)
        scores = similarity.of_pairs(pairs.sources[tied], pairs.targets[tied])
        tied = tied[torch.argsort(scores, descending=True, stable=True)]
        tied = tied[torch.argsort(entities[tied], stable=True)]
        of_tied = entities[tied]
        kept[tied] = places_in_groups(of_tied, num_entities) < room[of_tied]
        return kept


def smallest_of_groups(
    values: Tensor, groups: Tensor, num_groups: int, place: int, filler: int
) -> Tensor:
    """Return the value of each group that has this place in ascending order, ``[num_groups]``.

    Args:
        values: ``[n]`` integers.
        groups: ``[n]`` group of each value.
        num_groups: Number of groups.
        place: The place, from 1 on.
        filler: Result for groups with fewer values; larger than all values.
    """
    if not len(values):
        return values.new_full((num_groups,), filler)
    order = torch.argsort(values, stable=True)
    order = order[torch.argsort(groups[order], stable=True)]
    starts = group_starts(groups, num_groups)
    found = starts[:-1] + place - 1
    smallest = values[order[found.clamp(max=len(order) - 1)]]
    return torch.where(found < starts[1:], smallest, filler)
