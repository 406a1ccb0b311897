"""Writes explanations as one self-contained HTML page, with drawings of neighbourhoods."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from jinja2 import Environment
from markupsafe import Markup
from rich.cells import cell_len, chop_cells, set_cell_size

from emea.answer.schema import Schema, TermMatch
from emea.data.names import local_name
from emea.explain import wording
from emea.explain.explanation import Case, Contribution, Entity, Explanation, Relation, Unmatched
from emea.explain.text import card_text
from emea.results.page import html_document, page_style
from emea.run.finished_run import FinishedRun

MOST_ROWS = 30
"""Maximum number of listed pieces of evidence and neighbours per side; hubs have hundreds."""

MOST = 12
"""Maximum number of neighbours drawn per side; the others are counted."""

CHARACTERS, RELATION_CHARACTERS, END_CHARACTERS, END_LINES = 22, 19, 17, 3
"""Widths of a neighbour, a relation and an entity in characters, and lines of an entity."""

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
    environment.filters |= {
        "local": lambda name: Entity(0, name).short,  # an example may be a long literal
        "arrow": _arrow,
        "lines": _lines,
        "cut": lambda text: _cut(text, CHARACTERS),
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
    template = _environment().get_template("explanation.html")
    body = template.render(
        card=card_text(run),
        explanations=explanations,
        caption=CAPTION,
        most_rows=MOST_ROWS,
        terms=[] if schema is None else _terms(schema),
    )
    style = page_style("emea.explain", "explanation.css")
    title = wording.listed(list(map(wording.heading, explanations)))
    return html_document(title, body, style, kind="explanation")


def _terms(schema: Schema) -> list[tuple[str, str, list[TermMatch]]]:
    """Return heading, file and rows of the mapped relations and classes, without empty ones."""
    parts = (
        ("Relations that correspond", "relations.tsv", schema.relations),
        ("Classes that correspond", "classes.tsv", schema.classes),
    )
    stated = [(title, file, [row for row in rows if row.mapping]) for title, file, rows in parts]
    return [part for part in stated if part[2]]


class Neighbour(NamedTuple):
    """A drawn neighbour, the relations from the pair's entity to it, and how it is marked."""

    entity: Entity
    relations: tuple[Relation, ...]
    supports: bool
    is_label: bool = False


class Link(NamedTuple):
    """Two drawn neighbours, by their places, that are believed to match, with their evidence."""

    source: int
    target: int
    share: float
    prob: float


class Neighbourhood(NamedTuple):
    """Drawn neighbours of both entities, and the numbers of those that are not drawn."""

    source: list[Neighbour]
    target: list[Neighbour]
    links: list[Link]
    num_more: tuple[int, int]


def drawing(source: Entity, case: Case, name: str) -> Markup:
    """Draw a pair and its neighbours as SVG.

    Colours come from the page. Line widths and numbers show shares; frames mark labels and
    neighbours without a counterpart, so the drawing is readable in grey.

    Args:
        source: The source entity.
        case: The target entity and its evidence.
        name: Prefix of the ids in the SVG.
    """
    template = _environment().get_template("neighbourhood.svg")
    shown = neighbourhood(case)
    return Markup(template.render(source=source, target=case.target, shown=shown, name=name))


def neighbourhood(case: Case) -> Neighbourhood:
    """Select the neighbours with most evidence and the links between them.

    Target neighbours are sorted so that they are close to the neighbours they are linked with.
    """
    sides = [
        _neighbours(case, side, unmatched)
        for side, unmatched in enumerate((case.unmatched, case.target_unmatched))
    ]
    source, target = (side[:MOST] for side in sides)
    place = {one.entity.id: index for index, one in enumerate(source)}
    nearest: dict[int, int] = {}
    for piece in case.contributions:  # those with most evidence come first
        if piece.neighbour.id in place:
            nearest.setdefault(piece.counterpart.id, place[piece.neighbour.id])
    target = sorted(target, key=lambda one: nearest.get(one.entity.id, len(place)))
    links = _links(case, place, {one.entity.id: index for index, one in enumerate(target)})
    num_more = len(sides[0]) - len(source), len(sides[1]) - len(target)
    return Neighbourhood(source, target, links, num_more)


def _neighbours(case: Case, side: int, unmatched: Sequence[Unmatched]) -> list[Neighbour]:
    """Return the neighbours of a side: supporters by their total evidence, then the others."""
    pieces: dict[Entity, list[Contribution]] = defaultdict(list)
    for piece in case.contributions:
        pieces[piece.counterpart if side else piece.neighbour].append(piece)
    ranked = sorted(pieces, key=lambda entity: -sum(piece.share for piece in pieces[entity]))
    supporters = []
    for entity in ranked:
        found = pieces[entity]
        relations = (one.target_relation if side else one.relation for one in found)
        is_label = any(one.is_label for one in found)
        supporters.append(Neighbour(entity, tuple(dict.fromkeys(relations)), True, is_label))
    return supporters + [Neighbour(one.neighbour, one.relations, False) for one in unmatched]


def _links(case: Case, source: dict[int, int], target: dict[int, int]) -> list[Link]:
    shares: dict[tuple[int, int], float] = defaultdict(float)
    probs: dict[tuple[int, int], float] = {}
    for piece in case.contributions:
        if piece.neighbour.id in source and piece.counterpart.id in target:
            ends = source[piece.neighbour.id], target[piece.counterpart.id]
            shares[ends] += piece.share
            probs[ends] = piece.neighbour_prob
    return [Link(*ends, share, probs[ends]) for ends, share in shares.items()]


def _arrow(relations: Sequence[Relation], mirrored: bool) -> str:
    """Return the first relation with its direction, and how many more there are."""
    first, more = relations[0], len(relations) - 1
    rest = f" +{more}" if more else ""
    name = _cut(local_name(first.name), RELATION_CHARACTERS - len(rest))
    # On the right side, an outgoing relation points to the left.
    points_left = first.inverse != mirrored
    return f"← {name}{rest}" if points_left else f"{name}{rest} →"


def _lines(name: str) -> list[str]:
    """Split a long name into a few lines, after underscores if possible."""
    words = name.replace("_", "_ ").split()
    parts = [part for word in words for part in chop_cells(word, END_CHARACTERS)]
    lines = [""]
    for part in parts:
        if lines[-1] and cell_len(lines[-1] + part) > END_CHARACTERS:
            lines.append("")
        lines[-1] += part
    kept = lines[:END_LINES]
    if len(lines) > END_LINES:
        kept[-1] = _cut(kept[-1] + "…" * END_CHARACTERS, END_CHARACTERS).rstrip("…") + "…"
    return kept


def _cut(text: str, most: int) -> str:
    """Shorten a text to a width in cells; a Chinese character takes two."""
    return text if cell_len(text) <= most else f"{set_cell_size(text, most - 1).rstrip()}…"
