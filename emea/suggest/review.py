"""Writes suggestions as tables, and as a page on which a person decides; the page works offline."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from emea.answer.exporting import DIGITS, cell
from emea.data.graph_pair import GraphPair
from emea.explain import wording
from emea.explain.explainer import Explainer
from emea.explain.explanation import Case, Contribution, Unmatched
from emea.explain.text import card_text
from emea.record.checked_files import write_lines
from emea.results.page import html_document, page_style, resource
from emea.suggest.suggestion import Suggestion

TSV_FILE, JSON_FILE, PAGE_FILE = "suggestions.tsv", "suggestions.jsonl", "review.html"
COLUMNS = ("source", "candidate", "probability", "score", "uncertainty", "influence", "degree")

MOST_PIECES, MOST_NEIGHBOURS = 6, 12
"""Maximum number of shown pieces of evidence per candidate and of neighbours per entity."""


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
        names = f"{cell(pair.source.entity_name(one.source))}\t{best}\t{prob:.6f}"
        yield f"{names}\t{one.score:.4f}\t{one.uncertainty:.4f}\t{one.influence:.4f}\t{one.degree}"


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


def review_page(explainer: Explainer, suggestions: Sequence[Suggestion]) -> str:
    """Return the page: each suggestion with its candidates, their evidence and a choice.

    The page contains the run's labels, so that the links that it saves can start the next run. It
    shows nothing about test links.

    Args:
        explainer: Explains pairs of the run.
        suggestions: The suggestions.
    """
    run = explainer.run
    sections = [_section(explainer, one, place) for place, one in enumerate(suggestions, 1)]
    known = [*run.labels.tolist(), *run.split.supervision.validation.tolist()]
    names = run.pair.source.entity_name, run.pair.target.entity_name
    labels = [f"{cell(names[0](source))}\t{cell(names[1](target))}" for source, target in known]
    environment = wording.template_environment("emea.suggest")
    environment.filters |= {"paths": wording.paths, "cell": cell}
    body = environment.get_template("review.html").render(
        card=card_text(run),
        sections=sections,
        labels=labels,
        most_pieces=MOST_PIECES,
        key=run.header.run_id,
    )
    title = f"Review of {len(sections)} suggestions"
    style, script = page_style("emea.suggest", "review.css"), resource("emea.suggest", "review.js")
    return html_document(title, body, style, [script], kind="review")


def _section(explainer: Explainer, suggestion: Suggestion, place: int) -> dict[str, object]:
    cases = [explainer(suggestion.source, target).asked for target, _ in suggestion.candidates]
    neighbours = _all_neighbours(cases)
    return {
        "id": f"entity{place}",
        "suggestion": suggestion,
        "source": explainer.source.entity(suggestion.source),
        "neighbours": _named(neighbours),
        "num_more": max(0, len(neighbours) - MOST_NEIGHBOURS),
        "options": [
            # neighbours of a candidate that do not support it help to recognise it
            {"case": case, "around": _named(case.target_unmatched), "prob": prob}
            for case, (_, prob) in zip(cases, suggestion.candidates, strict=True)
        ],
    }


def _all_neighbours(cases: Sequence[Case]) -> list[Contribution | Unmatched]:
    """Return the neighbours of the source entity once each; every case contains all of them."""
    found: dict[int, Contribution | Unmatched] = {}
    for case in cases[:1]:
        neighbours: list[Contribution | Unmatched] = [*case.contributions, *case.unmatched]
        for one in neighbours:
            found.setdefault(one.neighbour.id, one)
    return list(found.values())


def _named(neighbours: Sequence[Contribution | Unmatched]) -> list[str]:
    """Return the first neighbours with their relations."""
    named = []
    for one in neighbours[:MOST_NEIGHBOURS]:
        relations = (one.relation,) if isinstance(one, Contribution) else one.relations
        named.append(f"{', '.join(map(wording.relation, relations))} {one.neighbour.short}")
    return named
