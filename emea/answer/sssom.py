"""Writes an alignment as SSSOM."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from urllib.parse import quote
from uuid import UUID, uuid5

from emea.answer.alignment import Alignment, Row
from emea.data.formats.sssom import NO_TERM_FOUND
from emea.data.names import EMEA, entity_iri

EMEA_PREFIX = "emea"


class CompactIris:
    """Prefixes for the IRIs of one side: one for each scheme, and one for ``urn:emea:``.

    What all IRIs of a scheme begin with, up to a separator, is the prefix: it needs no knowledge
    of vocabularies, and holds for one namespace as for many.

    Args:
        iris: all there are to shorten.
        side: begins the prefixes' names, such as ``source_http``.

    Attributes:
        prefixes: what each prefix stands for.
    """

    def __init__(self, iris: Sequence[str], side: str) -> None:
        self.side = side
        by_name: dict[str, list[str]] = {}
        for iri in iris:
            if not iri.startswith(EMEA):
                # without its last character: something must be left to refer to
                by_name.setdefault(self._prefix(iri), []).append(iri[:-1])
        self.prefixes = {EMEA_PREFIX: EMEA}
        self.prefixes |= {name: _shared(starts) for name, starts in by_name.items()}

    def __call__(self, iri: str) -> str:
        """The compact form, ``prefix:rest``."""
        name = EMEA_PREFIX if iri.startswith(EMEA) else self._prefix(iri)
        return f"{name}:{iri[len(self.prefixes[name]) :]}"

    def _prefix(self, iri: str) -> str:
        # a scheme may hold a plus, the name of a prefix may not
        return f"{self.side}_{iri.partition(':')[0].replace('+', '-')}"


def _shared(starts: Sequence[str]) -> str:
    # what the first and the last have in common in the order of characters, all have
    first, last = min(starts), max(starts)
    same = takewhile(lambda both: both[0] == both[1], zip(first, last, strict=False))
    start = first[: sum(1 for _ in same)]
    return start[: max(map(start.rfind, "/#:")) + 1]


SAME_AS = "owl:sameAs"
MATCHED = "semapv:StructuralMatching"
"""Embeddings and rules alike look at the graphs' structure, and at no names or values."""

GIVEN = "semapv:UnspecifiedMatching"
"""How the links that came with the data were found is not known here."""

LICENSE = "https://w3id.org/sssom/license/unspecified"
"""SSSOM asks for one, and only who owns the data can give it."""

COLUMNS = (
    "subject_id",
    "subject_label",
    "predicate_id",
    "object_id",
    "object_label",
    "mapping_justification",
    "confidence",
)


def sssom_lines(alignment: Alignment) -> Iterator[str]:
    """The header, and a line for each source entity; unmatched ones have ``NoTermFound``."""
    pair = alignment.pair
    subjects = [
        entity_iri(pair.source.entity_name(entity), pair.name, "source")
        for entity in range(pair.source.num_entities)
    ]
    objects = {
        target: entity_iri(pair.target.entity_name(target), pair.name, "target")
        for target in set(alignment.targets[alignment.targets >= 0].tolist())
    }
    of_subject = CompactIris(subjects, "source")
    of_object = CompactIris(list(objects.values()), "target")
    yield from _header(alignment, of_subject.prefixes | of_object.prefixes)
    yield "\t".join(COLUMNS)
    numbered = zip(subjects, alignment.targets.tolist(), alignment.rows(0), strict=True)
    for subject, target, row in numbered:
        found = of_object(objects[target]) if target in objects else NO_TERM_FOUND
        yield _line(of_subject(subject), found, row)


def _header(alignment: Alignment, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Slots in the order of the standard; strings as JSON has them, which YAML reads, too."""
    yield "#curie_map:"
    for name in sorted(prefixes):
        yield f"#  {name}: {json.dumps(prefixes[name], ensure_ascii=False)}"
    for slot, value in _slots(alignment).items():
        yield f"#{slot}: {json.dumps(value, ensure_ascii=False)}"
    yield f"#mapping_date: {alignment.origin.date}"  # a date, which a string would not be


def _slots(alignment: Alignment) -> dict[str, str]:
    origin, data = alignment.origin, quote(alignment.pair.name, safe="")
    # the same run answers otherwise with other settings: another set
    identity = uuid5(UUID(origin.run_id), origin.settings)
    return {
        "mapping_set_id": f"urn:uuid:{identity}",
        "mapping_set_description": f"{origin.run_name}: {origin.settings}",
        "license": LICENSE,
        "subject_type": "owl named individual",
        "subject_source": f"emea:{data}:source",
        "object_type": "owl named individual",
        "object_source": f"emea:{data}:target",
        "mapping_tool": "emea",
        "mapping_tool_version": origin.tool_version,
        "comment": f"{NO_TERM_FOUND} says that no target was accepted, not that there is none; "
        f"{GIVEN} marks the links that the run was given.",
    }


def _line(subject: str, found: str, row: Row) -> str:
    justification = GIVEN if row.is_given else MATCHED
    confidence = "" if row.target is None else f"{row.prob:.6f}".rstrip("0").rstrip(".")
    cells = (subject, row.source, SAME_AS, found, row.target or "", justification, confidence)
    return "\t".join(map(_cell, cells))


def _cell(text: str) -> str:
    if any(mark in text for mark in '\t\n\r"'):
        return '"' + text.replace('"', '""') + '"'
    return text
