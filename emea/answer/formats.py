"""The file formats of an alignment."""

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
    """Yield lines of ``alignment.tsv``: source, target and probability of each match."""
    yield "source\ttarget\tprobability"
    for row in alignment.rows(0):
        if row.target is not None:
            yield f"{cell(row.source)}\t{cell(row.target)}\t{row.prob:.6f}"


def unmatched_lines(alignment: Alignment) -> Iterator[str]:
    """Yield lines of ``unmatched.tsv``: entities without a match, with their best candidate."""
    yield "source\tcandidate\tprobability"
    for row in alignment.rows(1):
        if row.target is None:
            candidate, prob = row.candidates[0] if row.candidates else ("", 0.0)
            yield f"{cell(row.source)}\t{cell(candidate)}\t{prob:.6f}"


def cell(name: str) -> str:
    """Escape tabs and line breaks in a name.

    Backslashes are not escaped. Names that were read from files contain neither tabs nor line
    breaks, so only graphs built in Python are affected.
    """
    return name.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


ENCODER = json.JSONEncoder(ensure_ascii=False)
DIGITS = 6
"""Decimal places of probabilities."""


def json_lines(alignment: Alignment) -> Iterator[str]:
    """Yield lines of ``alignment.jsonl``: one JSON object per source entity.

    Candidates whose probability rounds to 0 are left out.
    """
    for row in alignment.rows():
        yield ENCODER.encode(_object(row))


def _object(row: Row) -> dict[str, Any]:
    candidates = [(target, round(prob, DIGITS)) for target, prob in row.candidates]
    labels = {"source_label": row.source_label, "target_label": row.target_label}
    return {
        "source": row.source,
        "target": row.target,
        **{key: label for key, label in labels.items() if label is not None},
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
"""The alignment file that every run writes."""

FORMATS: dict[str, dict[str, Lines]] = {
    "tsv": {ALIGNMENT_FILE: matched_lines, "unmatched.tsv": unmatched_lines},
    "nt": {"alignment.nt": owl_triples},
    "sssom": {"alignment.sssom.tsv": sssom_lines},
    "jsonl": {"alignment.jsonl": json_lines},
}
"""Files of each format and the functions that produce their lines."""

ALIGNMENT_FILES = frozenset(file for files in FORMATS.values() for file in files)
"""Names of all alignment files."""

ALWAYS = "tsv"
"""The format that is always written."""


def write_formats(folder: Path, alignment: Alignment, formats: Collection[str]) -> list[Path]:
    """Write an alignment in some formats; each file is written atomically.

    Args:
        folder: Output folder; it is created if it does not exist.
        alignment: The alignment.
        formats: Keys of ``FORMATS``; ``tsv`` is always included.

    Returns:
        The written files.
    """
    written = []
    for name, files in FORMATS.items():
        if name == ALWAYS or name in formats:
            for file, lines in files.items():
                write_lines(folder / file, lines(alignment))
                written.append(folder / file)
    return written
