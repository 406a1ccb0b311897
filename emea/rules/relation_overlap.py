"""The overlap of two entities' relations, which does not depend on matched neighbours."""

import torch
from torch import Tensor

from emea.matching.compiled import arrays
from emea.matching.pair_table import PairTable, chunks, expand_ranges, group_starts
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import LOOKUPS_PER_BLOCK
from emea.rules.subsumption import Subsumption
from emea.runtime import kernels
from emea.runtime.block_memory import block_budget, in_smaller_blocks
from emea.runtime.threads import in_ranges

LEAST_INCLUSION = 0.1
"""Relations with a smaller inclusion do not count as counterparts."""

OPERATIONS_PER_RELATION = 16
"""Approximate operations of torch for each relation of a pair's target entity."""

PRIOR = 0.5
"""Added to the weight of the shared and of the expected relations, so that the share is defined."""


class EntityRelations:
    """Lists the distinct directed relations of each entity, with a weight for each relation.

    A relation has the weight ``-log(share of the entities that have it)``: few entities share a
    rare relation.

    Args:
        triples: A graph in both directions.

    Attributes:
        starts: ``[num_entities + 1]`` start of each entity's relations.
        entities: ``[n]`` the entities, ascending.
        relations: ``[n]`` their relations.
        weights: ``[num_directed]`` weight of each relation.
    """

    def __init__(self, triples: DirectedTriples) -> None:
        heads = triples.pair_heads[triples.pair_of_triple]
        keys = torch.unique(heads * triples.num_directed + triples.relations)
        self.num_directed = triples.num_directed
        self.entities: Tensor = keys // triples.num_directed
        self.relations: Tensor = keys % triples.num_directed
        self.starts = group_starts(self.entities, triples.num_entities)
        having = torch.bincount(self.relations, minlength=triples.num_directed).clamp(min=1)
        self.weights = -torch.log(having / max(1, triples.num_entities))


class RelationOverlap:
    """Computes which share of two entities' relations have a counterpart at the other entity.

    From the source side the share of (e, e') is ``(a + sum over r of e: w(r) max over r' of e':
    i(r, r')) / (a + sum over r of e: w(r) max over all r': i(r, r'))`` with the inclusion i and a
    constant a. The overlap is the geometric mean of both sides. Entities whose neighbours are
    unmatched have relations, too, so that this is informative when there are few labels.

    Args:
        source: The source graph.
        target: The target graph.
    """

    def __init__(self, source: DirectedTriples, target: DirectedTriples) -> None:
        self.source = EntityRelations(source)
        self.target = EntityRelations(target)

    def __call__(self, table: PairTable, included: Subsumption) -> Tensor:
        """Return ``[num_source, width]`` the overlap of each pair; 0 in empty slots."""
        rows, slots = table.filled.nonzero(as_tuple=True)
        found = self.of_pairs(rows, table.targets[rows, slots], included)
        overlap = torch.zeros(table.targets.shape, dtype=found.dtype, device=rows.device)
        overlap[rows, slots] = found
        return overlap

    def of_pairs(self, sources: Tensor, targets: Tensor, included: Subsumption) -> Tensor:
        """Return the overlap of each of these pairs, ``[num_pairs]``."""
        likelier = torch.maximum(included.source_in_target, included.target_in_source)
        known = likelier >= LEAST_INCLUSION
        likelier, keys = likelier[known], included.keys[known]
        forth = keys // included.num_target_relations, keys % included.num_target_relations
        ends = sources, targets
        shares = [
            _share(here, there, relations, likelier, pair)
            for here, there, relations, pair in (
                (self.source, self.target, forth, ends),
                (self.target, self.source, forth[::-1], ends[::-1]),
            )
        ]
        return (shares[0] * shares[1]).sqrt()


def _share(
    here: EntityRelations,
    there: EntityRelations,
    relations: tuple[Tensor, Tensor],
    likelier: Tensor,
    pair: tuple[Tensor, Tensor],
) -> Tensor:
    """Return the share of one side's relations that the other entity of each pair has.

    Args:
        here: The relations of this side's entities.
        there: The relations of the other side's entities.
        relations: Relations of both sides that correspond, this side first.
        likelier: Inclusion of each correspondence.
        pair: Entities of each pair, this side first.
    """
    best = likelier.new_zeros(here.num_directed)
    best.scatter_reduce_(0, relations[0], likelier, "amax")
    worth = (here.weights * best)[here.relations]
    expected = worth.new_zeros(len(here.starts) - 1).index_add_(0, here.entities, worth)[pair[0]]
    relations_per_entity = len(there.relations) / max(1, len(there.starts) - 1)
    num_relations = round(len(expected) * relations_per_entity)
    if kernels.uses_numba(expected, OPERATIONS_PER_RELATION * num_relations):
        from emea.rules import compiled_loops  # numba takes half a second to import

        found = torch.empty(len(pair[0]))
        order = torch.argsort(pair[1], stable=True)
        given = (
            *arrays(order),
            arrays(*pair),
            arrays(here.starts, here.relations, here.weights),
            arrays(there.starts, there.relations),
            arrays(*_partners(relations, likelier, there.num_directed)),
            *arrays(found),
        )
        in_ranges(compiled_loops.shared_weights, len(order), *given)  # the bits of _found
    else:
        keys, values = _offers(there, pair[1], here.num_directed, relations, likelier)
        found = _found(here, keys, values, pair)
    return ((found + PRIOR) / (expected + PRIOR)).clamp(max=1)


def _partners(
    relations: tuple[Tensor, Tensor], likelier: Tensor, num_there: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the counterparts of the other side's relations: starts, relations, inclusions."""
    order = torch.argsort(relations[1], stable=True)
    starts = group_starts(relations[1], num_there)
    return starts, relations[0][order], likelier[order]


def _offers(
    there: EntityRelations,
    wanted: Tensor,
    num_here: int,
    relations: tuple[Tensor, Tensor],
    likelier: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return keys ``e' * num_here + r``, ascending, and the largest inclusion of r at e'.

    Args:
        there: The relations of the other side's entities.
        wanted: The entities e', in any order.
        num_here: Number of relations of this side.
        relations: Relations of both sides that correspond, this side first.
        likelier: Inclusion of each correspondence.
    """
    is_wanted = torch.zeros(len(there.starts) - 1, dtype=torch.bool, device=wanted.device)
    is_wanted[wanted] = True
    kept = is_wanted[there.entities]
    entities, having = there.entities[kept], there.relations[kept]
    starts, partners, worth = _partners(relations, likelier, there.num_directed)
    index, position = expand_ranges(starts[having], torch.diff(starts)[having])
    keys, place = torch.unique(entities[index] * num_here + partners[position], return_inverse=True)
    values = worth.new_zeros(len(keys)).scatter_reduce_(0, place, worth[position], "amax")
    return keys, values


@in_smaller_blocks
def _found(
    here: EntityRelations, keys: Tensor, values: Tensor, pair: tuple[Tensor, Tensor]
) -> Tensor:
    """Return the weight of this side's relations that the other entity of each pair has."""
    found = values.new_zeros(len(pair[0]))
    if not len(keys):
        return found
    sizes = torch.diff(here.starts)[pair[0]]
    limit = block_budget(LOOKUPS_PER_BLOCK, keys.device)
    for pairs in chunks(sizes, limit):
        index, position = expand_ranges(here.starts[pair[0][pairs]], sizes[pairs])
        relation = here.relations[position]
        wanted = pair[1][pairs][index] * here.num_directed + relation
        place = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
        worth = torch.where(keys[place] == wanted, values[place] * here.weights[relation], 0.0)
        found[pairs].index_add_(0, index, worth)
    return found
