"""Writes explanations as one self-contained HTML page."""

from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment

from emea.answer.schema import Schema, TermMatch
from emea.explain import wording
from emea.explain.drawing import drawing
from emea.explain.explanation import Entity, Explanation
from emea.explain.text import card_text
from emea.results.page import html_document, page_style
from emea.run.finished_run import FinishedRun

MOST_ROWS = 30
"""Maximum number of listed pieces of evidence and neighbours per side; hubs have hundreds."""

RIVAL_TITLES = {
    "runner-up": "runner-up",
    "ranked higher": "candidate ranked higher",
    "preferred": "preferred candidate",
}
CAPTION = (
    "Lines connect neighbours that are believed to match. Their width and number show the share of "
    "the evidence. Bold frames mark training links, dashed frames mark neighbours that do not "
    "support the pair. Arrows show the direction of a relation."
)


@cache
def _environment() -> Environment:
    """Return the template environment, which escapes all text by default."""
    environment = wording.template_environment("emea.explain")
    environment.globals |= {"wording": wording, "drawing": drawing, "rival_titles": RIVAL_TITLES}
    # an example may be a long literal
    environment.filters["local"] = lambda name: Entity(0, name).short
    return environment


def explanation_page(
    run: FinishedRun, explanations: Sequence[Explanation], schema: Schema | None = None
) -> str:
    """Return all explanations as one page without scripts or external resources.

    Args:
        run: The finished run.
        explanations: Explanations of pairs.
        schema: The mapping of relations and classes, to show below them.
    """
    template = _environment().get_template("explanation.html")
    body = template.render(
        card=card_text(run),
        explanations=explanations,
        caption=CAPTION,
        most_rows=MOST_ROWS,
        terms=[] if schema is None else _terms(schema),
    )
    style = resources.files("emea.explain").joinpath("explanation.css").read_text(encoding="utf-8")
    title = wording.listed(list(map(wording.heading, explanations)))
    return html_document(title, body, page_style() + style, kind="explanation")


def _terms(schema: Schema) -> list[tuple[str, str, list[TermMatch]]]:
    """Return heading, file and rows of the mapped relations and classes, without empty ones."""
    parts = (
        ("Relations that correspond", "relations.tsv", schema.relations),
        ("Classes that correspond", "classes.tsv", schema.classes),
    )
    stated = [(title, file, [row for row in rows if row.mapping]) for title, file, rows in parts]
    return [part for part in stated if part[2]]
