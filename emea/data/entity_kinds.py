"""Finds out which entities of an RDF graph are classes, properties or individuals."""

from enum import IntEnum

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"

ALIGNMENT = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment"
"""The namespace of OAEI's Alignment format. Some programs write it without a ``#`` at its end."""

NO_TERM_FOUND = "sssom:NoTermFound"
"""Placeholder of SSSOM for an entity without a counterpart."""

BLANK = "_:"
"""Prefix of blank node names, which have no meaning outside their file."""


class EntityKind(IntEnum):
    """The kinds of entities in OWL."""

    INDIVIDUAL = 0
    CLASS = 1
    PROPERTY = 2


DECLARED = dict.fromkeys(
    (f"{RDFS}Class", f"{OWL}Class"), EntityKind.CLASS
) | dict.fromkeys(
    (
        f"{RDF}Property",
        f"{OWL}ObjectProperty",
        f"{OWL}DatatypeProperty",
        f"{OWL}AnnotationProperty",
        f"{OWL}FunctionalProperty",
        f"{OWL}InverseFunctionalProperty",
        f"{OWL}SymmetricProperty",
        f"{OWL}TransitiveProperty",
    ),
    EntityKind.PROPERTY,
)
"""Kind of an entity by the IRI of its type. Entities of other types are individuals."""

HEADS = {
    f"{RDFS}subClassOf": EntityKind.CLASS,
    f"{OWL}equivalentClass": EntityKind.CLASS,
    f"{OWL}disjointWith": EntityKind.CLASS,
    f"{RDFS}subPropertyOf": EntityKind.PROPERTY,
    f"{OWL}equivalentProperty": EntityKind.PROPERTY,
    f"{OWL}inverseOf": EntityKind.PROPERTY,
    f"{RDFS}domain": EntityKind.PROPERTY,
    f"{RDFS}range": EntityKind.PROPERTY,
}
"""Kind of the head of a triple, by the relation's IRI."""

TAILS = HEADS | {
    f"{RDF}type": EntityKind.CLASS,
    f"{RDFS}domain": EntityKind.CLASS,
    f"{RDFS}range": EntityKind.CLASS,
}
"""Kind of the tail of a triple, by the relation's IRI."""


def entity_kinds(graph: KnowledgeGraph) -> IntArray:
    """Return the ``EntityKind`` of each entity, ``[num_entities]``.

    A graph that was read from an ontology states them. Otherwise, the RDF, RDFS and OWL vocabulary
    in the triples decides. Entities of a graph that does not use
    it, or that has no relation names, are individuals. If the triples state several kinds of an
    entity, a property is preferred to a class and a class to an individual.
    """
    if graph.kinds is not None:
        return graph.kinds
    kinds = np.full(graph.num_entities, EntityKind.INDIVIDUAL, dtype=np.int64)
    if graph.relation_names is None:
        return kinds
    heads, relations, tails = graph.triples.T
    for relation, name in enumerate(graph.relation_names):
        if name not in TAILS:
            continue
        of_relation = relations == relation
        ends = tails[of_relation]
        np.maximum.at(kinds, ends, TAILS[name])
        if name in HEADS:
            np.maximum.at(kinds, heads[of_relation], HEADS[name])
        else:
            types, places = np.unique(ends, return_inverse=True)
            declared = [
                DECLARED.get(graph.entity_name(end), 0) for end in types.tolist()
            ]
            np.maximum.at(
                kinds, heads[of_relation], np.array(declared, dtype=np.int64)[places]
            )
    return kinds


def is_blank(name: str) -> bool:
    """Return whether a name is that of a blank node."""
    return name.startswith(BLANK)
