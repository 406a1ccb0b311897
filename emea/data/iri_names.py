"""Makes names from the local parts of IRIs, as literals of a graph."""

from dataclasses import replace

import numpy as np

from emea.data.attributes import PLAIN, AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.data.names import local_name

IRI_NAME = "urn:emea:iri_name"
"""The attribute for names made from IRIs."""


def iri_name(iri: str) -> str:
    """Return the local part of an IRI as text.

    For example, ``http://x.org/Kim_Dae-jung`` becomes ``Kim Dae-jung``.
    """
    return " ".join(local_name(iri).replace("_", " ").split())


def with_iri_names(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return the graph with an additional attribute, the name made from the IRI of each entity.

    Other literals are kept. Entities without a label get this name as their label.
    """
    names = [iri_name(name) for name in graph.all_entity_names]
    given = graph.attributes
    entities = np.array([entity for entity, name in enumerate(names) if name], dtype=np.int64)
    texts = [name for name in names if name]
    before = (0, 0) if given is None else (len(given.attribute_names), len(given.values))
    kinds = [PLAIN] if given is None else [*given.kind_names, PLAIN]
    triples = np.stack(
        [entities, np.full(len(texts), before[0]), before[1] + np.arange(len(texts))], axis=1
    )
    plain = np.full(len(texts), len(kinds) - 1)
    attributes = AttributeTriples(
        triples if given is None else np.concatenate([given.triples, triples]),
        [*([] if given is None else given.attribute_names), IRI_NAME],
        [*([] if given is None else given.values), *texts],
        plain if given is None else np.concatenate([given.kinds, plain]),
        kinds,
    )
    labels = [label or name for label, name in zip(graph.labels or names, names, strict=True)]
    return replace(graph, attributes=attributes, labels=labels)
