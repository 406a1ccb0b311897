"""Small pairs of graphs with literals."""

from collections.abc import Sequence

import numpy as np

from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair

Facts = Sequence[tuple[int, int, str]]
"""Entity, attribute and value."""


def graph_with_values(
    num_entities: int, facts: Facts, edges: Sequence[tuple[int, int, int]] = ()
) -> KnowledgeGraph:
    values = sorted({value for _, _, value in facts})
    triples = [
        (entity, attribute, values.index(value)) for entity, attribute, value in facts
    ]
    num_attributes = 1 + max((attribute for _, attribute, _ in facts), default=0)
    names = [f"a{number}" for number in range(num_attributes)]
    attributes = AttributeTriples(
        np.array(triples, dtype=np.int64).reshape(-1, 3),
        names,
        values,
        np.zeros(len(values), dtype=np.int64),
    )
    return KnowledgeGraph(
        np.array(edges, dtype=np.int64).reshape(-1, 3),
        num_entities,
        1 + max((relation for _, relation, _ in edges), default=0),
        attributes=attributes,
    )


def pair_with_values(source: KnowledgeGraph, target: KnowledgeGraph) -> GraphPair:
    return GraphPair("small", source, target, np.zeros((0, 2), dtype=np.int64))
