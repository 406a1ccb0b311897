"""The join of each pair's neighbours, which lists the evidence for each candidate."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.matching.compiled import arrays
from emea.matching.pair_table import expand_ranges
from emea.rules.directed_triples import DirectedTriples
from emea.runtime import kernels
from emea.runtime.block_memory import block_budget, in_smaller_blocks
from emea.runtime.threads import in_ranges

LOOKUPS_PER_BLOCK = {"cpu": 2**22, "cuda": 2**25}
"""Look-ups at a time, per kind of device; this bounds the memory."""


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
    given = (source, target, (beliefs, neighbours), skip_impossible, filled)
    per_pair = beliefs.num_candidates * neighbours.num_candidates
    if kernels.uses_numba(beliefs.targets, len(source.pair_heads) * per_pair):
        pairs, slot, neighbour_slot, found = _compiled_matches(*given)
    else:
        size = max(1, block_budget(LOOKUPS_PER_BLOCK, beliefs.targets.device) // per_pair)
        starts = range(0, max(1, len(source.pair_heads)), size)
        blocks = [_matches_in_block(*given, slice(start, start + size)) for start in starts]
        pairs, slot, neighbour_slot, found = map(torch.cat, zip(*blocks, strict=True))
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


def _compiled_matches(
    source: DirectedTriples,
    target: DirectedTriples,
    beliefs: tuple[Beliefs, Beliefs],
    skip_impossible: bool,
    filled: Tensor | None,
) -> tuple[Tensor, ...]:
    """Return the same as ``_matches_in_block`` for all pairs, from compiled loops.

    The loops need neither sorting nor large intermediate tensors.
    """
    if filled is None:
        filled = torch.ones_like(beliefs[0].targets, dtype=torch.bool)
    carries = beliefs[1].probs > 0
    if not skip_impossible:
        carries = torch.ones_like(carries)
    from emea.rules import compiled_loops  # numba takes half a second to import

    given = (
        arrays(source.pair_heads, source.pair_tails),
        *arrays(beliefs[0].targets, filled, beliefs[1].targets, carries),
        arrays(*target.edges.as_lists()),
    )
    found_rows = in_ranges(compiled_loops.joined, len(source.pair_heads), *given)
    rows = [torch.from_numpy(rows[:number]) for rows, number in found_rows]
    return tuple(torch.cat(rows).view(-1, 4).T.contiguous())


def _matches_in_block(
    source: DirectedTriples,
    target: DirectedTriples,
    beliefs: tuple[Beliefs, Beliefs],
    skip_impossible: bool,
    filled: Tensor | None,
    pairs: slice,
) -> tuple[Tensor, ...]:
    """Return the candidates of some neighbouring pairs that an edge of the target graph joins.

    Returns:
        Number of the source pair, slot, neighbour's slot, and number of the edge.
    """
    entity, neighbour = source.pair_heads[pairs], source.pair_tails[pairs]
    heads, tails = beliefs[0].targets[entity], beliefs[1].targets[neighbour]
    edges = target.edges
    possible = edges.may_join(heads, tails)
    if skip_impossible:
        possible &= (beliefs[1].probs[neighbour] > 0).unsqueeze(1)
    if filled is not None:
        possible &= filled[entity].unsqueeze(2)
    row, slot, neighbour_slot = possible.nonzero(as_tuple=True)
    keys = heads[row, slot] * edges.num_entities + tails[row, neighbour_slot]
    found = edges.find(keys)
    hit = (found >= 0).nonzero().squeeze(1)
    return row[hit] + pairs.start, slot[hit], neighbour_slot[hit], found[hit]


def relation_products(
    source: DirectedTriples, target: DirectedTriples, pairs: Tensor, target_pairs: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return every relation of a source pair with every relation of its target pair."""
    num_target = target.pair_sizes[target_pairs]
    counts = source.pair_sizes[pairs] * num_target
    index, offset = expand_ranges(torch.zeros_like(counts), counts)
    width = num_target[index]
    relation = source.relations[source.pair_starts[pairs][index] + offset // width]
    target_relation = target.relations[target.pair_starts[target_pairs][index] + offset % width]
    return index, relation, target_relation
