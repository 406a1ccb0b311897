"""The answer of a run as statements about IRIs, for RDF and SSSOM."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from emea.answer.alignment import Alignment, Row
from emea.data.arrays import NO_MATCH
from emea.data.entity_kinds import EntityKind, entity_kinds, is_blank
from emea.data.names import entity_iri

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
