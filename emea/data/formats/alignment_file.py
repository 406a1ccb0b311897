"""Reads the cells of OAEI's Alignment format, which most ontology matchers write."""

from collections.abc import Iterable, Iterator

from pyoxigraph import Literal, NamedNode, Quad

from emea.data.entity_kinds import ALIGNMENT
from emea.data.formats.limits import Guard
from emea.data.links import LinkListing

ENTITIES = ("entity1", "entity2")
RELATION, MEASURE = "relation", "measure"
EQUIVALENCES = ("=", "EquivRelation")
"""Relations which state that two entities are the same: a sign or the name of a Java class."""


class Cells:
    """Collects the cells of a file from its statements. A cell relates two entities.

    Args:
        guard: Checks the length of names, if given.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard
        self._parts: dict[str, dict[str, str]] = {}

    def __bool__(self) -> bool:
        """Return whether the file contains a cell."""
        return bool(self._parts)

    def without_cells(self, numbered: Iterable[tuple[int, Quad]]) -> Iterator[tuple[int, Quad]]:
        """Yield the statements that do not belong to a cell, and keep the others."""
        for number, quad in numbered:
            name = quad.predicate.value
            if not name.startswith(ALIGNMENT):
                yield number, quad
                continue
            part = name[len(ALIGNMENT) :].lstrip("#")
            value = quad.object
            if isinstance(value, NamedNode | Literal) and part in (*ENTITIES, RELATION, MEASURE):
                if self._guard is not None:
                    self._guard.check_expanded([value.value])
                self._parts.setdefault(str(quad.subject), {})[part] = value.value

    def listing(self, label: str, num_bad: int) -> LinkListing:
        """Return the links: cells with the relation ``=`` whose measure is not 0.

        Either entity of a cell may be the source entity. Other cells are counted.

        Args:
            label: The name of the file.
            num_bad: The number of statements that could not be read.
        """
        links, places = [], []
        for number, parts in enumerate(self._parts.values(), 1):
            first, second = (parts.get(name) for name in ENTITIES)
            if first and second and _is_link(parts):
                links.append((first, second))
                places.append(number)
        return LinkListing(
            label,
            links,
            places,
            unit="cell",
            symmetric=True,
            num_other=len(self._parts) - len(links),
            num_bad=num_bad,
        )


def _is_link(parts: dict[str, str]) -> bool:
    try:
        is_denied = float(parts.get(MEASURE, "1")) == 0
    except ValueError:
        is_denied = False
    return not is_denied and parts.get(RELATION, "=").strip().endswith(EQUIVALENCES)
