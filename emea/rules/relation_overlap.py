"""The overlap of two entities' relations, which does not depend on matched neighbours."""

import torch
from torch import Tensor

from emea.kernels.flat_groups import group_starts
from emea.kernels.relation_lists import Counterparts, EntityRelations
from emea.kernels.shared_weights import shared_weights
from emea.matching.pair_table import PairTable
from emea.rules.directed_triples import DirectedTriples
from emea.rules.subsumption import Subsumption

LEAST_INCLUSION = 0.1
"""Relations with a smaller inclusion do not count as counterparts."""

PRIOR = 0.5
"""Added to the weight of the shared and of the expected relations, so that the share is defined."""


def entity_relations(triples: DirectedTriples) -> EntityRelations:
    """Return the distinct directed relations of each entity, with a weight for each relation.

    A relation has the weight ``-log(share of the entities that have it)``: few entities share a
    rare relation.

    Args:
        triples: A graph in both directions.
    """
    heads = triples.pair_heads[triples.pair_of_triple]
    keys = torch.unique(heads * triples.num_directed + triples.relations)
    entities: Tensor = keys // triples.num_directed
    relations: Tensor = keys % triples.num_directed
    num_having = torch.bincount(relations, minlength=triples.num_directed)
    share = num_having.clamp(min=1) / max(1, triples.num_entities)
    return EntityRelations(
        starts=group_starts(entities, triples.num_entities),
        entities=entities,
        relations=relations,
        weights=-torch.log(share),
    )


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
        self.source = entity_relations(source)
        self.target = entity_relations(target)

    def __call__(self, table: PairTable, included: Subsumption) -> Tensor:
        """Return ``[num_source, width]`` the overlap of each pair; 0 in empty slots."""
        places = table.slots.by_source.places
        shape = table.targets.shape
        targets = table.targets.flatten()[places]
        found = self.of_pairs(places // shape[1], targets, included)
        overlap = found.new_zeros(shape.numel()).index_copy_(0, places, found)
        return overlap.view(shape)

    def of_pairs(
        self, sources: Tensor, targets: Tensor, included: Subsumption
    ) -> Tensor:
        """Return the overlap of each of these pairs, ``[num_pairs]``."""
        likelier = torch.maximum(included.source_in_target, included.target_in_source)
        known = (likelier >= LEAST_INCLUSION).nonzero().squeeze(1)
        keys = included.keys[known]
        of_source = Counterparts(
            here=keys // included.num_target_relations,
            there=keys % included.num_target_relations,
            inclusions=likelier[known],
        )
        from_source = _share(self.source, self.target, of_source, (sources, targets))
        from_target = _share(
            self.target, self.source, of_source.reversed(), (targets, sources)
        )
        return (from_source * from_target).sqrt()


def _share(
    here: EntityRelations,
    there: EntityRelations,
    counterparts: Counterparts,
    pair: tuple[Tensor, Tensor],
) -> Tensor:
    """Return the share of one side's relations that the other entity of each pair has.

    Args:
        here: The relations of this side's entities.
        there: The relations of the other side's entities.
        counterparts: Relations of both sides that correspond.
        pair: Entities of each pair, this side first.
    """
    # what each relation of an entity could contribute: its weight times its best inclusion
    best = counterparts.inclusions.new_zeros(here.num_directed)
    best.scatter_reduce_(0, counterparts.here, counterparts.inclusions, "amax")
    worth = (here.weights * best)[here.relations]
    expected = worth.new_zeros(here.num_entities).index_add_(0, here.entities, worth)
    expected = expected[pair[0]]
    # and what it does contribute, given the relations of the other entity
    found = shared_weights(here, there, counterparts, pair)
    return ((found + PRIOR) / (expected + PRIOR)).clamp(max=1)
