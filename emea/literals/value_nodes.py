"""Turns the values of a graph into nodes, one for each distinct normal form."""

from dataclasses import dataclass

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.attributes import AttributeTriples
from emea.data.formats.triple_collector import distinct_triples
from emea.data.graph import KnowledgeGraph
from emea.data.values import normalised_values


@dataclass(frozen=True, eq=False)
class ValueNodes:
    """The distinct values of one graph.

    Args:
        keys: The normal form of each value, in the order of the nodes.
        texts: One spelling of each value, to show.
        triples: ``[num_triples, 3]`` distinct triples of entity, attribute and value node.
        attribute_functionality: ``[num_attributes]`` inverse functionality of each attribute:
            distinct values over triples.
        num_holders: ``[num_nodes]`` number of entities that have the value.
    """

    keys: list[str]
    texts: list[str]
    triples: IntArray
    attribute_functionality: FloatArray
    num_holders: IntArray

    def functionality(self) -> FloatArray:
        """Return ``[num_nodes]`` the mean inverse functionality of the attributes of each value."""
        nodes, share = self.triples[:, 2], self.attribute_functionality[self.triples[:, 1]]
        total = np.bincount(nodes, weights=share, minlength=len(self.keys))
        return total / np.maximum(np.bincount(nodes, minlength=len(self.keys)), 1)

    def local_weight(self) -> FloatArray:
        """Return ``[num_nodes]`` a weight of at most 1 for each value.

        The functionality of an attribute is a mean over its values. A value that many entities
        share identifies less. The product of this weight and the functionality is at most one over
        the number of entities that have the value.
        """
        promised = self.functionality() * np.maximum(self.num_holders, 1)
        return np.minimum(1.0, 1.0 / np.maximum(promised, 1e-12))


def value_nodes(attributes: AttributeTriples) -> ValueNodes:
    """Return a node for each distinct normal form of the values, without empty ones."""
    numbers: dict[str, int] = {}
    texts: list[str] = []
    node_of = np.full(len(attributes.values), -1, dtype=np.int64)
    for value, key in enumerate(normalised_values(attributes)):
        if key:
            number = numbers.setdefault(key, len(numbers))
            node_of[value] = number
            if number == len(texts):
                texts.append(attributes.values[value])
    triples = attributes.triples.copy()
    triples[:, 2] = node_of[triples[:, 2]]
    triples = distinct_triples(triples[triples[:, 2] >= 0])
    num_attributes = len(attributes.attribute_names)
    sizes = np.bincount(triples[:, 1], minlength=num_attributes)
    seen = np.unique(triples[:, 1] * max(1, len(numbers)) + triples[:, 2])
    distinct = np.bincount(seen // max(1, len(numbers)), minlength=num_attributes)
    held = np.unique(triples[:, 2] * (triples[:, 0].max(initial=0) + 1) + triples[:, 0])
    holders = np.bincount(held // (triples[:, 0].max(initial=0) + 1), minlength=len(numbers))
    return ValueNodes(list(numbers), texts, triples, distinct / np.maximum(sizes, 1), holders)


def extended_graph(graph: KnowledgeGraph, nodes: ValueNodes) -> KnowledgeGraph:
    """Return the graph with value nodes after the entities and attributes after the relations."""
    assert graph.attributes is not None
    shift = np.array([0, graph.num_relations, graph.num_entities])
    relations = [graph.relation_name(relation) for relation in range(graph.num_relations)]
    labels = graph.labels or [""] * graph.num_entities
    return KnowledgeGraph(
        np.concatenate([graph.triples, nodes.triples + shift]),
        graph.num_entities + len(nodes.keys),
        graph.num_relations + len(graph.attributes.attribute_names),
        [*graph.all_entity_names, *(f'"{text}"' for text in nodes.texts)],
        [*relations, *graph.attributes.attribute_names],
        labels=[*labels, *([""] * len(nodes.keys))],
    )
