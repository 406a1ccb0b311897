"""What a drawing of two neighbourhoods shows, and in which order."""

from collections import defaultdict
from dataclasses import dataclass

from emea.pipeline.explanation import Case, Contribution, Entity, Relation, Unmatched

MOST = 12
"""Neighbours of a side that are drawn; the others are counted."""


@dataclass(frozen=True)
class Neighbour:
    """A neighbour of one side.

    Args:
        entity: who.
        relations: from the pair's entity to it.
        supports: whether it says anything for the pair.
        is_label: whether it was matched by a training link.
    """

    entity: Entity
    relations: tuple[Relation, ...]
    supports: bool
    is_label: bool = False


@dataclass(frozen=True)
class Link:
    """A pair of drawn neighbours that are believed to match.

    Args:
        source: place among the source neighbours.
        target: place among the target neighbours.
        share: of the evidence, over all their relations.
        prob: belief in the pair.
    """

    source: int
    target: int
    share: float
    prob: float


@dataclass(frozen=True)
class Neighbourhood:
    """Both sides of a pair.

    Args:
        source: neighbours of the source entity that are drawn.
        target: those of the target entity.
        links: between them.
        num_more: neighbours of either side that are not drawn.
    """

    source: tuple[Neighbour, ...]
    target: tuple[Neighbour, ...]
    links: tuple[Link, ...]
    num_more: tuple[int, int]


def neighbourhood(case: Case) -> Neighbourhood:
    """The neighbours that say most, and the links between those that are drawn.

    The target's neighbours stand as near as can be to who they are linked with.
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
    """Neighbours of a side that speak for the pair, by what they say in all."""
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


def _ordered(heard: list[Neighbour], unmatched: tuple[Unmatched, ...]) -> list[Neighbour]:
    return heard + [Neighbour(one.neighbour, one.relations, supports=False) for one in unmatched]


def _place_of(one: Neighbour, case: Case, place: dict[int, int]) -> int:
    """Place of the source neighbour it shares most with; behind all where there is none."""
    drawn = [
        piece
        for piece in case.contributions
        if piece.counterpart == one.entity and piece.neighbour.id in place
    ]
    # contributions are sorted: the first is the weightiest
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
