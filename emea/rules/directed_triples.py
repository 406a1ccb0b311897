"""A graph's triples read in both directions, grouped by entity pair or by tail and relation."""

from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from emea.data.graph import KnowledgeGraph
from emea.data.sorting import distinct_rows, run_starts
from emea.kernels.edge_join import Edges
from emea.kernels.flat_groups import group_starts, run_ends


class DirectedTriples(nn.Module):
    """Holds triples and their inverses, sorted by (head, tail).

    The inverse of relation r has the number ``r + num_relations``.

    Args:
        graph: The graph.

    Attributes:
        pair_heads, pair_tails: Distinct neighbouring (head, tail) pairs, ascending.
        pair_starts: Start of each pair's relations in ``relations``.
        pair_sizes: Number of relations of each pair.
        pair_of_triple: Pair of each directed triple.
        relations: Directed relation of each directed triple.
        inverse_functionality: ``fun^-1`` of each directed relation: the number of its distinct
            tails divided by the number of its triples.
        relation_sizes: Number of triples of each directed relation.
    """

    pair_heads: Tensor
    pair_tails: Tensor
    pair_starts: Tensor
    pair_sizes: Tensor
    pair_of_triple: Tensor
    relations: Tensor
    inverse_functionality: Tensor
    relation_sizes: Tensor

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__()
        self.num_entities = graph.num_entities
        self.num_directed = 2 * graph.num_relations
        if graph not in _ARRAYS:
            _ARRAYS[graph] = _directed(graph)
        for name, values in _ARRAYS[graph].items():
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    @cached_property
    def edges(self) -> Edges:
        """Look-up of the neighbouring pairs; only the target graph of a join needs it."""
        return Edges(self.pair_heads, self.pair_tails, self.num_entities)


_ARRAYS: WeakKeyDictionary[KnowledgeGraph, dict[str, np.ndarray]] = WeakKeyDictionary()
"""The values of each graph; rules, the evaluation and the mapping of relations use the same ones.

They stay in the main memory as long as the graph, also if the rules are on a GPU: up to 96 bytes
per triple. On a CPU, all modules of a graph share this memory, so no function may change a buffer.
"""


def _directed(graph: KnowledgeGraph) -> dict[str, np.ndarray]:
    """Return the buffers of a graph's directed triples by name."""
    num_directed = 2 * graph.num_relations
    head, relation, tail = graph.triples.T
    heads, tails, relations = distinct_rows(
        [
            np.concatenate([head, tail]),
            np.concatenate([tail, head]),
            np.concatenate([relation, relation + graph.num_relations]),
        ],
        [graph.num_entities, graph.num_entities, num_directed],
    )
    starts = run_starts(heads, tails)
    pair_sizes = np.diff(starts, append=len(heads))
    sizes = np.bincount(relations, minlength=num_directed)
    num_tails = _num_distinct_tails(relations, tails, num_directed, graph.num_entities)
    return {
        "pair_heads": heads[starts],
        "pair_tails": tails[starts],
        "pair_starts": np.append(starts, len(heads)),
        "pair_sizes": pair_sizes,
        "pair_of_triple": np.repeat(np.arange(len(starts)), pair_sizes),
        "relations": relations,
        "relation_sizes": sizes.astype(np.float32),
        "inverse_functionality": inverse_functionality(num_tails, sizes),
    }


def inverse_functionality(num_tails: np.ndarray, num_triples: np.ndarray) -> np.ndarray:
    """Return fun⁻¹(r) of Eq. 19 for each relation: its distinct tails divided by its triples."""
    functionality: np.ndarray = num_tails / np.maximum(num_triples, 1)
    return functionality.astype(np.float32)


def _num_distinct_tails(
    relations: np.ndarray, tails: np.ndarray, num_relations: int, num_entities: int
) -> np.ndarray:
    """Return the number of distinct tails of each relation."""
    distinct, _ = distinct_rows([relations, tails], [num_relations, num_entities])
    return np.bincount(distinct, minlength=num_relations)


class TailGroups:
    """Groups the heads x of r(x, n): one group per entity n and directed relation r.

    A match of n gives the same evidence for all members of a group, so that it is computed once
    per group.

    Args:
        triples: The graph in both directions.

    Attributes:
        starts: ``[num_entities + 1]`` start of each entity's groups.
        owners: ``[num_groups]`` n of each group, ascending.
        relations: ``[num_groups]`` r of each group.
        member_starts: ``[num_groups + 1]`` start of each group's members.
        num_members: ``[num_groups]`` number of members of each group.
        members: ``[num_triples]`` x of each triple, by group.
        heads: ``[num_triples]`` x of each triple, ascending.
        group_of_head: ``[num_triples]`` group of each triple of ``heads``.
        inverse_functionality: ``fun^-1`` of each directed relation in double precision.
    """

    def __init__(self, triples: DirectedTriples) -> None:
        self.inverse_functionality = triples.inverse_functionality.double()
        self.heads = triples.pair_heads[triples.pair_of_triple]
        tails = triples.pair_tails[triples.pair_of_triple]
        keys, order = torch.sort(
            tails * triples.num_directed + triples.relations, stable=True
        )
        groups, sizes = torch.unique_consecutive(keys, return_counts=True)
        self.owners: Tensor = groups // triples.num_directed
        self.relations: Tensor = groups % triples.num_directed
        self.starts = group_starts(self.owners, triples.num_entities)
        self.member_starts = run_ends(sizes)
        self.num_members = sizes
        self.members = self.heads[order]
        self.group_of_head = torch.empty_like(order)
        self.group_of_head[order] = torch.repeat_interleave(sizes)
