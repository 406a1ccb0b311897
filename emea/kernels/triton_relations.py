"""Triton kernel that compares the relations of entities, with its launcher.

The module can only be imported if Triton is installed.
"""

import triton
import triton.language as tl
from torch import Tensor

from emea.kernels.relation_lists import Counterparts, EntityRelations, Pairs

RELATIONS_AT_A_TIME = 16
"""Relations of an entity that a program reads at a time."""


@triton.jit
def shared_weights_kernel(
    found,
    entities,
    others,
    starts,
    relations,
    weights,
    other_starts,
    other_relations,
    inclusions,
    num_other_relations,
    RELATIONS: tl.constexpr,
):
    """Sum the weights of an entity's relations by their best inclusion; one program per pair.

    Args:
        found: Sum of each pair, which is written.
        entities: Entity of each pair.
        others: Entity of the other side of each pair.
        starts: Start of each entity's relations.
        relations: Relations, by entity.
        weights: Weight of each relation.
        other_starts: Start of the relations of each entity of the other side.
        other_relations: These relations.
        inclusions: Inclusion of each relation and each one of the other side, row by row.
        num_other_relations: Length of a row.
        RELATIONS: Relations of an entity that are read at a time.
    """
    pair = tl.program_id(0)
    entity = tl.load(entities + pair)
    other = tl.load(others + pair)
    first = tl.load(starts + entity)
    last = tl.load(starts + entity + 1)
    other_first = tl.load(other_starts + other)
    other_last = tl.load(other_starts + other + 1)
    total = 0.0
    for start in range(first, last, RELATIONS):
        place = start + tl.arange(0, RELATIONS)
        inside = place < last
        relation = tl.load(relations + place, mask=inside, other=0)
        most = tl.zeros((RELATIONS,), dtype=tl.float32)
        for other_start in range(other_first, other_last, RELATIONS):
            other_place = other_start + tl.arange(0, RELATIONS)
            is_other = other_place < other_last
            partner = tl.load(other_relations + other_place, mask=is_other, other=0)
            cell = relation[:, None] * num_other_relations + partner[None, :]
            both = inside[:, None] & is_other[None, :]
            inclusion = tl.load(inclusions + cell, mask=both, other=0.0)
            most = tl.maximum(most, tl.max(inclusion, axis=1))
        weight = tl.load(weights + relation, mask=inside, other=0.0)
        total += tl.sum(weight * most, axis=0)
    tl.store(found + pair, total)


def shared_weights(
    here: EntityRelations,
    there: EntityRelations,
    counterparts: Counterparts,
    pairs: Pairs,
) -> Tensor:
    """Return the same as ``shared_weights.shared_weights``, from a table of all inclusions."""
    found = here.weights.new_empty(len(pairs[0]))
    table = here.weights.new_zeros(here.num_directed * there.num_directed)
    cells = counterparts.here * there.num_directed + counterparts.there
    table[cells] = counterparts.inclusions
    entities, others = (ends.contiguous() for ends in pairs)
    if len(found):
        shared_weights_kernel[(len(found),)](
            found,
            entities,
            others,
            here.starts,
            here.relations,
            here.weights,
            there.starts,
            there.relations,
            table,
            there.num_directed,
            RELATIONS=RELATIONS_AT_A_TIME,
            num_warps=1,
        )
    return found
