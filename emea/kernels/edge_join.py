"""The candidates of neighbouring entities that an edge of the other graph joins."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.kernels import choice
from emea.kernels.flat_groups import group_starts
from emea.kernels.numba_calls import arrays, evidence_loops
from emea.runtime.block_memory import block_budget
from emea.runtime.threads import in_ranges

LOOKUPS_PER_BLOCK = {"cpu": 2**22, "cuda": 2**25}
"""Look-ups at a time, per kind of device; this bounds the memory."""

_MIX = -7046029254386353131
"""2^64 / golden ratio, as a signed integer: spreads keys over the bits."""


class Edges:
    """Looks up (head, tail) pairs among a graph's edges.

    Args:
        heads: ``[num_edges]`` head of each edge, ascending.
        tails: ``[num_edges]`` its tail, ascending for each head.
        num_entities: Number of entities of the graph.
    """

    def __init__(self, heads: Tensor, tails: Tensor, num_entities: int) -> None:
        self.num_entities = num_entities
        self.keys = heads * num_entities + tails
        entities = torch.arange(self.num_entities, device=self.keys.device)
        self._bits = ((entities * _MIX) >> 40) & 63
        self._neighbours = self._signatures(heads, tails)
        self._starts = group_starts(heads, num_entities)
        self._tails = tails

    def _signatures(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Return 64 bits per entity, of which each neighbour sets one."""
        seen = torch.zeros(
            self.num_entities * 64, dtype=torch.bool, device=self.keys.device
        )
        seen[heads * 64 + self._bits[tails]] = True
        seen = seen.view(self.num_entities, 64)
        if seen.device.type == "cpu":
            packed = np.packbits(seen.numpy(), axis=1, bitorder="little")
            return torch.from_numpy(packed.view("<i8").astype(np.int64).reshape(-1))
        signatures = torch.zeros_like(self._bits)
        for bit in range(64):
            signatures |= seen[:, bit].long() << bit
        return signatures

    def may_join(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Return whether ``(heads[n, k], tails[n, l])`` may be an edge, ``[n, k, l]``.

        False is always correct. The method reads each head and each tail once; the work for their
        pairs stays in registers.
        """
        bits = self._bits[tails].unsqueeze(1)
        return (self._neighbours[heads].unsqueeze(2) >> bits).bitwise_and_(1).bool()

    def as_lists(self) -> tuple[Tensor, ...]:
        """Return start of each entity's edges, their tails, and the bits of :meth:`may_join`."""
        return self._starts, self._tails, self._neighbours, self._bits

    def find(self, keys: Tensor) -> Tensor:
        """Return the number of each pair among the edges, -1 if it is not an edge."""
        if not len(self.keys):
            return torch.full_like(keys, -1)
        position = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        return torch.where(self.keys[position] == keys, position, -1)


class Candidates(NamedTuple):
    """Neighbouring entities of one graph, and the candidates of both.

    Args:
        heads: ``[num_pairs]`` first entity of each neighbouring pair.
        tails: ``[num_pairs]`` second entity of each pair.
        of_heads: ``[num_source, k]`` candidates of the first entities.
        of_tails: ``[num_source, l]`` candidates of the second entities.
        is_head: ``[num_source, k]`` which candidates of the first entities count; ``None``: all.
        is_tail: ``[num_source, l]`` which candidates of the second entities count; ``None``: all.
    """

    heads: Tensor
    tails: Tensor
    of_heads: Tensor
    of_tails: Tensor
    is_head: Tensor | None
    is_tail: Tensor | None

    @property
    def per_pair(self) -> int:
        """Number of combinations of candidates of one neighbouring pair."""
        return self.of_heads.shape[1] * self.of_tails.shape[1]


class Joined(NamedTuple):
    """Candidates that an edge joins, ordered by pair, slot and neighbour's slot.

    Args:
        pairs: Number of the neighbouring pair.
        slots: Slot of the first entity's candidate.
        neighbour_slots: Slot of the second entity's candidate.
        edges: Number of the edge between both candidates.
    """

    pairs: Tensor
    slots: Tensor
    neighbour_slots: Tensor
    edges: Tensor


def torch_join(given: Candidates, edges: Edges, pairs: slice) -> Joined:
    """Return the candidates of some neighbouring pairs that an edge joins."""
    entity = given.heads[pairs]
    neighbour = given.tails[pairs]
    heads = given.of_heads[entity]
    tails = given.of_tails[neighbour]
    # most combinations are sorted out by one bit, ``[num_pairs, k, l]``
    possible = edges.may_join(heads, tails)
    if given.is_tail is not None:
        possible &= given.is_tail[neighbour].unsqueeze(1)
    if given.is_head is not None:
        possible &= given.is_head[entity].unsqueeze(2)
    row, slot, neighbour_slot = possible.nonzero(as_tuple=True)
    # the others are looked up
    keys = heads[row, slot] * edges.num_entities + tails[row, neighbour_slot]
    found = edges.find(keys)
    hit = (found >= 0).nonzero().squeeze(1)
    return Joined(
        pairs=row[hit] + pairs.start,
        slots=slot[hit],
        neighbour_slots=neighbour_slot[hit],
        edges=found[hit],
    )


def joined_candidates(given: Candidates, edges: Edges) -> Joined:
    """Return the candidates of all neighbouring pairs that an edge of the other graph joins."""
    num_pairs = len(given.heads)
    if choice.uses_numba(given.of_heads, num_pairs * given.per_pair):
        return _numba_join(given, edges)
    budget = block_budget(LOOKUPS_PER_BLOCK, given.of_heads.device)
    size = max(1, budget // given.per_pair)
    starts = range(0, max(1, num_pairs), size)
    blocks = [torch_join(given, edges, slice(start, start + size)) for start in starts]
    return Joined(*map(torch.cat, zip(*blocks, strict=True)))


def _numba_join(given: Candidates, edges: Edges) -> Joined:
    """Return the same by compiled loops, which need neither sorting nor large intermediates."""
    is_head = given.is_head
    is_tail = given.is_tail
    if is_head is None:
        is_head = torch.ones_like(given.of_heads, dtype=torch.bool)
    if is_tail is None:
        is_tail = torch.ones_like(given.of_tails, dtype=torch.bool)
    found = in_ranges(
        evidence_loops().joined,
        len(given.heads),
        arrays(given.heads, given.tails),
        *arrays(given.of_heads, is_head, given.of_tails, is_tail),
        arrays(*edges.as_lists()),
    )
    rows = [torch.from_numpy(rows[:number]) for rows, number in found]
    return Joined(*torch.cat(rows).view(-1, 4).T.contiguous())
