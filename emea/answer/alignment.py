"""The alignment of a run, by source entity, as export formats write it."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from emea.data.arrays import NO_MATCH, FloatArray, IntArray
from emea.data.entity_kinds import EntityKind, entity_kinds, is_blank
from emea.data.graph_pair import GraphPair
from emea.data.names import entity_iri


@dataclass(frozen=True)
class Origin:
    """The provenance of an alignment, for formats that can contain it.

    Args:
        run_id: Id of the run, a uuid4 as hexadecimal digits.
        run_name: Name of the run.
        date: Date of the run, ISO 8601.
        tool_version: Version of this package and its commit.
        settings: Decoding and threshold, as text.
    """

    run_id: str
    run_name: str
    date: str
    tool_version: str
    settings: str


class Row(NamedTuple):
    """One source entity, by name.

    ``target`` is ``None`` and ``prob`` is 0 if the entity has no match. ``candidates`` are the most
    probable targets, best first, with or without a match.
    """

    source: str
    target: str | None
    prob: float
    is_given: bool
    candidates: list[tuple[str, float]]
    source_label: str | None = None
    target_label: str | None = None


@dataclass(frozen=True, eq=False)
class Alignment:
    """At most one target for each source entity of a pair of graphs.

    Args:
        pair: The graphs.
        origin: Provenance of the alignment.
        targets: ``[num_source]`` target of each source entity, or ``NO_MATCH``.
        probs: ``[num_source]`` its probability, 0 without a match.
        is_given: ``[num_source]`` whether the match is a training link.
        candidates: ``[num_source, k]`` the most probable targets, best first.
        candidate_probs: ``[num_source, k]`` their probabilities; 0 marks an empty slot.
    """

    pair: GraphPair
    origin: Origin
    targets: IntArray
    probs: FloatArray
    is_given: npt.NDArray[np.bool_]
    candidates: IntArray
    candidate_probs: FloatArray

    def rows(self, num_candidates: int | None = None) -> Iterator[Row]:
        """Yield the source entities in the order of their ids.

        Args:
            num_candidates: Maximum number of candidates per row; ``None`` means all.
        """
        name_of, target_name = self.pair.source.entity_name, self.pair.target.entity_name
        best = (self.candidates[:, :num_candidates], self.candidate_probs[:, :num_candidates])
        columns = (self.targets, self.probs, self.is_given, *best)
        values = zip(*(column.tolist() for column in columns), strict=True)
        for source, (target, prob, is_given, others, other_probs) in enumerate(values):
            scored = zip(others, other_probs, strict=True)
            yield Row(
                name_of(source),
                None if target == NO_MATCH else target_name(target),
                prob,
                is_given,
                [(target_name(other), share) for other, share in scored if share > 0],
                self.pair.source.entity_label(source),
                None if target == NO_MATCH else self.pair.target.entity_label(target),
            )


logger = logging.getLogger(__name__)

PREDICATES = {
    EntityKind.INDIVIDUAL: "sameAs",
    EntityKind.CLASS: "equivalentClass",
    EntityKind.PROPERTY: "equivalentProperty",
}
"""Local name of the OWL property that states that two entities of a kind are the same."""


@dataclass(frozen=True)
class Statement:
    """What is stated about one source entity.

    Args:
        row: The entity's row of the answer.
        source_iri: Its IRI.
        target_iri: The IRI of its target; ``None`` if it is unmatched.
        kind: What both entities are, which decides the OWL property.
    """

    row: Row
    source_iri: str
    target_iri: str | None
    kind: EntityKind


def statements(alignment: Alignment) -> Iterator[Statement]:
    """Yield what can be stated about each source entity, in the order of their ids.

    Blank nodes are left out, because their names mean nothing outside their file. Pairs of
    entities of different kinds, such as a class and an individual, are left out, because OWL has
    no property that equates them.
    """
    pair = alignment.pair
    source_kinds, target_kinds = entity_kinds(pair.source), entity_kinds(pair.target)
    num_mixed = 0
    answers = zip(alignment.targets.tolist(), source_kinds.tolist(), strict=True)
    for row, (target, kind) in zip(alignment.rows(0), answers, strict=True):
        if is_blank(row.source) or (row.target is not None and is_blank(row.target)):
            continue
        if target != NO_MATCH and target_kinds[target] != kind:
            num_mixed += 1
            continue
        source_iri = entity_iri(row.source, pair.name, "source")
        target_iri = None
        if row.target is not None:
            target_iri = entity_iri(row.target, pair.name, "target")
        yield Statement(row, source_iri, target_iri, EntityKind(kind))
    if num_mixed:
        logger.info(
            "Left out %d pairs that join entities of different kinds, such as a class and an "
            "individual; alignment.tsv lists them.",
            num_mixed,
        )
