"""Draws the neighbourhood of a pair as SVG."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len, chop_cells, set_cell_size

from emea.data.names import local_name
from emea.explain import wording
from emea.explain.explanation import Case, Contribution, Entity, Relation, Unmatched

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
        _ordered(_supporters(case, side), unmatched)
        for side, unmatched in enumerate((case.unmatched, case.target_unmatched))
    ]
    source, target = (side[:MOST] for side in sides)
    place = {one.entity.id: index for index, one in enumerate(source)}
    target = sorted(target, key=lambda one: _place_of(one, case, place))
    return Neighbourhood(
        tuple(source),
        tuple(target),
        tuple(_links(case, place, {one.entity.id: index for index, one in enumerate(target)})),
        (len(sides[0]) - len(source), len(sides[1]) - len(target)),
    )


def _supporters(case: Case, side: int) -> list[Neighbour]:
    """Return the neighbours of a side that support the pair, sorted by their total evidence."""
    pieces: dict[Entity, list[Contribution]] = defaultdict(list)
    for piece in case.contributions:
        pieces[piece.counterpart if side else piece.neighbour].append(piece)
    ranked = sorted(pieces, key=lambda entity: -sum(piece.share for piece in pieces[entity]))
    return [
        Neighbour(
            entity,
            tuple(
                dict.fromkeys(
                    piece.target_relation if side else piece.relation for piece in pieces[entity]
                )
            ),
            supports=True,
            is_label=any(piece.is_label for piece in pieces[entity]),
        )
        for entity in ranked
    ]


def _ordered(supporters: list[Neighbour], unmatched: tuple[Unmatched, ...]) -> list[Neighbour]:
    return supporters + [
        Neighbour(one.neighbour, one.relations, supports=False) for one in unmatched
    ]


def _place_of(one: Neighbour, case: Case, place: dict[int, int]) -> int:
    """Return the row of the source neighbour with most shared evidence, or the last row."""
    drawn = [
        piece
        for piece in case.contributions
        if piece.counterpart == one.entity and piece.neighbour.id in place
    ]
    # Contributions are sorted by weight, largest first.
    return place[drawn[0].neighbour.id] if drawn else len(place)


def _links(case: Case, source: dict[int, int], target: dict[int, int]) -> list[Link]:
    shares: dict[tuple[int, int], float] = defaultdict(float)
    probs: dict[tuple[int, int], float] = {}
    for piece in case.contributions:
        if piece.neighbour.id in source and piece.counterpart.id in target:
            ends = source[piece.neighbour.id], target[piece.counterpart.id]
            shares[ends] += piece.share
            probs[ends] = piece.neighbour_prob
    return [Link(*ends, share, probs[ends]) for ends, share in shares.items()]


ROW, TOP, BOX = 46, 28, 30
"""Row height, top of the first row, height of a neighbour's box."""

WIDTH, END, NODE, LABEL, CURVE = 1160, 150, 172, 148, 40
"""Widths of the picture, an entity's box, a neighbour's box, a relation's line, its bend."""

LEFT_LABEL = END + CURVE
LEFT_NODE = LEFT_LABEL + LABEL
RIGHT_NODE = WIDTH - LEFT_NODE - NODE
THINNEST, THICKEST, LEAST_LABELLED = 0.8, 16.0, 0.02
"""Minimum and maximum line width, and the smallest share that is printed next to a line."""

CHARACTERS, RELATION_CHARACTERS, END_CHARACTERS, END_LINES = 22, 19, 17, 3


def drawing(source: Entity, case: Case, name: str) -> str:
    """Draw a pair and its neighbours as SVG.

    Colours come from the page. Line widths and numbers show shares; frames mark labels and
    neighbours without a counterpart, so the drawing is readable in grey.

    Args:
        source: The source entity.
        case: The target entity and its evidence.
        name: Prefix of the ids in the SVG.
    """
    shown = neighbourhood(case)
    num_rows = max(len(shown.source), len(shown.target), 1)
    height = TOP + num_rows * ROW + (24 if any(shown.num_more) else 0)
    middle = TOP + num_rows * ROW / 2 - (ROW - BOX) / 2
    parts = [
        *_edges(shown.source, middle, mirrored=False),
        *_edges(shown.target, middle, mirrored=True),
        *map(_link, shown.links),
        *_nodes(shown.source, LEFT_NODE),
        *_nodes(shown.target, RIGHT_NODE),
        *(_link_share(link) for link in shown.links if link.share >= LEAST_LABELLED),
        _end(source, 0, middle),
        _end(case.target, WIDTH - END, middle),
        *_rest(shown, TOP + num_rows * ROW + 6),
    ]
    title, description = f"{name}-title", f"{name}-description"
    return (
        f'<svg class="neighbourhood" role="img" viewBox="0 0 {WIDTH} {height}" '
        f'aria-labelledby="{title} {description}">'
        f'<title id="{title}">{escape(_title(source, case))}</title>'
        f'<desc id="{description}">{escape(_description(shown))}</desc>{"".join(parts)}</svg>'
    )


def _title(source: Entity, case: Case) -> str:
    pair = f"{source.short} (left) and {case.target.short} (right)"
    return f"Neighbours of {pair}"


def _description(shown: Neighbourhood) -> str:
    if not shown.links:
        return "No neighbour supports the pair."
    pairs = [
        f"{wording.short(shown.source[link.source].entity)} with "
        f"{wording.short(shown.target[link.target].entity)}, {wording.percent(link.share)}"
        for link in shown.links
    ]
    return f"Matched neighbours and their share of the evidence: {'; '.join(pairs)}."


def _row(place: int) -> float:
    return TOP + place * ROW + BOX / 2


def _edges(neighbours: Sequence[Neighbour], middle: float, mirrored: bool) -> list[str]:
    """Return the lines from the entity to each neighbour, labelled with the relations."""
    parts = []
    for place, one in enumerate(neighbours):
        y = _row(place)
        stops = [END, END + CURVE / 2, LEFT_LABEL, LEFT_NODE]
        if mirrored:
            stops = [WIDTH - stop for stop in stops]
        start, bend, straight, end = stops
        kind = "edge" if one.supports else "edge silent"
        path = f"M{start} {middle:g}C{bend:g} {middle:g} {bend:g} {y:g} {straight} {y:g}H{end}"
        text = _relations(one.relations, mirrored)
        full = ", ".join(relation.name for relation in one.relations)
        parts.append(
            f'<g><title>{escape(full)}</title><path class="{kind}" d="{path}"/>'
            f'<text class="relation" x="{(straight + end) / 2:g}" y="{y - 5:g}">'
            f"{escape(text)}</text></g>"
        )
    return parts


def _relations(relations: Sequence[Relation], mirrored: bool) -> str:
    first, more = relations[0], len(relations) - 1
    rest = f" +{more}" if more else ""
    name = _cut(local_name(first.name), RELATION_CHARACTERS - len(rest))
    # On the right side, an outgoing relation points to the left.
    points_left = first.inverse != mirrored
    return f"← {name}{rest}" if points_left else f"{name}{rest} →"


def _link(link: Link) -> str:
    start, end = LEFT_NODE + NODE, RIGHT_NODE
    width = THINNEST + (THICKEST - THINNEST) * link.share
    return (
        f'<line class="link" x1="{start}" y1="{_row(link.source):g}" x2="{end}" '
        f'y2="{_row(link.target):g}" stroke-width="{width:.2f}">'
        f"<title>match {wording.number(link.prob)}, {wording.percent(link.share)} of the "
        "evidence</title></line>"
    )


def _link_share(link: Link) -> str:
    x = (LEFT_NODE + NODE + RIGHT_NODE) / 2
    y = (_row(link.source) + _row(link.target)) / 2
    return f'<text class="share" x="{x:g}" y="{y + 4:g}">{wording.percent(link.share)}</text>'


def _nodes(neighbours: Sequence[Neighbour], x: float) -> list[str]:
    parts = []
    for place, one in enumerate(neighbours):
        kind = "node" + (" known" if one.is_label else "") + ("" if one.supports else " silent")
        y = _row(place)
        parts.append(
            f'<g class="{kind}"><title>{escape(one.entity.title)}</title>'
            f'<rect x="{x:g}" y="{y - BOX / 2:g}" width="{NODE}" height="{BOX}" rx="6"/>'
            f'<text x="{x + NODE / 2:g}" y="{y + 4:g}">'
            f"{escape(_cut(one.entity.short, CHARACTERS))}</text></g>"
        )
    return parts


def _end(entity: Entity, x: float, middle: float) -> str:
    lines = _lines(entity.short)
    height = 16 * len(lines) + 18
    first = middle - 8 * (len(lines) - 1) + 4
    text = "".join(
        f'<text x="{x + END / 2:g}" y="{first + 16 * index:g}">{escape(line)}</text>'
        for index, line in enumerate(lines)
    )
    return (
        f'<g class="node end"><title>{escape(entity.title)}</title><rect x="{x + 1:g}" '
        f'y="{middle - height / 2:g}" width="{END - 2}" height="{height}" rx="8"/>{text}</g>'
    )


def _rest(shown: Neighbourhood, y: float) -> list[str]:
    places = (LEFT_NODE + NODE / 2, RIGHT_NODE + NODE / 2)
    return [
        f'<text class="relation" x="{x:g}" y="{y + 8:g}">and {count} more</text>'
        for x, count in zip(places, shown.num_more, strict=True)
        if count
    ]


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
