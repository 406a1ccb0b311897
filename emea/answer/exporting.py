"""Writes a decision to export files: tab-separated, JSON lines, N-Triples and SSSOM."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from emea.answer.alignment import PREDICATES, Alignment, Origin, Row, statements
from emea.answer.decision import Decision
from emea.answer.sssom import sssom_lines
from emea.config.settings.execution import ExportSettings
from emea.data.arrays import NO_MATCH, FloatArray, IntArray
from emea.data.entity_kinds import OWL
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.record.checked_files import write_lines
from emea.record.run_record import RunHeader


def write_alignment(
    folder: Path,
    pair: GraphPair,
    header: RunHeader,
    decoder: str,
    decision: Decision,
    settings: ExportSettings,
) -> list[Path]:
    """Write an alignment in all requested formats.

    Args:
        folder: Output folder.
        pair: The graphs, with the names of the entities.
        header: Header of the run.
        decoder: Name of the decoder.
        decision: The selected matches.
        settings: Formats and number of candidates.

    Returns:
        The written files.
    """
    probs = decision.answer.probs.max(1).values.cpu().numpy()
    targets = decision.answer.best_targets().cpu().numpy()
    is_given = np.zeros(len(probs), dtype=bool)
    is_given[decision.labels[:, 0].cpu().numpy()] = True
    candidates, candidate_probs = top_candidates(decision.beliefs, settings.top_k)
    alignment = Alignment(
        pair=pair,
        origin=origin_of(header, decoder, decision.threshold),
        targets=np.where(probs > 0, targets, NO_MATCH),
        probs=probs,
        is_given=is_given,
        candidates=candidates,
        candidate_probs=candidate_probs,
    )
    return write_formats(folder, FORMATS, settings.formats, alignment)


def answered_pairs(decision: Decision) -> dict[int, tuple[int, float]]:
    """Return target and probability by source entity, rounded as in ``alignment.tsv``."""
    probs = decision.answer.probs.max(1).values.tolist()
    targets = decision.answer.best_targets().tolist()
    pairs = enumerate(zip(targets, probs, strict=True))
    return {source: (target, round(prob, DIGITS)) for source, (target, prob) in pairs if prob > 0}


def top_candidates(beliefs: Beliefs, num: int) -> tuple[IntArray, FloatArray]:
    """Return the most probable targets, ``[num_source, num]``, best first, with probabilities."""
    targets, probs = beliefs.targets.cpu().numpy(), beliefs.probs.cpu().numpy()
    # A stable sort keeps the neural order for ties, as in the answer.
    order = np.argsort(-probs, axis=1, kind="stable")[:, :num]
    return np.take_along_axis(targets, order, 1), np.take_along_axis(probs, order, 1)


def origin_of(header: RunHeader, decoder: str, threshold: float) -> Origin:
    """Return the provenance of an alignment.

    Args:
        header: Header of the run.
        decoder: Name of the decoder.
        threshold: Minimum probability of a match.
    """
    version, commit = (header.tags.get(name, "unknown") for name in ("emea_version", "commit"))
    least = "only training links" if threshold == inf else f"threshold={threshold!r}"
    return Origin(
        run_id=header.run_id,
        run_name=header.name,
        date=datetime.fromtimestamp(header.start_time / 1000, UTC).date().isoformat(),
        tool_version=version if commit == "unknown" else f"{version}+{commit[:10]}",
        settings=f"decoding={decoder}, {least}",
    )


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


ALIGNMENT_FILE = "alignment.tsv"
"""The alignment file that every run writes."""

FORMATS: dict[str, dict[str, Callable[[Alignment], Iterator[str]]]] = {
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


def write_formats(
    folder: Path,
    known: Mapping[str, Mapping[str, Callable[..., Iterator[str]]]],
    formats: Collection[str],
    *content: object,
) -> list[Path]:
    """Write the files of some formats; each file is written atomically.

    Args:
        folder: Output folder; it is created if it does not exist.
        known: Files of each format and the functions that produce their lines.
        formats: The requested formats. ``tsv`` is always written, unknown formats are ignored.
        content: The arguments of these functions.

    Returns:
        The written files.
    """
    written = []
    for name, files in known.items():
        if name == ALWAYS or name in formats:
            for file, lines in files.items():
                write_lines(folder / file, lines(*content))
                written.append(folder / file)
    return written
