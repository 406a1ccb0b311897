"""The evidence of PARIS from the beliefs in all pairs of neighbours, not only in candidates.

The value of a candidate e' of e (Eq. 19) needs q(n, n') for every neighbour n of e and n' of e'.
The rows of q are computed in blocks of neighbours n. For each r(e, n) of a block and each candidate
e' of e, the relations r' of e' that correspond to r are looked up first, and only their r'(e', n')
are enumerated. Memory is bounded by the size of the blocks.

The number of pairs of neighbours grows with the product of the degrees of e and e'. Above
``MAX_NEIGHBOUR_PAIRS`` a pair of hubs gets its evidence from the candidates of its neighbours, so
that the work stays linear in the number of triples.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from emea.matching.beliefs import DenseBeliefs
from emea.matching.pair_table import chunks, expand_ranges
from emea.rules.directed_triples import DirectedTriples, TailGroups
from emea.rules.pair_evidence import log_remaining
from emea.runtime.block_memory import block_budget, in_smaller_blocks

MAX_NEIGHBOUR_PAIRS = 2**22
"""Pairs of triples of e and e' up to which all of them are enumerated."""

PIECES_PER_BLOCK = {"cpu": 2**20, "cuda": 2**24}
"""Pieces of evidence held at a time, per kind of device; this bounds the memory."""

Factors = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Takes r and r'; returns ``Pr(r' in r) fun^-1(r)`` and ``Pr(r in r') fun^-1(r')``."""


class DenseEvidence:
    """Computes Eq. 19 for candidates from the probabilities of all targets.

    Args:
        source: The source graph in both directions.
        target: The target graph in both directions.
    """

    def __init__(self, source: DirectedTriples, target: DirectedTriples) -> None:
        by_neighbour = TailGroups(source)
        sizes = by_neighbour.num_members
        self.entities = by_neighbour.members
        self.neighbours = torch.repeat_interleave(by_neighbour.owners, sizes)
        self.relations = torch.repeat_interleave(by_neighbour.relations, sizes)
        self.source_degrees = torch.bincount(self.entities, minlength=source.num_entities)
        # r'(e', n') is the inverse of r' from n' to e': the groups of tail e' hold all n' by r'
        self.groups = TailGroups(target)
        half = target.num_directed // 2
        self.group_relations = (self.groups.relations + half) % max(1, target.num_directed)
        self.group_sizes = self.groups.num_members
        self.target_degrees = torch.diff(self.groups.member_starts[self.groups.starts])

    def is_enumerated(self, targets: Tensor) -> Tensor:
        """Return whether all pairs of neighbours of a candidate are used, ``[num_source, k]``."""
        pairs = self.source_degrees.unsqueeze(1) * self.target_degrees[targets]
        return pairs <= MAX_NEIGHBOUR_PAIRS

    @in_smaller_blocks
    def __call__(self, dense: DenseBeliefs, targets: Tensor, factors: Factors) -> Tensor:
        """Return the log doubt that remains for each candidate, ``[num_source, k]``.

        Candidates that `is_enumerated` excludes have the value 0.

        Args:
            dense: q over all targets.
            targets: ``[num_source, k]`` candidates.
            factors: The factors of q(n, n') in Eq. 19, per pair of relations.
        """
        total = dense.similarity.source.new_zeros(targets.numel())
        num_groups = torch.diff(self.groups.starts)[targets] * self.is_enumerated(targets)
        limit = block_budget(PIECES_PER_BLOCK, targets.device)
        for rows, probs in dense.blocks():
            first, last = torch.searchsorted(
                self.neighbours, torch.tensor([rows.start, rows.stop], device=targets.device)
            ).tolist()
            entities = self.entities[first:last]
            for part in chunks(num_groups[entities].sum(1), limit):
                triples = slice(first + part.start, first + part.stop)
                self._add(total, probs, rows.start, triples, targets, num_groups, factors)
        return total.view(targets.shape)

    def _add(
        self,
        total: Tensor,
        probs: Tensor,
        first_row: int,
        triples: slice,
        targets: Tensor,
        num_groups: Tensor,
        factors: Factors,
    ) -> None:
        """Add the evidence of some r(e, n) to the log doubt of each candidate of e."""
        entities, num_slots = self.entities[triples], targets.shape[1]
        candidates = targets[entities].flatten()
        index, group = expand_ranges(self.groups.starts[candidates], num_groups[entities].flatten())
        triple = index // num_slots
        relations = self.relations[triples].index_select(0, triple)
        by_source, by_target = factors(relations, self.group_relations[group])
        heard = ((by_source > 0) | (by_target > 0)).nonzero().squeeze(1)
        index, group, triple = index[heard], group[heard], triple[heard]
        by_source, by_target = by_source[heard], by_target[heard]
        places = entities[triple] * num_slots + index % num_slots
        row_starts = (self.neighbours[triples][triple] - first_row) * probs.shape[1]
        sizes, flat = self.group_sizes[group], probs.view(-1)
        for part in chunks(sizes, block_budget(PIECES_PER_BLOCK, targets.device)):
            row, member = expand_ranges(self.groups.member_starts[group[part]], sizes[part])
            counterparts = self.groups.members.index_select(0, member)
            prob = flat.index_select(0, row_starts[part].index_select(0, row) + counterparts)
            log = log_remaining(
                by_source[part].index_select(0, row) * prob,
                by_target[part].index_select(0, row) * prob,
            )
            total.index_add_(0, places[part].index_select(0, row), log)
