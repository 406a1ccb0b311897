"""Describes each entity by all words of its values, to compare whole records.

The values of one attribute may differ although the records mean the same: a title is shortened, the
author is part of the description, or an attribute of one graph is a relation of the other graph.
"""

import numpy as np

from emea.data.formats.ontology import words
from emea.data.graph import KnowledgeGraph
from emea.data.names import local_name
from emea.literals.value_nodes import ValueNodes, normalised_value

LEAST_VALUES = 2.0
"""Mean number of values of an entity from which its words say more than each value."""


def word_profiles(graph: KnowledgeGraph, nodes: ValueNodes, texts: list[str]) -> dict[int, str]:
    """Return a text of all values of each entity that has values.

    A neighbour without values is a value, too: the words of its name. The result is empty if
    entities have few values.

    Args:
        graph: The graph.
        nodes: Its values.
        texts: The text of each value, to compare.
    """
    parts: dict[int, list[str]] = {}
    for entity, value in np.unique(nodes.triples[:, [0, 2]], axis=0).tolist():
        parts.setdefault(entity, []).append(texts[value])
    names = graph.all_entity_names
    edges = np.unique(graph.triples[:, [0, 2]], axis=0).tolist()
    for head, tail in edges:
        if head in parts and tail not in parts:
            parts[head].append(normalised_value(words(local_name(names[tail]))))
    if sum(map(len, parts.values())) < LEAST_VALUES * max(1, len(parts)):
        return {}
    return {entity: " ".join(values) for entity, values in parts.items()}
