"""IPTransE (Zhu et al., IJCAI 2017): TransE on both graphs, extended by relation paths."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from emea.data.arrays import IntArray
from emea.data.sorting import places_in_runs
from emea.encoders.joint_graph import JointGraph, counterparts

NUM_COMMON_PATTERNS = 5
"""Most frequent relation pairs of a graph, which are ignored; as in released AliNet."""

MAX_ENDS = 100
"""Paths that lead to more ends than this are ignored, as in released IPTransE."""


def consecutive_triples(triples: IntArray) -> tuple[IntArray, IntArray]:
    """Return index pairs ``(i, j)`` of triples where the tail of ``i`` is the head of ``j``."""
    order = np.argsort(triples[:, 0], kind="stable")
    heads = triples[order, 0]
    starts = np.searchsorted(heads, triples[:, 2], side="left")
    counts = np.searchsorted(heads, triples[:, 2], side="right") - starts
    first = np.repeat(np.arange(len(triples)), counts)
    offsets = places_in_runs(counts)
    return first, order[starts[first] + offsets]


def two_hop_pairs(triples: IntArray, num_common: int = NUM_COMMON_PATTERNS) -> IntArray:
    """Return the ends of two-triple paths that no triple joins: AliNet's distant neighbours.

    Paths of the graph's ``num_common`` most frequent relation pairs do not count. If two pairs are
    equally frequent, the one with smaller relation ids counts as more frequent.

    Returns:
        ``[num_pairs, 2]`` distinct (head, end), ascending.
    """
    if not len(triples):
        return np.zeros((0, 2), dtype=np.int64)
    first, second = consecutive_triples(triples)
    width = int(triples[:, [0, 2]].max()) + 1
    ends = triples[first, 0] * width + triples[second, 2]
    far = ~np.isin(ends, triples[:, 0] * width + triples[:, 2])
    first, second, ends = first[far], second[far], ends[far]
    patterns = triples[first, 1] * (int(triples[:, 1].max()) + 1) + triples[second, 1]
    _, pattern, counts = np.unique(patterns, return_inverse=True, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:num_common]
    kept = np.unique(ends[~np.isin(pattern, common)])
    return np.stack([kept // width, kept % width], axis=1)


def composed_relations(triples: IntArray, max_ends: int = MAX_ENDS) -> tuple[IntArray, IntArray]:
    """Return paths ``(r1, r2)`` parallel to a direct relation ``r``: PTransE's ``r1 + r2 = r``.

    Every occurrence of a path ``h -r1-> m -r2-> t`` with a triple ``(h, r, t)`` counts, unless its
    number of ends is too large: the tails of ``(h, r1)`` times the tails of ``(m, r2)``.

    Returns:
        ``[num_paths, 3]`` paths (r1, r2, r), and ``[num_paths]`` their numbers of ends.
    """
    head, relation, tail = triples.T
    num_relations, width = relation.max(initial=0) + 1, tail.max(initial=0) + 1
    _, group, sizes = np.unique(
        head * num_relations + relation, return_inverse=True, return_counts=True
    )
    num_tails = sizes[group]
    first, second = consecutive_triples(triples)
    num_ends = num_tails[first] * num_tails[second]
    near = num_ends <= max_ends
    first, second, num_ends = first[near], second[near], num_ends[near]
    direct = np.argsort(head * width + tail, kind="stable")
    keys = (head * width + tail)[direct]
    wanted = head[first] * width + tail[second]
    starts = np.searchsorted(keys, wanted, side="left")
    counts = np.searchsorted(keys, wanted, side="right") - starts
    path = np.repeat(np.arange(len(first)), counts)
    offsets = places_in_runs(counts)
    direct_relation = relation[direct[starts[path] + offsets]]
    paths = np.stack([relation[first[path]], relation[second[path]], direct_relation], axis=1)
    return paths, num_ends[path]


class IPTransE(nn.Module):
    """Encodes entities and relations as unit vectors; linked entities share one vector.

    Args:
        graph: The joint graph of both graphs.
        dim: Width of the embeddings.
        max_ends: Paths that lead to more ends than this are not evidence for a relation.

    Shapes:
        output: ``[num_entities, dim]`` unit rows, source entities first.
    """

    row_of: Tensor
    triples: Tensor
    paths: Tensor
    path_ends: Tensor

    def __init__(self, graph: JointGraph, dim: int = 100, max_ends: int = MAX_ENDS) -> None:
        super().__init__()
        self.num_source = graph.num_source
        self.entities = truncated_normal(graph.num_entities, dim)
        self.relations = truncated_normal(graph.num_relations, dim)
        # saved with the weights, because they assign the rows to entities
        self.register_buffer("row_of", torch.arange(graph.num_entities))
        triples = graph.triples()
        paths, num_ends = composed_relations(triples, max_ends)
        for name, values in (("triples", triples), ("paths", paths), ("path_ends", num_ends)):
            tensor = torch.from_numpy(np.ascontiguousarray(values))
            self.register_buffer(name, tensor, persistent=False)

    def share(self, links: Tensor) -> None:
        """Let linked entities share the source entity's row; all others keep their own.

        If several source entities are linked to one target entity, the first one shares its row.
        """
        partner = counterparts(links.cpu().numpy(), len(self.entities))
        rows = np.arange(len(partner))
        target = rows[self.num_source :]
        linked = target[partner[target] >= 0]
        linked = linked[partner[partner[linked]] == linked]
        rows[linked] = partner[linked]
        self.row_of.copy_(torch.from_numpy(rows))

    def forward(self) -> Tensor:
        """Return the embeddings of all entities."""
        return self.entity_rows(slice(None))

    def entity_rows(self, entities: Tensor | slice) -> Tensor:
        """Return the embeddings of these entities."""
        return normalize(self.entities).index_select(0, self.row_of[entities])

    def relation_rows(self) -> Tensor:
        """Return the embeddings of all relations."""
        return normalize(self.relations)


def truncated_normal(size: int, dim: int) -> nn.Parameter:
    """Return normal values of variance ``1 / dim``, truncated at two standard deviations."""
    scale = dim**-0.5
    rows = torch.empty(size, dim)
    return nn.Parameter(nn.init.trunc_normal_(rows, std=scale, a=-2 * scale, b=2 * scale))
