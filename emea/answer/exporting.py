"""Writes a decision to export files: tab-separated, JSON lines, RDF and SSSOM."""

import json
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import numpy as np

from emea.answer.alignment import Alignment, Origin
from emea.answer.curation import ACCEPTED, REJECTED, Curated
from emea.answer.decision import Decision
from emea.answer.settings import EXPORTS, ExportSettings
from emea.data.arrays import NO_MATCH, FloatArray, IntArray
from emea.data.graph_pair import GraphPair
from emea.data.names import cell, entity_title
from emea.matching.beliefs import Beliefs
from emea.record.checked_files import write_lines
from emea.record.run_record import RunHeader


def write_alignment(
    folder: Path,
    pair: GraphPair,
    origin: Origin,
    decision: Decision,
    *,
    settings: ExportSettings,
    decisions: Sequence[Curated] = (),
) -> list[Path]:
    """Write an alignment in all requested formats.

    Args:
        folder: Output folder.
        pair: The graphs, with the names of the entities.
        origin: Provenance of the alignment.
        decision: The selected matches.
        settings: Formats and number of candidates.
        decisions: The decisions of a person that the run follows.

    Returns:
        The written files.
    """
    sources, targets, probs = selected(decision.answer)
    witnesses = decision.witnesses()
    given = set(map(tuple, decision.labels.tolist()))
    pairs = zip(sources.tolist(), targets.tolist(), strict=True)
    candidates, candidate_probs = top_candidates(decision.beliefs, settings.top_k)
    alignment = Alignment(
        pair=pair,
        origin=origin,
        targets=targets,
        probs=probs,
        is_given=np.array([both in given for both in pairs], dtype=bool),
        candidates=candidates,
        candidate_probs=candidate_probs,
        vocabulary=settings.vocabulary,
        close_below=settings.close_below or 0.0,
        witnesses=None if witnesses is None else witnesses.numpy(),
        sources=sources,
        accepted={one.pair: one for one in decisions if one.decision == ACCEPTED},
        rejected=[one for one in decisions if one.decision == REJECTED],
    )
    return write_formats(folder, FORMATS, settings.formats, alignment)


def selected(answer: Beliefs) -> tuple[IntArray, IntArray, FloatArray]:
    """Return source, target and probability of each match, ordered by source.

    A source entity without a match has one entry with ``NO_MATCH`` and probability 0. Its most
    probable match comes first.
    """
    targets, probs = top_candidates(answer, answer.num_candidates)
    shown = probs > 0
    shown[:, 0] = True
    sources = np.nonzero(shown)[0]
    return sources, np.where(probs > 0, targets, NO_MATCH)[shown], probs[shown]


def answered_pairs(decision: Decision) -> dict[int, tuple[int, float]]:
    """Return the best target of each source entity, with its probability as in the files."""
    found: dict[int, tuple[int, float]] = {}
    for source, target, prob in zip(
        *map(np.ndarray.tolist, selected(decision.answer)), strict=True
    ):
        if prob > 0:
            found.setdefault(source, (target, round(prob, DIGITS)))
    return found


def top_candidates(beliefs: Beliefs, num: int) -> tuple[IntArray, FloatArray]:
    """Return the most probable targets, ``[num_source, num]``, best first, with probabilities."""
    targets = beliefs.targets.cpu().numpy()
    probs = beliefs.probs.cpu().numpy()
    # A stable sort keeps the neural order for ties, as in the answer.
    order = np.argsort(-probs, axis=1, kind="stable")[:, :num]
    return np.take_along_axis(targets, order, 1), np.take_along_axis(probs, order, 1)


def start_date(header: RunHeader) -> str:
    """Return the date of a run, ISO 8601."""
    return datetime.fromtimestamp(header.start_time / 1000, UTC).date().isoformat()


def origin_of(
    header: RunHeader, decoder: str, threshold: float, license: str | None = None
) -> Origin:
    """Return the provenance of an alignment.

    Args:
        header: Header of the run.
        decoder: Name of the decoder.
        threshold: Minimum probability of a match.
        license: IRI of the licence of the mappings; ``None`` if it is not specified.
    """
    version, commit = (
        header.tags.get(name, "unknown") for name in ("emea_version", "commit")
    )
    least = "only training links" if threshold == inf else f"threshold={threshold!r}"
    return Origin(
        run_id=header.run_id,
        run_name=header.name,
        date=start_date(header),
        tool_version=version if commit == "unknown" else f"{version}+{commit[:10]}",
        settings=f"decoding={decoder}, {least}",
        license=license,
    )


def matched_lines(alignment: Alignment) -> Iterator[str]:
    """Yield lines of ``alignment.tsv``: source, target, probability and labels of each match.

    The matches of an ensemble also have the number of encoders that agree. Labels come last; an
    entity without a label is called by its name in words.
    """
    pair = alignment.pair
    counts = alignment.witnesses
    further = [
        *([] if counts is None else ["witnesses"]),
        "source_label",
        "target_label",
    ]
    yield "\t".join(["source", "target", "probability", *further])
    names = pair.source.all_entity_names
    others = pair.target.all_entity_names
    columns = alignment.entities, alignment.targets, alignment.probs
    for source, target, prob in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        if target != NO_MATCH:
            agreeing = [] if counts is None else [str(counts[source])]
            labels = (
                entity_title(pair.source, source),
                entity_title(pair.target, target),
            )
            cells = [
                cell(names[source]),
                cell(others[target]),
                f"{prob:.6f}",
                *agreeing,
            ]
            yield "\t".join([*cells, *map(cell, labels)])


def unmatched_lines(alignment: Alignment) -> Iterator[str]:
    """Yield lines of ``unmatched.tsv``: entities without a match, with their best candidate."""
    yield "source\tcandidate\tprobability\tsource_label\tcandidate_label"
    graphs = alignment.pair.source, alignment.pair.target
    names = alignment.pair.source.all_entity_names
    others = alignment.pair.target.all_entity_names
    for source in alignment.entities[alignment.targets == NO_MATCH].tolist():
        candidate = ""
        prob = 0.0
        labels = [entity_title(graphs[0], source), ""]
        if alignment.candidates.shape[1] and alignment.candidate_probs[source, 0] > 0:
            candidate = others[alignment.candidates[source, 0]]
            prob = alignment.candidate_probs[source, 0]
            best = int(alignment.candidates[source, 0])
            labels[1] = entity_title(graphs[1], best)
        cells = [cell(names[source]), cell(candidate), f"{prob:.6f}"]
        yield "\t".join([*cells, *map(cell, labels)])


ENCODER = json.JSONEncoder(ensure_ascii=False)
DIGITS = 6
"""Decimal places of probabilities."""


def json_lines(alignment: Alignment) -> Iterator[str]:
    """Yield lines of ``alignment.jsonl``: one JSON object per source entity and match.

    Candidates whose probability rounds to 0 are left out.
    """
    for row in alignment.rows():
        candidates = [(target, round(prob, DIGITS)) for target, prob in row.candidates]
        labels = {"source_label": row.source_label, "target_label": row.target_label}
        found = {
            "source": row.source,
            "target": row.target,
            **{key: label for key, label in labels.items() if label is not None},
            "probability": None if row.target is None else round(row.prob, DIGITS),
            "given": row.is_given,
            "candidates": [
                {"target": target, "probability": prob}
                for target, prob in candidates
                if prob > 0
            ],
        }
        yield ENCODER.encode(found)


FORMATS = {one.name: one.files for one in EXPORTS}
"""Files of each format, and the places of the functions that yield their lines."""


def write_formats(
    folder: Path,
    known: Mapping[str, Mapping[str, str]],
    formats: Collection[str],
    *content: object,
) -> list[Path]:
    """Write the files of some formats; each file is written atomically.

    Args:
        folder: Output folder; it is created if it does not exist.
        known: Files of each format, and the places of the functions that yield their lines.
        formats: The requested formats. ``tsv`` is always written, unknown formats are ignored.
        content: The arguments of these functions.

    Returns:
        The written files.
    """
    written = []
    for name, files in known.items():
        if name == "tsv" or name in formats:
            for file, place in files.items():
                lines: Callable[..., Iterator[str]] = pkgutil.resolve_name(place)
                write_lines(folder / file, lines(*content))
                written.append(folder / file)
    return written
