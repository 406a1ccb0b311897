"""Draws the neighbourhood of a pair as SVG."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment
from markupsafe import Markup
from rich.cells import cell_len, chop_cells, set_cell_size

from emea.data.names import local_name
from emea.explain.explanation import Case, Contribution, Entity, Relation, Unmatched
from emea.explain.wording import template_environment

MOST = 12
"""Maximum number of neighbours drawn per side; the others are counted."""


@dataclass(frozen=True)
class Neighbour:
    """A neighbour of one entity of the pair.

    Args:
        entity: The neighbour.
        relations: Relations from the pair's entity to the neighbour.
        supports: Whether the neighbour supports the pair.
        is_label: Whether a training link matches the neighbour.
    """

    entity: Entity
    relations: tuple[Relation, ...]
    supports: bool
    is_label: bool = False


@dataclass(frozen=True)
class Link:
    """A pair of drawn neighbours that are believed to match.

    Args:
        source: Index among the drawn source neighbours.
        target: Index among the drawn target neighbours.
        share: Share of the evidence, over all their relations.
        prob: Belief in the pair of neighbours.
    """

    source: int
    target: int
    share: float
    prob: float


@dataclass(frozen=True)
class Neighbourhood:
    """The drawn neighbours of both entities of a pair.

    Args:
        source: Drawn neighbours of the source entity.
        target: Drawn neighbours of the target entity.
        links: Lines between them.
        num_more: Number of neighbours of each side that are not drawn.
    """

    source: tuple[Neighbour, ...]
    target: tuple[Neighbour, ...]
    links: tuple[Link, ...]
    num_more: tuple[int, int]


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
    return Neighbourhood(
        tuple(source),
        tuple(target),
        tuple(_links(case, place, {one.entity.id: index for index, one in enumerate(target)})),
        (len(sides[0]) - len(source), len(sides[1]) - len(target)),
    )


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


CHARACTERS, RELATION_CHARACTERS, END_CHARACTERS, END_LINES = 22, 19, 17, 3
"""Widths of a neighbour, a relation and an entity in characters, and lines of an entity."""


@cache
def _environment() -> Environment:
    environment = template_environment("emea.explain")
    environment.filters |= {
        "arrow": _arrow,
        "lines": _lines,
        "cut": lambda text: _cut(text, CHARACTERS),
    }
    return environment


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
