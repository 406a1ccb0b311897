"""Cuts a pair of graphs into parts that keep matched entities and neighbours together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from emea.baselines.paris_reasoner import ParisReasoner
from emea.data.arrays import FloatArray, IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import FEWEST_LABELS, Supervision, has_literals
from emea.divide.division import Division, are_inside, visible_checksum, write_part
from emea.errors import DataError, UserError

ROUGH = 0.05
"""Share of the matches that may still change when the search for them ends: a cut needs no more."""


@dataclass(frozen=True, eq=False)
class ContractedGraph:
    """Both graphs in one, with one node for all entities that are matched to each other.

    Args:
        nodes: ``[num_source + num_target]`` the node of each entity, source entities first.
        sizes: ``[num_nodes]`` the number of entities of each node.
        adjacency: ``[num_nodes, num_nodes]`` the number of triples between two nodes; symmetric.
    """

    nodes: IntArray
    sizes: IntArray
    adjacency: csr_array

    @classmethod
    def of(cls, pair: GraphPair, matched: IntArray) -> "ContractedGraph":
        """Join both graphs, with one node for the entities of each ``[n, 2]`` matched pair."""
        num_source = pair.source.num_entities
        num_entities = num_source + pair.target.num_entities
        sources, targets = matched.T
        links = _counts(sources, targets + num_source, num_entities)
        num_nodes, nodes = connected_components(links, directed=False)
        triples = (
            pair.source.triples[:, [0, 2]],
            pair.target.triples[:, [0, 2]] + num_source,
        )
        heads, tails = nodes[np.concatenate(triples)].T
        apart = heads != tails
        edges = _counts(heads[apart], tails[apart], num_nodes)
        adjacency = csr_array(edges + edges.T)
        adjacency.sort_indices()
        return cls(
            nodes.astype(np.int64), np.bincount(nodes, minlength=num_nodes), adjacency
        )


def _counts(heads: IntArray, tails: IntArray, size: int) -> csr_array:
    """Return how often each pair of nodes occurs."""
    ones = np.ones(len(heads), dtype=np.int32)
    return csr_array(coo_array((ones, (heads, tails)), shape=(size, size)))


def divide(
    pair: GraphPair,
    known: Supervision,
    folder: Path,
    *,
    num_parts: int,
    overlap: float,
    matched: IntArray | None = None,
) -> Division:
    """Cut a pair and write the parts, one after the other, and then the record of the division.

    Args:
        pair: The graphs, with matching literals if they may be used; its links are not read.
        known: The training and validation links. The cut uses the training links only.
        folder: An existing folder.
        num_parts: The number of parts.
        overlap: The largest number of further entities of a part, relative to its own.
        matched: ``[n, 2]`` matches of an earlier run; with ``None``, PARIS finds matches.

    Raises:
        DataError: If a part would be too small.
    """
    if matched is None:
        matched = rough_matches(pair, known.train) if num_parts > 1 else known.train
    graph = ContractedGraph.of(pair, np.concatenate([known.train, matched]))
    chosen = []
    for inside in overlapping(graph, partition(graph, num_parts), num_parts, overlap):
        sides = np.split(inside[graph.nodes], [pair.source.num_entities])
        chosen.append([np.flatnonzero(side) for side in sides])
    _check_labels(pair, known, chosen)
    parts = tuple(
        write_part(folder, number, pair, known, entities)
        for number, entities in enumerate(chosen)
    )
    division = Division(
        pair.name,
        visible_checksum(pair, known),
        overlap,
        len(matched),
        separated_share(known.validation, chosen),
        lost_share(pair, chosen),
        parts,
    )
    division.write(folder)
    return division


def rough_matches(pair: GraphPair, train: IntArray) -> IntArray:
    """Return ``[n, 2]`` pairs that PARIS finds from the training links and matching literals."""
    reasoner = ParisReasoner(pair)
    reasoner.tolerance = ROUGH
    known = reasoner.certain(torch.from_numpy(train.copy()))
    pairs: IntArray = (
        reasoner.settled(known, known, lambda report: None).pairs().numpy()
    )
    return pairs


def partition(graph: ContractedGraph, num_parts: int) -> IntArray:
    """Return the part of each node: parts of equal size with few triples between them (METIS).

    Raises:
        UserError: If pymetis is not installed.
    """
    if num_parts == 1:
        return np.zeros(len(graph.sizes), dtype=np.int64)
    try:
        import pymetis
    except ImportError as error:
        raise UserError(
            "emea divide needs pymetis. Install it with pip install 'emea[divide]'."
        ) from error
    adjacency = graph.adjacency
    found = pymetis.part_graph(
        num_parts,
        pymetis.CSRAdjacency(adjacency.indptr, adjacency.indices),
        vweights=graph.sizes,
        eweights=adjacency.data,
        options=pymetis.Options(seed=0),
    )
    return np.asarray(found.vertex_part, dtype=np.int64)


def overlapping(
    graph: ContractedGraph, of_node: IntArray, num_parts: int, overlap: float
) -> list[np.ndarray]:
    """Return the nodes of each part, with nodes of other parts that have neighbours in it.

    Those with the largest share of their triples into the part come first.

    Args:
        graph: The nodes.
        of_node: ``[num_nodes]`` the part of each node.
        num_parts: The number of parts.
        overlap: The largest number of entities that a part gets from others, relative to its own.

    Returns:
        ``[num_nodes]`` bool for each part.
    """
    degrees: FloatArray = np.maximum(graph.adjacency.sum(1), 1).astype(float)
    found = []
    for number in range(num_parts):
        inside = of_node == number
        shares = np.where(inside, 0.0, graph.adjacency @ inside.astype(float) / degrees)
        near = np.argsort(-shares, kind="stable")[: int((shares > 0).sum())]
        room = overlap * graph.sizes[inside].sum()
        inside[near[np.cumsum(graph.sizes[near]) <= room]] = True
        found.append(inside)
    return found


def _check_labels(
    pair: GraphPair, known: Supervision, chosen: Sequence[Sequence[IntArray]]
) -> None:
    """Raise an error if a part has too little to learn from."""
    least = min(FEWEST_LABELS, len(known.train))
    for number, entities in enumerate(chosen):
        inside, (num_source, num_target) = (
            are_inside(known.train, entities),
            map(len, entities),
        )
        too_few = inside.sum() < least and not has_literals(pair)
        if too_few or not num_source or not num_target:
            raise DataError(
                f"{pair.name} cannot be cut into {len(chosen)} parts: part {number} would have "
                f"{num_source:,} and {num_target:,} entities and {int(inside.sum())} of the "
                f"{len(known.train):,} training links. Choose fewer parts, or give more links."
            )


def separated_share(
    links: IntArray, chosen: Sequence[Sequence[IntArray]]
) -> float | None:
    """Return the share of the links whose entities share no part; ``None`` without links."""
    if not len(links):
        return None
    together = np.zeros(len(links), dtype=bool)
    for entities in chosen:
        together |= are_inside(links, entities)
    return float(1 - together.mean())


def lost_share(pair: GraphPair, chosen: Sequence[Sequence[IntArray]]) -> float:
    """Return the share of the triples of both graphs that no part contains."""
    num_lost = 0
    for side, graph in enumerate((pair.source, pair.target)):
        ends = graph.triples[:, [0, 2]]
        kept = [are_inside(ends, (one[side], one[side])) for one in chosen]
        num_lost += int((~np.logical_or.reduce(kept)).sum())
    return num_lost / max(1, pair.source.num_triples + pair.target.num_triples)
