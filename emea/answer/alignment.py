"""The alignment of a run, by source entity, as export formats write it."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from emea.answer.curation import Curated
from emea.data.arrays import NO_MATCH, FloatArray, IntArray, are_among
from emea.data.entity_kinds import EntityKind, entity_kinds, is_blank
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import ARROW, TRANSLATION, GraphPair
from emea.data.names import entity_iri, entity_title


@dataclass(frozen=True)
class Origin:
    """The provenance of an alignment, for formats that can contain it.

    Args:
        run_id: Id of the run, a uuid4 as hexadecimal digits.
        run_name: Name of the run.
        date: Date of the run, ISO 8601.
        tool_version: Version of this package and its commit.
        settings: Decoding and threshold, as text.
        license: IRI of the licence of the mappings; ``None`` if it is not specified.
    """

    run_id: str
    run_name: str
    date: str
    tool_version: str
    settings: str
    license: str | None = None


class Row(NamedTuple):
    """One match of a source entity, by name.

    ``target`` is ``None`` and ``prob`` is 0 if the entity has no match. ``candidates`` are the most
    probable targets, best first, with or without a match. An entity without a label is called by
    its name in words.
    """

    source: str
    target: str | None
    prob: float
    is_given: bool
    candidates: list[tuple[str, float]]
    source_label: str
    target_label: str | None = None


@dataclass(frozen=True, eq=False)
class Alignment:
    """The matches of the source entities of a pair of graphs.

    There is one row for each match, and one for each source entity without a match.

    Args:
        pair: The graphs.
        origin: Provenance of the alignment.
        targets: ``[num_rows]`` target of each row, or ``NO_MATCH``.
        probs: ``[num_rows]`` its probability, 0 without a match.
        is_given: ``[num_rows]`` whether the match is a training link.
        candidates: ``[num_source, k]`` the most probable targets, best first.
        candidate_probs: ``[num_source, k]`` their probabilities; 0 marks an empty slot.
        vocabulary: ``owl`` or ``skos``, whose predicates state the matches.
        close_below: Less probable matches are stated as ``skos:closeMatch``.
        witnesses: ``[num_source]`` number of encoders of an ensemble that agree.
        sources: ``[num_rows]`` source entity of each row, ascending; ``None`` if each source entity
            has one row.
        accepted: The decision of a person about each pair that one accepted, by the names of the
            pair.
        rejected: The decisions of a person about pairs that one rejected.
    """

    pair: GraphPair
    origin: Origin
    targets: IntArray
    probs: FloatArray
    is_given: npt.NDArray[np.bool_]
    candidates: IntArray
    candidate_probs: FloatArray
    vocabulary: str = "owl"
    close_below: float = 0.0
    witnesses: IntArray | None = None
    sources: IntArray | None = None
    accepted: Mapping[tuple[str, str], Curated] = field(default_factory=dict)
    rejected: Sequence[Curated] = ()

    @property
    def entities(self) -> IntArray:
        """``[num_rows]`` source entity of each row."""
        return np.arange(len(self.targets)) if self.sources is None else self.sources

    def best_targets(self) -> IntArray:
        """Return the first target of each source entity, or ``NO_MATCH``, ``[num_source]``."""
        return self.targets[np.unique(self.entities, return_index=True)[1]]

    def rows(self, num_candidates: int | None = None) -> Iterator[Row]:
        """Yield the rows in the order of the source entities' ids.

        Args:
            num_candidates: Maximum number of candidates per row; ``None`` means all.
        """
        name_of = self.pair.source.entity_name
        target_name = self.pair.target.entity_name
        best = (
            self.candidates[:, :num_candidates],
            self.candidate_probs[:, :num_candidates],
        )
        others, other_probs = (part[self.entities] for part in best)
        columns = (
            self.entities,
            self.targets,
            self.probs,
            self.is_given,
            others,
            other_probs,
        )
        values = zip(*(column.tolist() for column in columns), strict=True)
        for source, target, prob, is_given, *listed in values:
            scored = zip(*listed, strict=True)
            yield Row(
                name_of(source),
                None if target == NO_MATCH else target_name(target),
                prob,
                is_given,
                [(target_name(other), share) for other, share in scored if share > 0],
                entity_title(self.pair.source, source),
                None if target == NO_MATCH else entity_title(self.pair.target, target),
            )


logger = logging.getLogger(__name__)

PREDICATES = {
    EntityKind.INDIVIDUAL: "owl:sameAs",
    EntityKind.CLASS: "owl:equivalentClass",
    EntityKind.PROPERTY: "owl:equivalentProperty",
}
"""The OWL property that states that two entities of a kind are the same."""

EXACT, CLOSE = "skos:exactMatch", "skos:closeMatch"


@dataclass(frozen=True)
class Statement:
    """What is stated about one match, or about one source entity without a match.

    Args:
        source: The entity.
        target: Its target, or ``NO_MATCH``.
        row: The row of the answer.
        source_iri: Its IRI.
        target_iri: The IRI of its target; ``None`` if it is unmatched.
        kind: What both entities are, which decides the OWL property.
        predicate: The property that relates them, as a CURIE.
    """

    source: int
    target: int
    row: Row
    source_iri: str
    target_iri: str | None
    kind: EntityKind
    predicate: str


def statements(alignment: Alignment) -> Iterator[Statement]:
    """Yield what can be stated about each source entity and match, in the order of their ids.

    Blank nodes are left out, because their names mean nothing outside their file. Pairs of
    entities of different kinds, such as a class and an individual, are left out, because OWL has
    no property that equates them.
    """
    pair = alignment.pair
    source_kinds = entity_kinds(pair.source)
    target_kinds = entity_kinds(pair.target)
    num_mixed = 0
    kinds = source_kinds[alignment.entities]
    answers = zip(
        *(part.tolist() for part in (alignment.entities, alignment.targets, kinds)),
        strict=True,
    )
    for row, (source, target, kind) in zip(alignment.rows(0), answers, strict=True):
        if is_blank(row.source) or (row.target is not None and is_blank(row.target)):
            continue
        if target != NO_MATCH and target_kinds[target] != kind:
            num_mixed += 1
            continue
        source_iri = entity_iri(row.source, pair.name, "source")
        target_iri = None
        if row.target is not None:
            target_iri = entity_iri(row.target, pair.name, "target")
        predicate = (
            EXACT if alignment.vocabulary == "skos" else PREDICATES[EntityKind(kind)]
        )
        if row.target is not None and row.prob < alignment.close_below:
            predicate = CLOSE
        yield Statement(
            source, target, row, source_iri, target_iri, EntityKind(kind), predicate
        )
    if num_mixed:
        logger.info(
            "Left out %d pairs that join entities of different kinds, such as a class and an "
            "individual; alignment.tsv lists them.",
            num_mixed,
        )


def supported(
    alignment: Alignment,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which matches a matched neighbour supports, and which a matched literal supports.

    If a source entity has several matches, its first one decides. If only literals support
    matches, only they were compared for the entities without a match.

    Returns:
        Two masks of source entities. Without literals in the pair, the second one is all False.
    """
    pair = alignment.pair
    matches = alignment.best_targets()
    size = len(matches)
    ends = pair.source.triples[:, [0, 2]]
    known = pair.target.triples[:, [0, 2]]
    by_structure, by_literals = np.zeros((2, size), dtype=bool)
    both = matches[ends]
    kept = (both != NO_MATCH).all(axis=1) & are_among(
        both, np.concatenate([known, known[:, ::-1]])
    )
    by_structure[ends[kept]] = True
    if pair.literals is not None:
        values = pair.literals.source.triples[:, [0, 2]]
        values = values[values[:, 1] >= size]
        sources, others = _joined(values, pair.literals.pairs)
        both = np.stack([matches[sources], others], axis=1)
        found = (both[:, 0] != NO_MATCH) & are_among(
            both, pair.literals.target.triples[:, [0, 2]]
        )
        by_literals[sources[found]] = True
        by_literals |= (matches == NO_MATCH) & ~by_structure.any()
    return by_structure, by_literals


def word_translations(alignment: Alignment) -> dict[int, str]:
    """Return the translation that supports each match, such as ``apfel → apple``.

    The keys are source entities. If several translations support a match, it has the first one.
    """
    pair = alignment.pair
    if pair.literals is None:
        return {}
    source = _translation_holders(pair.literals.source, pair.source.num_relations)
    target = _translation_holders(pair.literals.target, pair.target.num_relations)
    matches = alignment.best_targets()
    found: dict[int, str] = {}
    for first, second in pair.literals.pairs.tolist():
        if first not in source or matches[source[first]] != target.get(
            second, NO_MATCH
        ):
            continue
        if matches[source[first]] == NO_MATCH:
            continue
        names = (
            pair.literals.source.entity_name(first),
            pair.literals.target.entity_name(second),
        )
        for name in names:
            if ARROW in name:
                found.setdefault(source[first], name.strip('"'))
    return found


def _translation_holders(graph: KnowledgeGraph, num_relations: int) -> dict[int, int]:
    """Return the entity of each value that is compared with a translation.

    Args:
        graph: A graph with its values as nodes.
        num_relations: The number of relations that are not attributes.
    """
    attributes = [
        attribute
        for attribute in range(num_relations, graph.num_relations)
        if graph.relation_name(attribute) == TRANSLATION
    ]
    held = graph.triples[np.isin(graph.triples[:, 1], attributes[-1:])]
    return {value: entity for entity, _, value in held.tolist()}


def _joined(values: IntArray, pairs: IntArray) -> tuple[IntArray, IntArray]:
    """Return each entity with each target value that a value of it matches."""
    order = np.argsort(pairs[:, 0], kind="stable")
    first, end = (
        np.searchsorted(pairs[order, 0], values[:, 1], side=side)
        for side in ("left", "right")
    )
    counts = end - first
    rows = np.repeat(np.arange(len(values)), counts)
    places = (
        np.arange(len(rows))
        - np.repeat(np.cumsum(counts) - counts, counts)
        + first[rows]
    )
    return values[rows, 0], pairs[order[places], 1]
