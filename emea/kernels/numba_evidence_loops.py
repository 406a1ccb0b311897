"""Compiled CPU loops over candidate pairs; they give the same bits as torch's operations."""

import numba
import numpy as np

compiled = numba.njit(nogil=True, cache=True, boundscheck=False)


@compiled
def shared_weights(start, stop, order, pair, here, there, partners, out):
    """Write the weight of this side's relations that the other entity of some pairs has.

    Args:
        start: First place in the order.
        stop: Last place in the order + 1.
        order: Numbers of the pairs, grouped by the other entity.
        pair: Entities of each pair, this side first.
        here: Start of each entity's relations, the relations and the weight of each relation.
        there: The same without weights for the other side.
        partners: Start of each relation of the other side in the list of its counterparts, the
            counterparts and their inclusions.
        out: The weight of each pair.
    """
    own, others = pair
    starts, relations, weights = here
    their_starts, their_relations = there
    partner_starts, partner, inclusions = partners
    best = np.zeros(len(weights), np.float32)
    last = -1
    for position in range(start, stop):
        place = order[position]
        if others[place] != last:
            if last >= 0:
                for k in range(their_starts[last], their_starts[last + 1]):
                    relation = their_relations[k]
                    for m in range(
                        partner_starts[relation], partner_starts[relation + 1]
                    ):
                        best[partner[m]] = 0
            last = others[place]
            for k in range(their_starts[last], their_starts[last + 1]):
                relation = their_relations[k]
                for m in range(partner_starts[relation], partner_starts[relation + 1]):
                    best[partner[m]] = max(best[partner[m]], inclusions[m])
        total = np.float32(0)
        for k in range(starts[own[place]], starts[own[place] + 1]):
            total += best[relations[k]] * weights[relations[k]]
        out[place] = total


@compiled
def _edge(starts, tails, head, tail):
    """Return the number of an edge, -1 if there is none; tails of a head are ascending."""
    low, high = starts[head], starts[head + 1]
    while low < high:
        middle = (low + high) // 2
        if tails[middle] < tail:
            low = middle + 1
        else:
            high = middle
    return low if low < starts[head + 1] and tails[low] == tail else -1


@compiled
def joined(start, stop, pairs, candidates, filled, carriers, carries, edges):
    """Return source pair, slot, neighbour slot and edge of candidates that an edge joins.

    The four numbers of each row follow each other. Slices would take ten seconds to compile.

    Args:
        start: First source pair.
        stop: Last source pair + 1.
        pairs: Heads and tails of the source pairs.
        candidates: ``[num_source, k]`` candidates of the heads.
        filled: ``[num_source, k]`` whether a slot contains a candidate.
        carriers: ``[num_source, l]`` candidates of the tails.
        carries: ``[num_source, l]`` whether a candidate carries evidence.
        edges: Start of each target entity's edges, their tails, 64 bits per entity of which each
            neighbour sets one, and the bit of each entity.
    """
    heads, tails = pairs
    starts, ends, signatures, bits = edges
    rows = np.empty(8 * (stop - start) + 4, np.int64)
    number = 0
    for pair in range(start, stop):
        entity, neighbour = heads[pair], tails[pair]
        for slot in range(candidates.shape[1]):
            if not filled[entity, slot]:
                continue
            head = candidates[entity, slot]
            seen = signatures[head]
            for other in range(carriers.shape[1]):
                tail = carriers[neighbour, other]
                if not carries[neighbour, other] or not (seen >> bits[tail]) & 1:
                    continue
                edge = _edge(starts, ends, head, tail)
                if edge < 0:
                    continue
                if number == len(rows):
                    more = np.empty(2 * number, np.int64)
                    for place in range(number):
                        more[place] = rows[place]
                    rows = more
                rows[number] = pair
                rows[number + 1] = slot
                rows[number + 2] = other
                rows[number + 3] = edge
                number += 4
    return rows, number
