"""Writes suggestions as a page on which a person decides; it works offline as one HTML file."""

from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment

from emea.answer.exporting import cell
from emea.explain import wording
from emea.explain.explainer import Explainer
from emea.explain.explanation import Case, Contribution, Unmatched
from emea.explain.page import template_environment
from emea.explain.text import run_card
from emea.results.page import html_document, page_style
from emea.suggest.suggestion import Suggestion

MOST_PIECES, MOST_NEIGHBOURS = 6, 12
"""Maximum number of shown pieces of evidence per candidate and of neighbours per entity."""


@cache
def _environment() -> Environment:
    """Return the template environment, which escapes all text by default."""
    environment = template_environment("emea.suggest")
    environment.filters |= {"paths": wording.paths, "cell": cell}
    return environment


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
    card = ", ".join(f"{key} {value}" for key, value in run_card(run).items() if value is not None)
    template = _environment().get_template("review.html")
    body = template.render(
        card=card, sections=sections, labels=labels, most_pieces=MOST_PIECES, key=run.header.run_id
    )
    title = f"Review of {len(sections)} suggestions"
    style = page_style() + _resource("review.css")
    return html_document(title, body, style, [_resource("review.js")], kind="review")


def _section(explainer: Explainer, suggestion: Suggestion, place: int) -> dict[str, object]:
    cases = [explainer(suggestion.source, target).asked for target, _ in suggestion.candidates]
    neighbours = [_neighbour(one) for one in _all_neighbours(cases)]
    return {
        "id": f"entity{place}",
        "suggestion": suggestion,
        "source": explainer.source.entity(suggestion.source),
        "neighbours": neighbours[:MOST_NEIGHBOURS],
        "num_more": max(0, len(neighbours) - MOST_NEIGHBOURS),
        "options": [
            {"case": case, "around": _around(case), "prob": prob}
            for case, (_, prob) in zip(cases, suggestion.candidates, strict=True)
        ],
    }


def _all_neighbours(cases: Sequence[Case]) -> list[Contribution | Unmatched]:
    """Return the neighbours of the source entity once each; every case contains all of them."""
    if not cases:
        return []
    everyone: list[Contribution | Unmatched] = [*cases[0].contributions, *cases[0].unmatched]
    found: dict[int, Contribution | Unmatched] = {}
    for one in everyone:
        found.setdefault(one.neighbour.id, one)
    return list(found.values())


def _neighbour(one: Contribution | Unmatched) -> str:
    relations = (one.relation,) if isinstance(one, Contribution) else one.relations
    return f"{', '.join(map(wording.relation, relations))} {wording.short(one.neighbour)}"


def _around(case: Case) -> list[str]:
    """Return neighbours of a candidate that do not support it, for recognition."""
    return [_neighbour(one) for one in case.target_unmatched[:MOST_NEIGHBOURS]]


def _resource(name: str) -> str:
    return resources.files("emea.suggest").joinpath(name).read_text(encoding="utf-8")
