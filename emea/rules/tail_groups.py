"""A graph's triples by the entity they end in, then by relation."""

import torch
from torch import Tensor

from emea.rules.directed_triples import DirectedTriples


class TailGroups:
    """For each entity n the groups of entities x with r(x, n), one group a directed relation r.

    A match of n says the same of all members of a group, so that is worked out once a group,
    however many members a hub has.

    Args:
        triples: the graph in both directions.

    Attributes:
        starts: ``[num_entities + 1]`` where each entity's groups start.
        owners: ``[num_groups]`` n of each group, ascending.
        relations: ``[num_groups]`` r of each group.
        member_starts: ``[num_groups + 1]`` where each group's members start.
        members: ``[num_triples]`` x of each triple, by group.
        heads: ``[num_triples]`` x of each triple, ascending.
        group_of_head: ``[num_triples]`` the group in which the triples of ``heads`` are.
    """

    def __init__(self, triples: DirectedTriples) -> None:
        self.heads = torch.repeat_interleave(triples.pair_heads, triples.pair_sizes)
        tails = torch.repeat_interleave(triples.pair_tails, triples.pair_sizes)
        keys, order = torch.sort(tails * triples.num_directed + triples.relations, stable=True)
        groups, sizes = torch.unique_consecutive(keys, return_counts=True)
        self.owners: Tensor = groups // triples.num_directed
        self.relations: Tensor = groups % triples.num_directed
        self.starts = run_ends(torch.bincount(self.owners, minlength=triples.num_entities))
        self.member_starts = run_ends(sizes)
        self.members = self.heads[order]
        self.group_of_head = torch.empty_like(order)
        self.group_of_head[order] = torch.repeat_interleave(sizes)

    @property
    def num_members(self) -> Tensor:
        """``[num_groups]`` members of each group."""
        return torch.diff(self.member_starts)


def run_ends(sizes: Tensor) -> Tensor:
    """``[n + 1]`` where runs of these sizes start, and where the last one ends."""
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
