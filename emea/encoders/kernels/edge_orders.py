"""The edges of a graph in the orders in which the GPU kernels read them."""

from typing import NamedTuple

import torch
from torch import Tensor

from emea.encoders.kernels.sparse_pattern import SparsePattern

EDGES_PER_CHUNK = 32
"""Edges of a run that one program works on. Longer runs have several chunks."""

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


def edge_orders(edges: SparsePattern, edge_sets: SparsePattern) -> EdgeOrders:
    """Return the orders of a joint graph's edges.

    Args:
        edges: Entities and neighbours of the edges.
        edge_sets: Entities and relation sets of the same edges.
    """
    rows, neighbours, sets = edges.rows.long(), edges.cols.long(), edge_sets.cols.long()
    num_entities, num_sets = edge_sets.shape
    by_column = torch.argsort(neighbours * num_sets + sets, stable=True)
    by_neighbour = torch.argsort(sets * num_entities + neighbours, stable=True)
    by_entity = torch.argsort(sets, stable=True)
    of_set = [by_neighbour, neighbours[by_neighbour], rows[by_neighbour]]
    of_set += [by_entity, rows[by_entity]]
    return EdgeOrders(
        rows=chunks(rows, num_entities),
        neighbours=edges.cols,
        sets=edge_sets.cols,
        columns=chunks(neighbours, num_entities),
        by_column=torch.stack([by_column, rows[by_column], sets[by_column]]).int(),
        groups=chunks(sets, num_sets),
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
