"""The file formats of an alignment."""

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from emea.answer.alignment import Alignment, Row
from emea.answer.sssom import sssom_lines
from emea.answer.statements import PREDICATES, statements
from emea.data.arrays import NO_MATCH, IntArray
from emea.data.entity_kinds import OWL
from emea.data.graph import KnowledgeGraph
from emea.record.atomic import write_lines


def matched_lines(alignment: Alignment) -> Iterator[str]:
    """Yield lines of ``alignment.tsv``: source, target and probability of each match."""
    yield "source\ttarget\tprobability"
    rows = np.flatnonzero(alignment.targets != NO_MATCH)
    targets = _names(alignment.pair.target, alignment.targets[rows])
    yield from _lines(alignment, rows, targets, alignment.probs[rows].tolist())


def unmatched_lines(alignment: Alignment) -> Iterator[str]:
    """Yield lines of ``unmatched.tsv``: entities without a match, with their best candidate."""
    yield "source\tcandidate\tprobability"
    rows = np.flatnonzero(alignment.targets == NO_MATCH)
    candidates, probs = [""] * len(rows), [0.0] * len(rows)
    if alignment.candidates.shape[1]:
        best, best_probs = alignment.candidates[rows, 0], alignment.candidate_probs[rows, 0]
        known = np.flatnonzero(best_probs > 0)
        names = _names(alignment.pair.target, best[known])
        for place, name, prob in zip(
            known.tolist(), names, best_probs[known].tolist(), strict=True
        ):
            candidates[place], probs[place] = name, prob
    yield from _lines(alignment, rows, candidates, probs)


def _lines(
    alignment: Alignment, rows: IntArray, targets: list[str], probs: list[float]
) -> Iterator[str]:
    """Yield a line with the name of each source entity, the other name and the probability."""
    sources = _names(alignment.pair.source, rows)
    for source, target, prob in zip(sources, targets, probs, strict=True):
        yield f"{source}\t{target}\t{prob:.6f}"


def _names(graph: KnowledgeGraph, entities: IntArray) -> list[str]:
    """Return the names of entities as cells of a tab-separated file."""
    names = graph.all_entity_names
    found = [names[entity] for entity in entities.tolist()]
    text = "".join(found)
    if any(mark in text for mark in "\t\n\r"):
        return [cell(name) for name in found]
    return found


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
