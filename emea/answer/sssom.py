"""Writes an alignment as SSSOM."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from urllib.parse import quote
from uuid import UUID, uuid5

from emea.answer.alignment import (
    EXACT,
    PREDICATES,
    Alignment,
    Origin,
    statements,
    supported,
    word_translations,
)
from emea.answer.curation import ORCID, ORCID_NAMESPACE, REJECTED, Curated, author_of
from emea.data.entity_kinds import (
    NO_TERM_FOUND,
    OWL,
    RDF,
    RDFS,
    EntityKind,
    entity_kinds,
    is_blank,
)
from emea.data.names import EMEA, entity_iri, entity_title, entity_uri

BUILT_IN = {"rdf": RDF, "rdfs": RDFS, "owl": OWL}
"""Prefixes that SSSOM defines, for the terms that occur in nearly every RDF graph."""

_FIRST_SEGMENT = re.compile(r"[^/?#]*")


class CompactURIs:
    """Shortens the URIs of one side to CURIEs.

    There is one prefix for each URI scheme: the longest beginning, up to a separator, that all
    URIs of that scheme share. Terms of RDF, RDFS and OWL have their usual prefixes, so that they do
    not shorten this beginning. A URI whose remainder cannot be the reference of a CURIE (it is
    empty, or its first segment contains a colon) is written in full.

    Args:
        uris: All URIs to shorten.
        side: ``source`` or ``target``; the names of prefixes begin with it, as in
            ``source_http``.
        known: Prefixes of the other side. A beginning that has one of them keeps it, because two
            prefixes must not replace the same beginning.

    Attributes:
        prefixes: The beginning of URIs by the prefix that replaces it.
    """

    def __init__(
        self, uris: Sequence[str], side: str, known: Mapping[str, str] | None = None
    ) -> None:
        self.side = side
        by_name: dict[str, list[str]] = {}
        for uri in uris:
            # without the last character, because the reference must not be empty
            by_name.setdefault(self._prefix(uri), []).append(uri[:-1])
        shared = {
            name: BUILT_IN.get(name) or _shared(starts)
            for name, starts in by_name.items()
        }
        names = {start: name for name, start in (known or {}).items()}
        self._names = {name: names.get(start, name) for name, start in shared.items()}
        self.prefixes = {self._names[name]: start for name, start in shared.items()}

    def __call__(self, uri: str) -> str:
        """Return ``prefix:reference``, or the URI itself if that would not be a valid CURIE."""
        name = self._names[self._prefix(uri)]
        reference = uri[len(self.prefixes[name]) :]
        first = _FIRST_SEGMENT.match(reference)
        if (
            not reference
            or reference.startswith("//")
            or first is None
            or ":" in first.group()
        ):
            return uri
        return f"{name}:{reference}"

    def _prefix(self, uri: str) -> str:
        for name, namespace in BUILT_IN.items():
            if uri.startswith(namespace):
                return name
        if uri.startswith(EMEA):
            return f"{self.side}_emea"
        # a scheme may contain a plus sign, the name of a prefix may not
        return f"{self.side}_{uri.partition(':')[0].replace('+', '-')}"


def _shared(starts: Sequence[str]) -> str:
    # what the first and the last in alphabetical order share, all of them share
    first = min(starts)
    last = max(starts)
    same = takewhile(lambda both: both[0] == both[1], zip(first, last, strict=False))
    start = first[: sum(1 for _ in same)]
    return start[: max(map(start.rfind, "/#:")) + 1]


MATCHED = "semapv:StructuralMatching"
"""Embeddings and rules use the structure of the graphs."""

LEXICAL = "semapv:LexicalMatching"
"""The entities have equal or similar literals, and no matched neighbours."""

COMPOSITE = "semapv:CompositeMatching"
"""Both literals and matched neighbours support the match."""

GIVEN = "semapv:UnspecifiedMatching"
"""How the links of the data were found is unknown."""

CURATED = "semapv:ManualMappingCuration"
"""A person decided about the pair."""

LICENSE = "https://w3id.org/sssom/license/unspecified"
"""SSSOM requires a license, which only the owner of the data can choose."""

COMMENT = (
    f"{NO_TERM_FOUND} says that no target was accepted, not that there is none; "
    f"{GIVEN} marks the links that the run was given."
)

COLUMNS = (
    "subject_id",
    "subject_label",
    "subject_type",
    "predicate_id",
    "object_id",
    "object_label",
    "object_type",
    "mapping_justification",
    "mapping_cardinality",
    "confidence",
)

CURATION_COLUMNS = ("predicate_modifier", "author_id", "author_label", "mapping_date")
"""Further columns of an alignment that follows decisions of a person."""

TRANSLATION_COLUMNS = ("subject_preprocessing", "object_preprocessing", "comment")
"""Further columns of an alignment for which texts were translated with a dictionary."""

PREPROCESSING = "|".join(
    f"semapv:{name}"
    for name in ("CaseNormalization", "BlankNormalisation", "PunctuationElemination")
)
"""Normal forms of texts that are compared, in the spelling of the vocabulary."""

NOT = "Not"
"""Modifier of the predicate of a rejected pair."""

TYPES = {
    EntityKind.INDIVIDUAL: "owl named individual",
    EntityKind.CLASS: "owl class",
    EntityKind.PROPERTY: "rdf property",
}


def _compact_uris(alignment: Alignment) -> tuple[CompactURIs, CompactURIs]:
    """Return what shortens the URIs of the subjects, and those of the objects."""
    pair = alignment.pair
    subjects = [
        entity_uri(entity_iri(name, pair.name, "source"))
        for name in pair.source.all_entity_names
        if not is_blank(name)
    ]
    matched = sorted(set(alignment.targets[alignment.targets >= 0].tolist()))
    named = [*map(pair.target.entity_name, matched)]
    named += [one.target for one in alignment.rejected]
    objects = [
        entity_uri(entity_iri(name, pair.name, "target"))
        for name in named
        if not is_blank(name)
    ]
    of_subject = CompactURIs(subjects, "source")
    return of_subject, CompactURIs(objects, "target", known=of_subject.prefixes)


def sssom_lines(alignment: Alignment) -> Iterator[str]:
    """Yield the header and one line for each source entity; unmatched ones have NoTermFound.

    Pairs that a person rejected follow, with the predicate modifier ``Not``. Blank nodes and pairs
    of entities of different kinds are left out.
    """
    of_subject, of_object = _compact_uris(alignment)
    prefixes = of_subject.prefixes | of_object.prefixes
    is_curated = bool(alignment.accepted or alignment.rejected)
    translations = word_translations(alignment)
    people = {ORCID: ORCID_NAMESPACE} if _names_orcid(alignment) else {}
    stated = list(statements(alignment))
    probs = [one.row.prob for one in stated if one.target_iri is not None]
    yield from header_lines(
        alignment.pair.name, alignment.origin, prefixes | people, COMMENT, probs=probs
    )
    further = (TRANSLATION_COLUMNS if translations else ()) + (
        CURATION_COLUMNS if is_curated else ()
    )
    yield "\t".join((*COLUMNS, *further))
    by_structure, by_literals = supported(alignment)
    is_match = alignment.targets >= 0
    of_source, of_target = (
        Counter(column[is_match].tolist())
        for column in (alignment.entities, alignment.targets)
    )
    for one in stated:
        row = one.row
        kind = TYPES[one.kind]
        decision = None
        if row.target is not None:
            decision = alignment.accepted.get((row.source, row.target))
        why = CURATED
        if decision is None:
            why = _justification(
                row.is_given,
                bool(by_structure[one.source]),
                bool(by_literals[one.source]),
            )
        found = (NO_TERM_FOUND, "", "")
        cardinality = "1:0"
        confidence = ""
        if one.target_iri is not None:
            target_iri = of_object(entity_uri(one.target_iri))
            found = (target_iri, row.target_label or "", kind)
            sides = of_target[one.target] > 1, of_source[one.source] > 1
            cardinality = ":".join("n" if has_several else "1" for has_several in sides)
            confidence = shown_confidence(row.prob)
        subject_iri = of_subject(entity_uri(one.source_iri))
        subject = (subject_iri, row.source_label, kind)
        cells: tuple[str, ...] = (
            *(*subject, one.predicate, *found),
            *(why, cardinality, confidence),
        )
        if translations:
            cells += _translation(translations.get(one.source), why)
        curation = _curation(decision, alignment.origin.date) if is_curated else ()
        yield "\t".join(map(sssom_cell, (*cells, *curation)))
    empty = ("",) * len(TRANSLATION_COLUMNS if translations else ())
    yield from _rejected_lines(alignment, of_subject, of_object, empty)


def _justification(is_given: bool, by_structure: bool, by_literals: bool) -> str:
    """Return what supports a match about which no person decided."""
    if is_given:
        return GIVEN
    if by_literals:
        return COMPOSITE if by_structure else LEXICAL
    return MATCHED


def _translation(text: str | None, why: str) -> tuple[str, str, str]:
    """Return the cells of ``TRANSLATION_COLUMNS``; literals that support no match have none."""
    if why not in (LEXICAL, COMPOSITE):
        return "", "", ""
    comment = "" if text is None else f"translated: {text}"
    return PREPROCESSING, PREPROCESSING, comment


def _names_orcid(alignment: Alignment) -> bool:
    """Return whether the author of a decision has an ORCID."""
    decisions = (*alignment.accepted.values(), *alignment.rejected)
    return any(author_of(one.author).id.startswith(f"{ORCID}:") for one in decisions)


def _curation(decision: Curated | None, date: str) -> tuple[str, str, str, str]:
    """Return the cells of ``CURATION_COLUMNS``; a match of the run has its date."""
    if decision is None:
        return "", "", "", date
    author = author_of(decision.author)
    modifier = NOT if decision.decision == REJECTED else ""
    return modifier, author.id, author.label, decision.date or date


def _rejected_lines(
    alignment: Alignment,
    of_subject: CompactURIs,
    of_object: CompactURIs,
    further: tuple[str, ...],
) -> Iterator[str]:
    """Yield a line for each pair that a person rejected, with further cells before its author."""
    pair = alignment.pair
    kinds = entity_kinds(pair.source)
    sources = {name: entity for entity, name in enumerate(pair.source.all_entity_names)}
    targets = {name: entity for entity, name in enumerate(pair.target.all_entity_names)}
    for one in alignment.rejected:
        is_known = one.source in sources and one.target in targets
        if not is_known or is_blank(one.source) or is_blank(one.target):
            continue
        source = sources[one.source]
        target = targets[one.target]
        kind = EntityKind(kinds[source])
        predicate = EXACT if alignment.vocabulary == "skos" else PREDICATES[kind]
        subject = of_subject(entity_uri(entity_iri(one.source, pair.name, "source")))
        object = of_object(entity_uri(entity_iri(one.target, pair.name, "target")))
        cells = (
            *(subject, entity_title(pair.source, source), TYPES[kind]),
            predicate,
            *(object, entity_title(pair.target, target), TYPES[kind]),
            *(CURATED, "", ""),
            *further,
            *_curation(one, alignment.origin.date),
        )
        yield "\t".join(map(sssom_cell, cells))


def shown_confidence(prob: float) -> str:
    """Return a probability without zeros at its end."""
    return f"{prob:.6f}".rstrip("0").rstrip(".")


def header_lines(
    name: str,
    origin: Origin,
    prefixes: Mapping[str, str],
    comment: str,
    part: str = "",
    *,
    sides: tuple[str, str] = ("source", "target"),
    probs: Sequence[float] = (),
) -> Iterator[str]:
    """Yield slots in the order of the standard, with strings in JSON, which is also YAML.

    Args:
        name: Name of the pair of graphs.
        origin: Provenance of the mappings.
        prefixes: The beginning of URIs by prefix.
        comment: A remark about all mappings.
        part: Distinguishes mapping sets of the same run and settings.
        sides: What subjects and objects belong to.
        probs: The confidence of each mapping. Their mean is the expected share of right ones.
    """
    yield "#curie_map:"
    # the sources are references to entities, whose prefixes have to be declared
    declared = {**prefixes, "urn": "urn:"}
    for prefix in sorted(declared):
        yield f"#  {prefix}: {json.dumps(declared[prefix], ensure_ascii=False)}"
    data = quote(name, safe="")
    # other export settings give another mapping set of the same run
    identity = uuid5(UUID(origin.run_id), f"{origin.settings}{part}")
    slots = {
        "mapping_set_id": f"urn:uuid:{identity}",
        "mapping_set_description": f"{origin.run_name}: {origin.settings}",
        "license": origin.license or LICENSE,
        "subject_source": f"{EMEA}{data}:{sides[0]}",
        "object_source": f"{EMEA}{data}:{sides[1]}",
        "mapping_tool": "emea",
        "mapping_tool_version": origin.tool_version,
        "comment": comment,
    }
    for slot, value in slots.items():
        yield f"#{slot}: {json.dumps(value, ensure_ascii=False)}"
    if probs:
        yield f"#mapping_set_confidence: {shown_confidence(sum(probs) / len(probs))}"
    yield f"#mapping_date: {origin.date}"  # without quotes: YAML reads it as a date


def sssom_cell(text: str) -> str:
    """Quote a text that contains separators or quotes."""
    if any(mark in text for mark in '\t\n\r"'):
        return '"' + text.replace('"', '""') + '"'
    return text
