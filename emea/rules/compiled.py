"""Compiled loops for the evidence of pairs on a CPU.

The loops give the same results as torch's operations, bit for bit, without sorting and without
large intermediate tensors. They are used if numba is installed.
"""

from typing import Any

import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.matching.compiled import arrays, group_order
from emea.rules.directed_triples import DirectedTriples
from emea.runtime.threads import in_threads, thread_ranges


def join_rows(
    source: DirectedTriples,
    beliefs: tuple[Beliefs, Beliefs],
    carries: Tensor,
    filled: Tensor,
    edges: tuple[Tensor, ...],
) -> Tensor:
    """Return source pair, slot, neighbour slot and target edge of each joined pair, ``[4, n]``.

    Args:
        source: The source graph.
        beliefs: Candidates of the entities and of their neighbours.
        carries: Which candidates of the neighbours carry evidence.
        filled: Which slots of the entities contain a candidate.
        edges: Starts, tails, signatures and bits of the target graph's edges.
    """
    given = (
        arrays(source.pair_heads, source.pair_tails),
        *arrays(beliefs[0].targets, filled, beliefs[1].targets, carries),
        arrays(*edges),
    )
    parts = thread_ranges(len(source.pair_heads))
    found = in_threads(_loops().joined, [(*part, *given) for part in parts])
    rows = torch.cat([torch.from_numpy(rows[:number]) for rows, number in found])
    return rows.view(-1, 4).T.contiguous()


def shared_weights(
    pair: tuple[Tensor, Tensor],
    here: tuple[Tensor, Tensor, Tensor],
    there: tuple[Tensor, Tensor],
    partners: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    """Return the weight of this side's relations that the other entity of each pair has.

    Args:
        pair: Entities of each pair, this side first.
        here: Start of each entity's relations, the relations and the weight of each relation.
        there: Start of each entity's relations, and the relations, of the other side.
        partners: Start of each of the other side's relations in the list of its counterparts,
            the counterparts and their inclusions.
    """
    found = torch.empty(len(pair[0]))
    order = group_order(pair[1], len(there[0]) - 1)
    parts = (arrays(*part) for part in (pair, here, there, partners))
    given = (*arrays(order), *parts, *arrays(found))
    ranges = thread_ranges(len(order))
    in_threads(_loops().shared_weights, [(*part, *given) for part in ranges])
    return found


def _loops() -> Any:
    from emea.rules import compiled_loops  # numba takes half a second to import

    return compiled_loops
