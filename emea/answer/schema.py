"""The mapping of relations and classes that follows from an alignment, as rows and files."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from emea.answer.alignment import Origin
from emea.answer.rdf import cell_lines
from emea.answer.settings import EXPORTS
from emea.answer.sssom import (
    COLUMNS,
    CompactURIs,
    header_lines,
    shown_confidence,
    sssom_cell,
)
from emea.data.entity_kinds import OWL, RDFS, is_blank
from emea.data.names import cell, entity_iri, entity_uri

Triple = tuple[str, str, str]
Mapping = Literal["equivalent", "narrower", "broader", ""]


class TermMatch(NamedTuple):
    """A relation or class of the source graph and one of the target graph.

    Args:
        source: Name of the source term.
        target: Name of the target term.
        inverse: Whether the target relation is read from tail to head.
        mapping: ``equivalent``, ``narrower`` (the source term is included in the target term),
            ``broader`` (the target term is included in the source term), or empty if no inclusion
            is probable enough.
        source_in_target: Probability that the source term is included in the target term.
        target_in_source: Probability that the target term is included in the source term.
        evidence: Number of source triples whose counterpart has the target term.
        source_example: The most probable of these triples.
        target_example: Its counterpart.
    """

    source: str
    target: str
    inverse: bool
    mapping: Mapping
    source_in_target: float
    target_in_source: float
    evidence: int
    source_example: Triple
    target_example: Triple


@dataclass(frozen=True)
class Schema:
    """The mapping between the terms of two graphs.

    Args:
        name: Name of the pair of graphs.
        relations: Pairs of relations, most evidence first.
        classes: Pairs of classes, most evidence first.
    """

    name: str
    relations: Sequence[TermMatch]
    classes: Sequence[TermMatch]


def relation_lines(schema: Schema, _: Origin | None = None) -> Iterator[str]:
    """Yield lines of ``relations.tsv``."""
    ends = "source_head\tsource_tail\ttarget_head\ttarget_tail"
    yield f"source\ttarget\tdirection\t{_NUMBERS}\t{ends}"
    for row in schema.relations:
        direction = "inverse" if row.inverse else "same"
        triples = (*row.source_example[::2], *row.target_example[::2])
        yield "\t".join([*_names(row), direction, *_numbers(row), *map(cell, triples)])


def class_lines(schema: Schema, _: Origin | None = None) -> Iterator[str]:
    """Yield lines of ``classes.tsv``."""
    yield f"source\ttarget\t{_NUMBERS}\tsource_instance\ttarget_instance"
    for row in schema.classes:
        instances = row.source_example[0], row.target_example[0]
        yield "\t".join([*_names(row), *_numbers(row), *map(cell, instances)])


_NUMBERS = "mapping\tsource_in_target\ttarget_in_source\tevidence"


def _names(row: TermMatch) -> tuple[str, str]:
    return cell(row.source), cell(row.target)


def _numbers(row: TermMatch) -> tuple[str, ...]:
    shares = f"{row.source_in_target:.6f}", f"{row.target_in_source:.6f}"
    return (row.mapping, *shares, str(row.evidence))


class _Statement(NamedTuple):
    """A row whose mapping can be stated about IRIs."""

    row: TermMatch
    source: str
    target: str
    is_class: bool


def _statements(schema: Schema) -> Iterator[_Statement]:
    """Yield rows with a mapping, except for blank nodes and for terms that are the same IRI."""
    for is_class, rows in ((False, schema.relations), (True, schema.classes)):
        kind = "" if is_class else "-relation"
        for row in rows:
            if not row.mapping or is_blank(row.source) or is_blank(row.target):
                continue
            source = entity_iri(row.source, schema.name, f"source{kind}")
            target = entity_iri(row.target, schema.name, f"target{kind}")
            if source != target:
                yield _Statement(row, source, target, is_class)


def schema_triples(schema: Schema, _: Origin | None = None) -> Iterator[str]:
    """Yield N-Triples: equivalences and inclusions of relations and classes.

    A relation that is included in the inverse of another one is stated with a blank node for the
    inverse, as OWL 2 prescribes.
    """
    for number, (row, source, target, is_class) in enumerate(_statements(schema)):
        if row.mapping == "equivalent":
            predicate = "equivalentClass" if is_class else "equivalentProperty"
            predicate = "inverseOf" if row.inverse else predicate
            yield f"<{source}> <{OWL}{predicate}> <{target}> ."
            continue
        predicate = f"{RDFS}subClassOf" if is_class else f"{RDFS}subPropertyOf"
        lower = f"<{source}>"
        upper = f"<{target}>"
        if row.inverse:
            yield f"_:inverse{number} <{OWL}inverseOf> {upper} ."
            upper = f"_:inverse{number}"
        if row.mapping == "broader":
            lower, upper = upper, lower
        yield f"{lower} <{predicate}> {upper} ."


RELATIONS_OF_CELLS = {"equivalent": "=", "narrower": "<", "broader": ">"}


def schema_cells(schema: Schema, _: Origin | None = None) -> Iterator[str]:
    """Yield the lines of ``schema.rdf``, without inverse relations, which it cannot express."""
    cells = (
        (one.source, one.target, _measure(one.row), RELATIONS_OF_CELLS[one.row.mapping])
        for one in _statements(schema)
        if not one.row.inverse
    )
    yield from cell_lines(schema.name, cells)


MATCHED = "semapv:InstanceBasedMatching"
"""The matches of entities decide which terms correspond."""


def schema_sssom_lines(schema: Schema, origin: Origin) -> Iterator[str]:
    """Yield SSSOM lines: the header and one line for each mapping.

    Inclusions in an inverse relation are left out, because SSSOM cannot express them.
    """
    stated = [one for one in _statements(schema) if _predicate(one) is not None]
    of_subject = CompactURIs([entity_uri(one.source) for one in stated], "source")
    objects = [entity_uri(one.target) for one in stated]
    of_object = CompactURIs(objects, "target", known=of_subject.prefixes)
    prefixes = of_subject.prefixes | of_object.prefixes
    comment = (
        "The confidence is the probability of the inclusion, or the smaller of both."
    )
    probs = [_measure(one.row) for one in stated]
    yield from header_lines(
        schema.name, origin, prefixes, comment, part="schema", probs=probs
    )
    columns = [name for name in COLUMNS if name != "mapping_cardinality"]
    yield "\t".join((*columns, "comment"))
    for one in stated:
        kind = "owl class" if one.is_class else "rdf property"
        cells = (
            *(
                of_subject(entity_uri(one.source)),
                one.row.source,
                kind,
                str(_predicate(one)),
            ),
            *(of_object(entity_uri(one.target)), one.row.target, kind),
            *(MATCHED, shown_confidence(_measure(one.row)), _comment(one)),
        )
        yield "\t".join(map(sssom_cell, cells))


def _predicate(stated: _Statement) -> str | None:
    row = stated.row
    is_class = stated.is_class
    if row.inverse:
        return "owl:inverseOf" if row.mapping == "equivalent" else None
    if row.mapping == "equivalent":
        return "owl:equivalentClass" if is_class else "owl:equivalentProperty"
    if row.mapping == "narrower":
        return "rdfs:subClassOf" if is_class else "rdfs:subPropertyOf"
    return "skos:narrowMatch"  # the object is narrower than the subject


def _measure(row: TermMatch) -> float:
    forth = row.source_in_target
    back = row.target_in_source
    return {"equivalent": min(forth, back), "narrower": forth, "broader": back}[
        row.mapping
    ]


def _comment(stated: _Statement) -> str:
    row = stated.row
    what = "instances" if stated.is_class else "triples"
    ours, theirs = (" ".join(one) for one in (row.source_example, row.target_example))
    text = f"{row.evidence} matched {what}, such as {ours} = {theirs}"
    return re.sub(r"\s+", " ", text)


RELATIONS_FILE = "relations.tsv"
SCHEMA_FORMATS = {one.name: one.schema_files for one in EXPORTS}
"""Files of each format, and the places of the functions that yield their lines. All of them take
the origin, because SSSOM states it."""
