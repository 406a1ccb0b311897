"""Pairs of graphs that overlap, with multi-edges, inverse edges, loops and lonely entities."""

import numpy as np

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair


def overlapping_pair(
    seed: int, num_entities: int = 12, num_relations: int = 3
) -> GraphPair:
    """Two views of one random graph, their entities renamed; the links join all of them."""
    rng = np.random.default_rng(seed)
    sizes = (
        num_entities - 1,
        num_relations,
        num_entities - 1,
    )  # the last entity is lonely
    facts = np.stack(
        [rng.integers(0, size, 3 * num_entities) for size in sizes], axis=1
    )
    facts = np.concatenate(
        [facts, facts[:4, ::-1] % [num_entities, num_relations, num_entities]]
    )
    facts[:2, 2] = facts[:2, 0]
    names = rng.permutation(num_entities)
    sides = []
    for ids in (np.arange(num_entities), names):
        kept = facts[rng.random(len(facts)) < 0.85]
        triples = np.stack([ids[kept[:, 0]], kept[:, 1], ids[kept[:, 2]]], axis=1)
        sides.append(KnowledgeGraph(triples, num_entities, num_relations))
    links = np.stack([np.arange(num_entities), names], axis=1)
    return GraphPair("pair", sides[0], sides[1], links)
