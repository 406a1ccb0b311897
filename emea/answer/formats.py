"""The files an alignment can be written as."""

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from emea.answer.alignment import Alignment, Row
from emea.answer.sssom import sssom_lines
from emea.answer.statements import PREDICATES, statements
from emea.data.entity_kinds import OWL
from emea.record.atomic import write_lines


def matched_lines(alignment: Alignment) -> Iterator[str]:
    """Source, target, probability of each source entity that has a target."""
    yield "source\ttarget\tprobability"
    for row in alignment.rows(0):
        if row.target is not None:
            yield f"{cell(row.source)}\t{cell(row.target)}\t{row.prob:.6f}"


def unmatched_lines(alignment: Alignment) -> Iterator[str]:
    """Each source entity that has none, with its best candidate where there is one."""
    yield "source\tcandidate\tprobability"
    for row in alignment.rows(1):
        if row.target is None:
            candidate, prob = row.candidates[0] if row.candidates else ("", 0.0)
            yield f"{cell(row.source)}\t{cell(candidate)}\t{prob:.6f}"


def cell(name: str) -> str:
    """The name without what would end a cell.

    A backslash stays as it is: the readers of data let neither tabs nor newlines into a name, so
    nobody meets an escaped one but those who build their graphs otherwise.
    """
    return name.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


ENCODER = json.JSONEncoder(ensure_ascii=False)
DIGITS = 6
"""Decimal places of a probability, as in the tab-separated file."""


def json_lines(alignment: Alignment) -> Iterator[str]:
    """Source, target or null, probability, whether it was given, and the candidates.

    Candidates whose probability rounds to 0 are left out.
    """
    for row in alignment.rows():
        yield ENCODER.encode(_object(row))


def _object(row: Row) -> dict[str, Any]:
    candidates = [(target, round(prob, DIGITS)) for target, prob in row.candidates]
    return {
        "source": row.source,
        "target": row.target,
        "probability": None if row.target is None else round(row.prob, DIGITS),
        "given": row.is_given,
        "candidates": [
            {"target": target, "probability": prob} for target, prob in candidates if prob > 0
        ],
    }


def owl_triples(alignment: Alignment) -> Iterator[str]:
    """Yield an N-Triples line for each source entity that has a target.

    Individuals are joined by ``owl:sameAs``, classes by ``owl:equivalentClass`` and properties by
    ``owl:equivalentProperty``.
    """
    for statement in statements(alignment):
        if statement.target_iri is not None:
            predicate = f"{OWL}{PREDICATES[statement.kind]}"
            yield f"<{statement.source_iri}> <{predicate}> <{statement.target_iri}> ."


Lines = Callable[[Alignment], Iterator[str]]

ALIGNMENT_FILE = "alignment.tsv"
"""The answer of every run, whatever else was asked for."""

FORMATS: dict[str, dict[str, Lines]] = {
    "tsv": {ALIGNMENT_FILE: matched_lines, "unmatched.tsv": unmatched_lines},
    "nt": {"alignment.nt": owl_triples},
    "sssom": {"alignment.sssom.tsv": sssom_lines},
    "jsonl": {"alignment.jsonl": json_lines},
}
"""What each format writes, by the file's name."""

ALIGNMENT_FILES = frozenset(file for files in FORMATS.values() for file in files)
"""All of them."""

ALWAYS = "tsv"
"""Written whatever else is."""


def write_formats(folder: Path, alignment: Alignment, formats: Collection[str]) -> list[Path]:
    """Write an alignment in some formats, each file at once or not at all.

    Args:
        folder: where to; made if missing.
        alignment: what to write.
        formats: keys of ``FORMATS``; ``tsv`` need not be among them.

    Returns:
        The files.
    """
    written = []
    for name, files in FORMATS.items():
        if name == ALWAYS or name in formats:
            for file, lines in files.items():
                write_lines(folder / file, lines(alignment))
                written.append(folder / file)
    return written
