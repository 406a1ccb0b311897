"""Reads what the triples of an OWL ontology mean: terms, edges between them, and their literals.

An ontology describes class expressions, lists and annotations with blank nodes and further
entities. The graph that is aligned contains its named classes, properties and individuals.
"""

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from emea.data.attributes import LABEL_ATTRIBUTES, PLAIN, Kind
from emea.data.entity_kinds import (
    BLANK,
    OWL,
    RDF,
    RDFS,
    SKOS,
    EntityKind,
    entity_kinds,
    is_blank,
)
from emea.data.formats.triple_collector import DEPRECATED, TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphReading
from emea.data.names import IRI_NAME, local_name
from emea.errors import DataError

log = logging.getLogger(__name__)

OBO = "http://www.geneontology.org/formats/oboInOwl#"
ANNOTATIONS = (OBO, "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/")
VOCABULARIES = (
    *(RDF, RDFS, OWL, SKOS, *ANNOTATIONS, "http://www.w3.org/2001/XMLSchema#"),
    *("http://www.w3.org/2003/11/swrl", "http://www.w3.org/XML/1998/namespace"),
    "http://protege.stanford.edu/",
)
"""Namespaces whose terms describe ontologies. They are not matched."""

DECLARATIONS = (f"{OWL}Ontology", f"{OWL}Class")
"""Types by which an ontology is recognised."""

TYPE, SUBCLASS, LABEL = f"{RDF}type", f"{RDFS}subClassOf", f"{RDFS}label"
IMPORTS = f"{OWL}imports"
ABOUT_FILES = (IMPORTS, f"{OWL}versionIRI", f"{OWL}priorVersion", f"{RDFS}isDefinedBy")
NO_TERMS = (f"{OWL}Ontology", f"{OWL}AnnotationProperty", f"{RDFS}Datatype")
OBSOLETE = (f"{OWL}DeprecatedClass", f"{OWL}DeprecatedProperty", f"{OBO}ObsoleteClass")
INDIVIDUALS = (f"{OWL}NamedIndividual", f"{OWL}Thing")

DESCRIBES = (SUBCLASS, f"{OWL}equivalentClass", TYPE)
"""Relations from a term to a class expression whose restrictions become edges of the term."""

ENDS = (f"{RDFS}domain", f"{RDFS}range")
ON_PROPERTY = f"{OWL}onProperty"
FILLERS = tuple(
    f"{OWL}{name}"
    for name in ("someValuesFrom", "allValuesFrom", "hasValue", "onClass")
)
PARTS = tuple(f"{OWL}{name}" for name in ("unionOf", "intersectionOf", "oneOf"))
PARTS += (f"{RDF}first", f"{RDF}rest")

NO_TERM = (
    "is deprecated, an annotation, or only has literals, so that it is not a term to match "
    "(data.ontology=false reads all triples unchanged)"
)

LEAST_EXPANDED, MOST_EXPANDED = 1_000_000, 10
"""Steps through class expressions, or through annotations, that are always allowed, and how many
for each triple of the file."""

Edge = tuple[str, str, str]
Literal = tuple[str, str, tuple[str, Kind]]

_WORDS = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CODE = re.compile(r"\d{3}")


def words(name: str) -> str:
    """Return the words of a name: ``hasAuthor`` and ``has_author`` have the words of "has Author".

    A text with spaces is returned unchanged.
    """
    if " " in name:
        return name
    if "_" in name or "-" in name:
        return name.replace("_", " ").strip()
    return _WORDS.sub(" ", name)


class Ontology:
    """The triples of an ontology, by name.

    Args:
        graph: All triples of the file, with their literals.
        label: The name of the file.

    Attributes:
        kinds: The ``EntityKind`` of each named term that is matched.
        num_deprecated: The number of terms that are left out because they are deprecated.
    """

    def __init__(self, graph: KnowledgeGraph, label: str) -> None:
        names = graph.all_entity_names
        relations = graph.relation_names or ()
        self._label = label
        self._edges = [
            (names[h], relations[r], names[t]) for h, r, t in graph.triples.tolist()
        ]
        self._literals = _literals(graph)
        self._types: dict[str, set[str]] = defaultdict(set)
        for head, relation, tail in self._edges:
            if relation in (TYPE, SUBCLASS):
                self._types[head].add(tail)
        kinds = dict(
            zip(names, map(EntityKind, entity_kinds(graph).tolist()), strict=True)
        )
        self._notes = self._found_notes(kinds)
        terms = {
            name: kind
            for name, kind in kinds.items()
            if not (
                is_blank(name) or name.startswith(VOCABULARIES) or name in self._notes
            )
            and self._types[name].isdisjoint(NO_TERMS)
        }
        deprecated = {
            head
            for head, name, (text, _) in self._literals
            if name == DEPRECATED and text in ("true", "1")
        }
        self.kinds = {
            name: kind
            for name, kind in terms.items()
            if name not in deprecated and self._types[name].isdisjoint(OBSOLETE)
        }
        self.num_deprecated = len(terms) - len(self.kinds)

    def _found_notes(self, kinds: dict[str, EntityKind]) -> set[str]:
        """Return the nodes that only annotate terms, such as synonyms and web pages."""
        notes = set[str]()
        others = set[str]()
        for head, relation, tail in self._edges:
            if relation != TYPE:
                others.add(head)
                (
                    notes if self._is_annotation(relation) or is_blank(tail) else others
                ).add(tail)
            elif not tail.startswith(VOCABULARIES) or tail in INDIVIDUALS:
                others.add(head)
        return {name for name in notes - others if kinds[name] == EntityKind.INDIVIDUAL}

    def _is_annotation(self, relation: str) -> bool:
        is_known = relation in ABOUT_FILES or relation.startswith(ANNOTATIONS)
        return is_known or f"{OWL}AnnotationProperty" in self._types.get(relation, ())

    def edges(self) -> Iterator[Edge]:
        """Yield the triples between two terms."""
        for edge in self._edges:
            if edge[0] in self.kinds and edge[2] in self.kinds:
                yield edge

    def expanded_edges(self) -> Iterator[Edge]:
        """Yield an edge from a term to each class that a class expression of the term names.

        A restriction leads to its classes by its property, and other expressions by the relation
        of the term.

        Raises:
            DataError: There are too many edges.
        """
        parts: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for head, relation, tail in self._edges:
            if is_blank(head) and (relation in (ON_PROPERTY, *FILLERS, *PARTS)):
                parts[head].append((relation, tail))
        budget = self._budget("class expressions relate too many pairs of classes")
        for head, relation, tail in self._edges:
            if (
                head not in self.kinds
                or not is_blank(tail)
                or relation not in DESCRIBES + ENDS
            ):
                continue
            for prop, name in _members(parts, tail, budget):
                if name in self.kinds and not (prop and relation in ENDS):
                    yield head, prop or relation, name

    def literals(self) -> Iterator[Literal]:
        """Yield the literals of the terms, with those of their notes.

        Raises:
            DataError: Too many terms share notes with too many literals.
        """
        of_note: dict[str, list[tuple[str, tuple[str, Kind]]]] = defaultdict(list)
        for head, name, value in self._literals:
            if head in self._notes:
                of_note[head].append((name, value))
            elif head in self.kinds and name != DEPRECATED:
                yield head, name, self._named(head, name, value)
        budget = self._budget("terms share annotations with too many literals")
        for head, relation, tail in self._edges:
            if head not in self.kinds or tail not in self._notes:
                continue
            budget.spend(1 + len(of_note[tail]))
            for name, value in of_note[tail]:
                is_label = name in LABEL_ATTRIBUTES
                yield (
                    head,
                    relation if is_label else name,
                    self._named(head, name, value),
                )
            if not of_note[tail] and not is_blank(tail) and relation not in ABOUT_FILES:
                yield head, relation, (tail, PLAIN)

    def _budget(self, problem: str) -> "_Budget":
        size = len(self._edges) + len(self._literals)
        return _Budget(
            max(LEAST_EXPANDED, MOST_EXPANDED * size), f"{self._label}: {problem}"
        )

    def _named(self, head: str, name: str, value: tuple[str, Kind]) -> tuple[str, Kind]:
        is_name = name in LABEL_ATTRIBUTES and self.kinds[head] != EntityKind.INDIVIDUAL
        return (words(value[0]), value[1]) if is_name else value

    def iri_names(self, literals: list[Literal]) -> Iterator[Literal]:
        """Yield a name made from the IRI of each class and property, if the IRI is not a code.

        It is the label of a term without a label.
        """
        known: dict[str, set[str]] = defaultdict(set)
        for head, name, (text, _) in literals:
            if name in LABEL_ATTRIBUTES:
                known[head].add(text.casefold())
        for head, kind in self.kinds.items():
            name = words(local_name(head))
            is_code = _CODE.search(name) is not None or not name
            if (
                kind != EntityKind.INDIVIDUAL
                and not is_code
                and name.casefold() not in known[head]
            ):
                yield head, IRI_NAME if known[head] else LABEL, (name, PLAIN)


def _literals(graph: KnowledgeGraph) -> list[Literal]:
    """Return the literals of a graph by name, and none if it has no attributes."""
    found = graph.attributes
    names = graph.all_entity_names
    if found is None:
        return []
    return [
        (
            names[entity],
            found.attribute_names[name],
            (found.values[value], found.kind(value)),
        )
        for entity, name, value in found.triples.tolist()
    ]


class _Budget:
    """Limits the work of following class expressions and annotations, with or without a result.

    Args:
        num_steps: The number of nodes and their parts that may be visited.
        problem: What an error says if nothing is left.
    """

    def __init__(self, num_steps: int, problem: str) -> None:
        self.num_steps = num_steps
        self._problem = problem

    def spend(self, num_steps: int) -> None:
        """Count some steps.

        Raises:
            DataError: Nothing is left.
        """
        self.num_steps -= num_steps
        if self.num_steps < 0:
            raise DataError(
                f"{self._problem}. Set data.ontology=false to read the triples unchanged."
            )


def _members(
    parts: dict[str, list[tuple[str, str]]], expression: str, budget: _Budget
) -> Iterator[tuple[str, str]]:
    """Yield the classes that a class expression names, each with the property of a restriction."""
    stack = [("", expression)]
    seen = {("", expression)}
    while stack:
        prop, node = stack.pop()
        budget.spend(1 + len(parts.get(node, ())))
        if not is_blank(node):
            yield prop, node
            continue
        own = next(
            (tail for role, tail in parts.get(node, ()) if role == ON_PROPERTY), BLANK
        )
        for role, tail in parts.get(node, ()):
            step = (prop or own, tail) if role in FILLERS else (prop, tail)
            # the property may be a blank node, too: the inverse of a property
            if role != ON_PROPERTY and not is_blank(step[0]) and step not in seen:
                seen.add(step)
                stack.append(step)


def _no_terms(label: str, num_deprecated: int) -> DataError:
    """Return the error for an ontology without a term to match."""
    reason = ""
    if num_deprecated:
        reason = f": all of its {num_deprecated:,} terms are deprecated"
    return DataError(
        f"{label} is an ontology without a class, property or individual to match{reason}. Set "
        "data.ontology=false to read its triples unchanged."
    )


def ontology_graph(
    graph: KnowledgeGraph,
    reading: GraphReading,
    keep_literals: bool,
    keep_isolated: bool,
    label_language: str | None = None,
) -> tuple[KnowledgeGraph, GraphReading]:
    """Return the graph of the terms of an ontology, with their kinds, and what was left out.

    Args:
        graph: All triples of the file, with their literals.
        reading: Counts of what was read.
        keep_literals: Whether to keep all literals, not only labels.
        keep_isolated: Whether to keep terms that only have literals.
        label_language: The preferred language of labels.

    Raises:
        DataError: No term is left, or its expressions or annotations expand to too much.
    """
    label = reading.label
    ontology = Ontology(graph, label)
    if not ontology.kinds:
        raise _no_terms(label, ontology.num_deprecated)
    direct = list(ontology.edges())
    expanded = list(ontology.expanded_edges())
    literals = list(ontology.literals())
    literals += ontology.iri_names(literals)
    num_others = graph.num_entities - len(ontology.kinds) - ontology.num_deprecated
    _log_contents(
        ontology,
        label,
        num_edges=len(direct) + len(expanded),
        num_expanded=len(expanded),
        num_literals=len(literals),
        num_others=num_others,
    )
    if keep_literals and not literals:
        log.warning(
            "%s: no term has a label, and no IRI contains words. Add rdfs:label to its terms, or "
            "give known links (--links FILE).",
            label,
        )
    collector: TripleCollector[Any] = TripleCollector(
        str, lambda key: key, keep_literals
    )
    collector.add_rows([*direct, *expanded], literals)
    found, own = collector.finish(label, 0, keep_isolated, label_language)
    names = found.all_entity_names
    kinds = np.array([ontology.kinds[name] for name in names], dtype=np.int64)
    left_out = frozenset(graph.all_entity_names).difference(names)
    reading = replace(
        reading,
        num_literals=own.num_literals,
        num_isolated=own.num_isolated,
        left_out=left_out,
        reason=NO_TERM,
    )
    return replace(found, kinds=kinds), reading


def _log_contents(
    ontology: Ontology,
    label: str,
    *,
    num_edges: int,
    num_expanded: int,
    num_literals: int,
    num_others: int,
) -> None:
    """Log what the graph of an ontology contains and what was left out.

    Args:
        ontology: The ontology, for its numbers of terms.
        label: The name of the file.
        num_edges: The number of edges.
        num_expanded: The number of edges that come from class expressions.
        num_literals: The number of literals.
        num_others: The number of nodes that are not terms.
    """
    counts = Counter(ontology.kinds.values())
    log.info(
        "%s is an ontology: %s classes, %s properties, %s individuals; %s edges (%s of class "
        "expressions), %s literals; %s deprecated terms and %s other nodes left out",
        label,
        f"{counts[EntityKind.CLASS]:,}",
        f"{counts[EntityKind.PROPERTY]:,}",
        f"{counts[EntityKind.INDIVIDUAL]:,}",
        f"{num_edges:,}",
        f"{num_expanded:,}",
        f"{num_literals:,}",
        f"{ontology.num_deprecated:,}",
        f"{num_others:,}",
    )
