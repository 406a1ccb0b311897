"""The join of each pair's neighbours, which lists the evidence for each candidate."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.kernels.edge_join import Candidates, joined_candidates
from emea.kernels.flat_groups import expand_ranges
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.runtime.block_memory import in_smaller_blocks


@dataclass(frozen=True, eq=False)
class NeighbourJoin:
    """Holds one row per r(e, n) and r'(e', n') with e' a candidate of e and n' a candidate of n.

    Args:
        entity: The source entity e.
        slot: The slot of e' among e's candidates.
        neighbour: The source entity n.
        neighbour_slot: The slot of n' among n's candidates.
        relation: Directed r of the source graph.
        target_relation: Directed r' of the target graph.
        target_pair: Number of the pair (e', n') in the target graph.
    """

    entity: Tensor
    slot: Tensor
    neighbour: Tensor
    neighbour_slot: Tensor
    relation: Tensor
    target_relation: Tensor
    target_pair: Tensor

    def __len__(self) -> int:
        return len(self.entity)


@in_smaller_blocks
def join_neighbours(
    source: DirectedTriples,
    target: DirectedTriples,
    beliefs: Beliefs,
    *,
    skip_impossible: bool = True,
    neighbours: Beliefs | None = None,
    filled: Tensor | None = None,
) -> NeighbourJoin:
    """Join the candidates of neighbouring source entities over the target graph's edges.

    Args:
        source: The source graph.
        target: The target graph.
        beliefs: The candidates.
        skip_impossible: Skip neighbours' candidates with probability 0, which carry no evidence.
        neighbours: Candidates of the neighbours, to which ``neighbour_slot`` then refers. ``None``
            means those of ``beliefs``. With only a few probable candidates the join is much
            smaller.
        filled: ``[num_source, k]`` whether a slot contains a candidate. ``None`` means that all do.
    """
    neighbours = neighbours or beliefs
    given = Candidates(
        heads=source.pair_heads,
        tails=source.pair_tails,
        of_heads=beliefs.targets,
        of_tails=neighbours.targets,
        is_head=filled,
        is_tail=neighbours.probs > 0 if skip_impossible else None,
    )
    pairs, slot, neighbour_slot, found = joined_candidates(given, target.edges)
    index, relation, target_relation = relation_products(source, target, pairs, found)
    pairs = pairs[index]
    return NeighbourJoin(
        source.pair_heads[pairs],
        slot[index],
        source.pair_tails[pairs],
        neighbour_slot[index],
        relation,
        target_relation,
        found[index],
    )


def relation_products(
    source: DirectedTriples,
    target: DirectedTriples,
    pairs: Tensor,
    target_pairs: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return every relation of a source pair with every relation of its target pair."""
    num_target = target.pair_sizes[target_pairs]
    counts = source.pair_sizes[pairs] * num_target
    index, offset = expand_ranges(torch.zeros_like(counts), counts)
    width = num_target[index]
    relation = source.relations[source.pair_starts[pairs][index] + offset // width]
    target_relation = target.relations[
        target.pair_starts[target_pairs][index] + offset % width
    ]
    return index, relation, target_relation
