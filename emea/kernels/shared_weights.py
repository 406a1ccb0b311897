"""The weight of the relations of an entity that have a counterpart at another entity."""

import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels.edge_join import LOOKUPS_PER_BLOCK
from emea.kernels.flat_groups import chunks, expand_ranges
from emea.kernels.numba_calls import arrays, evidence_loops
from emea.kernels.relation_lists import Counterparts, EntityRelations, Pairs
from emea.runtime.block_memory import block_budget, in_smaller_blocks
from emea.runtime.threads import in_ranges

OPERATIONS_PER_RELATION = 16
"""Approximate operations of torch for each relation of a pair's target entity."""

MOST_CELLS = 2**26
"""Pairs of relations up to which a GPU reads their inclusions from a table (256 MB)."""


def torch_shared_weights(
    here: EntityRelations,
    there: EntityRelations,
    counterparts: Counterparts,
    pairs: Pairs,
) -> Tensor:
    """Return the same as `shared_weights`, by look-ups in a sorted list of offers."""
    keys, values = _offers(here, there, counterparts, pairs[1])
    return _found(here, keys, values, pairs)


def shared_weights(
    here: EntityRelations,
    there: EntityRelations,
    counterparts: Counterparts,
    pairs: Pairs,
) -> Tensor:
    """Return the weight of this side's relations that the other entity of each pair has.

    For a pair (e, e'), it is ``sum over r of e: w(r) max over r' of e': i(r, r')``.

    Args:
        here: The relations of this side's entities.
        there: The relations of the other side's entities.
        counterparts: Relations of both sides that correspond, with i.
        pairs: Entities of each pair, this side first.
    """
    relations_per_entity = len(there.relations) / max(1, there.num_entities)
    num_relations = round(len(pairs[0]) * relations_per_entity)
    if choice.uses_numba(here.weights, OPERATIONS_PER_RELATION * num_relations):
        return _numba_shared_weights(here, there, counterparts, pairs)
    num_cells = here.num_directed * there.num_directed
    if choice.uses_triton(here.weights) and num_cells <= MOST_CELLS:
        from emea.kernels import triton_relations  # torch may come without Triton

        return triton_relations.shared_weights(here, there, counterparts, pairs)
    return torch_shared_weights(here, there, counterparts, pairs)


def _offers(
    here: EntityRelations,
    there: EntityRelations,
    counterparts: Counterparts,
    wanted: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return keys ``e' * num_here + r``, ascending, and the largest inclusion of r at e'.

    Args:
        here: The relations r of this side.
        there: The relations of the other side's entities.
        counterparts: Relations of both sides that correspond.
        wanted: The entities e', in any order.
    """
    # the relations of the wanted entities
    is_wanted = torch.zeros(there.num_entities, dtype=torch.bool, device=wanted.device)
    is_wanted[wanted] = True
    kept = is_wanted[there.entities]
    entities = there.entities[kept]
    having = there.relations[kept]
    # each of them offers its counterparts
    starts, partners, worth = counterparts.by_other_side(there.num_directed)
    index, position = expand_ranges(starts[having], torch.diff(starts)[having])
    offered = entities[index] * here.num_directed + partners[position]
    # of several offers of the same relation, the best one counts
    keys, place = torch.unique(offered, return_inverse=True)
    values = worth.new_zeros(len(keys))
    values.scatter_reduce_(0, place, worth[position], "amax")
    return keys, values


@in_smaller_blocks
def _found(here: EntityRelations, keys: Tensor, values: Tensor, pairs: Pairs) -> Tensor:
    """Return the weight of this side's relations that are among the offers of each pair."""
    found = values.new_zeros(len(pairs[0]))
    if not len(keys):
        return found
    sizes = torch.diff(here.starts)[pairs[0]]
    limit = block_budget(LOOKUPS_PER_BLOCK, keys.device)
    for some in chunks(sizes, limit):
        index, position = expand_ranges(here.starts[pairs[0][some]], sizes[some])
        relation = here.relations[position]
        wanted = pairs[1][some][index] * here.num_directed + relation
        place = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
        offered = values[place] * here.weights[relation]
        worth = torch.where(keys[place] == wanted, offered, 0.0)
        found[some].index_add_(0, index, worth)
    return found


def _numba_shared_weights(
    here: EntityRelations,
    there: EntityRelations,
    counterparts: Counterparts,
    pairs: Pairs,
) -> Tensor:
    """Return the same bits by a compiled loop over pairs, ordered by the other entity."""
    found = torch.empty(len(pairs[0]))
    order = torch.argsort(pairs[1], stable=True)
    in_ranges(
        evidence_loops().shared_weights,
        len(order),
        *arrays(order),
        arrays(*pairs),
        arrays(here.starts, here.relations, here.weights),
        arrays(there.starts, there.relations),
        arrays(*counterparts.by_other_side(there.num_directed)),
        *arrays(found),
    )
    return found
