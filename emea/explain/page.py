"""Writes explanations as one self-contained HTML page."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from emea.answer.schema import Schema, TermMatch
from emea.explain import wording
from emea.explain.drawing import drawing
from emea.explain.explanation import Entity, Explanation
from emea.explain.text import run_card
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


def template_environment(package: str) -> Environment:
    """Return an environment for a package's templates, which escapes all text by default."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": wording.short,
        "number": wording.number,
        "percent": wording.percent,
    }
    return environment


@cache
def _environment() -> Environment:
    """Return the template environment, which escapes all text by default."""
    environment = template_environment("emea.explain")
    environment.filters |= {
        "relation": wording.relation,
        "silent": wording.silent,
        "local": lambda name: Entity(0, name).short,  # an example may be a long literal
    }
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
    sections = [_section(one, f"pair{place}") for place, one in enumerate(explanations, 1)]
    card = ", ".join(f"{key} {value}" for key, value in run_card(run).items() if value is not None)
    template = _environment().get_template("explanation.html")
    body = template.render(
        card=card,
        sections=sections,
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


def _section(explanation: Explanation, name: str) -> dict[str, Any]:
    """Return the texts and drawings of one explanation, which the template lays out.

    Drawings are SVG whose texts ``drawing`` has escaped. All other values are plain text, which the
    template escapes.
    """
    source, asked, rival = explanation.source, explanation.asked, explanation.rival
    role = wording.rival_name(explanation)
    against = [*wording.lacking(explanation), wording.conflicts(asked)]
    if rival is not None:
        against.append(wording.conflicts(rival))
    return {
        "id": name,
        "explanation": explanation,
        "heading": wording.heading(explanation),
        "verdict": wording.verdict(explanation),
        "notes": f"{wording.truth(explanation)} {wording.grounds(explanation)}",
        "picture": Markup(drawing(source, asked, name)),
        "role": role,
        "rival_title": RIVAL_TITLES[role],
        "rows": wording.comparison(explanation),
        "meanings": wording.meanings(explanation),
        "against": against,
        "rival_picture": Markup(drawing(source, rival, f"{name}-rival")) if rival else "",
    }
