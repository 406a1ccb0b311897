"""The edges of a graph in the orders in which the GPU kernels read them.

``RowChunks`` is for products with any sparse matrix, whose long rows are summed by atomic
additions. ``EdgeOrders`` is for the reflected attention, whose sums have a fixed order.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.sorting import places_in_runs

EDGES_PER_CHUNK = 32
"""Edges of a run or row that one program works on. Longer ones have several chunks."""

LARGE = 2**19
"""Edges of a graph from which on chunks are twice as long: there are enough of them anyway."""

MAX_CHUNK = 64
"""Largest number of edges of a chunk; the kernels mark them by the bits of an integer."""


class Chunks(NamedTuple):
    """Holds runs of edges, cut into chunks of bounded length, so that hubs are read in parallel.

    Chunks of equal length follow each other, because a program reads several side by side. The
    results of a long run's chunks are stored in slots, which are combined in a fixed order.

    Args:
        runs: ``[num_chunks]`` number of each chunk's run.
        starts: ``[num_chunks]`` position of its first edge.
        ends: ``[num_chunks]`` position after its last edge.
        slots: ``[num_chunks]`` slot of its result; negative if it is the only chunk of its run.
        hubs: ``[num_hubs]`` runs of several chunks.
        hub_slots: ``[num_hubs + 1]`` first slot of each of them, and the number of slots.
        num_slots: The number of slots.
    """

    runs: Tensor
    starts: Tensor
    ends: Tensor
    slots: Tensor
    hubs: Tensor
    hub_slots: Tensor
    num_slots: int


class EdgeOrders(NamedTuple):
    """Holds the edges (i <- j, relation set s) by entity i, by neighbour j, and by set s.

    Equal neighbours and sets follow each other where possible, so that their rows stay in a cache.

    Args:
        rows: Chunks of the edges of each entity, in the order of the pattern.
        neighbours: ``[num_edges]`` neighbour of each edge.
        sets: ``[num_edges]`` relation set of each edge.
        columns: Chunks of the edges of each neighbour.
        by_column: ``[3, num_edges]`` edge, entity and set, sorted by neighbour and set.
        groups: Chunks of the edges of each set.
        by_set: ``[5, num_edges]`` edge, neighbour and entity, sorted by set and neighbour; then
            edge and entity, sorted by set and entity.
    """

    rows: Chunks
    neighbours: Tensor
    sets: Tensor
    columns: Chunks
    by_column: Tensor
    groups: Chunks
    by_set: Tensor


def edge_orders(
    rows: Tensor, neighbours: Tensor, sets: Tensor, sizes: tuple[int, int]
) -> EdgeOrders:
    """Return the orders of a joint graph's edges.

    Args:
        rows: ``[num_edges]`` entity of each edge, ascending.
        neighbours: ``[num_edges]`` neighbour of each edge.
        sets: ``[num_edges]`` relation set of each edge.
        sizes: Numbers of entities and relation sets.
    """
    num_entities, num_sets = sizes
    row = rows.long()
    neighbour = neighbours.long()
    chosen = sets.long()
    by_column = torch.argsort(neighbour * num_sets + chosen, stable=True)
    by_neighbour = torch.argsort(chosen * num_entities + neighbour, stable=True)
    by_entity = torch.argsort(chosen, stable=True)
    of_set = [by_neighbour, neighbour[by_neighbour], row[by_neighbour]]
    of_set += [by_entity, row[by_entity]]
    return EdgeOrders(
        rows=chunks(row, num_entities),
        neighbours=neighbours,
        sets=sets,
        columns=chunks(neighbour, num_entities),
        by_column=torch.stack([by_column, row[by_column], chosen[by_column]]).int(),
        groups=chunks(chosen, num_sets),
        by_set=torch.stack(of_set).int(),
    )


def chunks(ids: Tensor, num_runs: int) -> Chunks:
    """Return the chunks of the runs of equal ids, in the order of the ids.

    Args:
        ids: ``[num_edges]`` ids in any order; only their numbers matter.
        num_runs: Number of ids. An id without edges has an empty chunk.
    """
    lengths = torch.bincount(ids, minlength=num_runs)
    size = min(MAX_CHUNK, EDGES_PER_CHUNK if len(ids) < LARGE else 2 * EDGES_PER_CHUNK)
    counts = (-(-lengths // size)).clamp(min=1)
    runs = torch.repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    places = torch.arange(len(runs), device=ids.device) - before[runs]
    run_ends = lengths.cumsum(0)
    starts = (run_ends - lengths)[runs] + places * size
    ends = torch.minimum(starts + size, run_ends[runs])
    is_part = counts[runs] > 1
    slots = torch.where(is_part, is_part.cumsum(0) - 1, -1)
    hubs = (counts > 1).nonzero().squeeze(1)
    hub_slots = torch.nn.functional.pad(counts[hubs].cumsum(0), (1, 0))
    order = torch.argsort(ends - starts, descending=True, stable=True)
    return Chunks(
        runs=runs[order].int(),
        starts=starts[order].int(),
        ends=ends[order].int(),
        slots=slots[order].int(),
        hubs=hubs.int(),
        hub_slots=hub_slots.int(),
        num_slots=int(is_part.sum()),
    )


class RowChunks(NamedTuple):
    """Holds rows cut into chunks of bounded length, so that hubs are processed in parallel."""

    rows: Tensor
    starts: Tensor
    ends: Tensor
    alone: Tensor  # 1 if the row has only this chunk, which can then be stored without a sum
    hubs: Tensor  # rows of several chunks, whose sums start from zero

    def zeroed(self, out: Tensor) -> Tensor:
        """Return ``out`` with zeros in the rows that kernels add to."""
        return out.index_fill_(0, self.hubs, 0.0)


def whole_rows(starts: Tensor, hubs: Tensor) -> RowChunks:
    """Return one chunk per row of any length, so that no row is summed in random order."""
    num_rows = len(starts) - 1
    rows = torch.arange(num_rows, dtype=starts.dtype, device=starts.device)
    return RowChunks(rows, starts[:-1], starts[1:], torch.ones_like(rows), hubs)


def row_chunks(starts: IntArray) -> tuple[IntArray, ...]:
    """Return the fields of ``RowChunks`` for the rows that ``starts`` delimits.

    Every row has at least one chunk.
    """
    lengths = np.diff(starts)
    counts = np.maximum(1, -(-lengths // EDGES_PER_CHUNK))
    rows = np.repeat(np.arange(len(lengths)), counts)
    begins = starts[rows] + places_in_runs(counts) * EDGES_PER_CHUNK
    ends = np.minimum(begins + EDGES_PER_CHUNK, starts[rows + 1])
    alone = (counts[rows] == 1).astype(np.int64)
    return rows, begins, ends, alone, np.flatnonzero(counts > 1)
