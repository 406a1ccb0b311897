"""Writes suggestions as tables."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from emea.answer.exporting import DIGITS, cell
from emea.data.graph_pair import GraphPair
from emea.record.checked_files import write_lines
from emea.suggest.suggestion import Suggestion

TSV_FILE, JSON_FILE, PAGE_FILE = "suggestions.tsv", "suggestions.jsonl", "review.html"
COLUMNS = ("source", "candidate", "probability", "score", "uncertainty", "influence", "degree")


def write_suggestions(
    folder: Path, pair: GraphPair, suggestions: Sequence[Suggestion]
) -> list[Path]:
    """Write suggestions as TSV, with the best candidate, and as JSON Lines, with all candidates."""
    write_lines(folder / TSV_FILE, _rows(pair, suggestions))
    write_lines(
        folder / JSON_FILE,
        (json.dumps(one, ensure_ascii=False) for one in _objects(pair, suggestions)),
    )
    return [folder / TSV_FILE, folder / JSON_FILE]


def _rows(pair: GraphPair, suggestions: Sequence[Suggestion]) -> Iterator[str]:
    yield "\t".join(COLUMNS)
    for one in suggestions:
        target, prob = one.candidates[0] if one.candidates else (None, 0.0)
        best = "" if target is None else cell(pair.target.entity_name(target))
        yield "\t".join(
            [
                cell(pair.source.entity_name(one.source)),
                best,
                f"{prob:.6f}",
                f"{one.score:.4f}",
                f"{one.uncertainty:.4f}",
                f"{one.influence:.4f}",
                str(one.degree),
            ]
        )


def _objects(pair: GraphPair, suggestions: Sequence[Suggestion]) -> Iterator[dict[str, object]]:
    for one in suggestions:
        yield {
            "source": pair.source.entity_name(one.source),
            "candidates": [
                {"target": pair.target.entity_name(target), "probability": round(prob, DIGITS)}
                for target, prob in one.candidates
            ],
            "score": round(one.score, DIGITS),
            "uncertainty": round(one.uncertainty, DIGITS),
            "influence": round(one.influence, DIGITS),
            "degree": one.degree,
        }
