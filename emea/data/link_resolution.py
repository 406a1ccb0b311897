"""From the names in link files to links between two graphs."""

import logging
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.link_listing import LinkListing
from emea.data.link_register import LinkRegister
from emea.data.prefixes import Prefixes
from emea.data.reading_report import LinkReading
from emea.errors import DataError, one_line

log = logging.getLogger(__name__)

NUM_NAMED = 20
"""Links of a file left out for one reason that are named; the others are counted."""


class EntityFinder:
    """Finds the entities of a graph by name.

    Args:
        graph: with names.
        side: ``source`` or ``target``.
        label: the graph's file.
    """

    def __init__(self, graph: KnowledgeGraph, side: str, label: str) -> None:
        self.names = graph.all_entity_names
        self._ids = {name: number for number, name in enumerate(self.names)}
        self.side = side
        self.label = label

    def find(self, name: str, prefixes: Prefixes) -> int | None:
        """The entity of that name, in whatever spelling."""
        return next(
            (self._ids[text] for text in prefixes.spellings(name) if text in self._ids), None
        )


@dataclass(frozen=True, eq=False)
class LinkResolver:
    """Turns names into links, one-to-one over all files it is given.

    Args:
        source: finds source entities.
        target: finds target entities.
        prefixes: short names that the user explains.
        on_error: ``stop`` at a link that contradicts another, or ``skip`` and count it.
        register: of the links so far.
    """

    source: EntityFinder
    target: EntityFinder
    prefixes: Prefixes
    on_error: str
    register: LinkRegister[str]

    def resolve(self, listing: LinkListing) -> tuple[IntArray, LinkReading]:
        """The links of a file between known entities, and what was left out.

        A link with an unknown entity is named and left out; one that is repeated counts once.

        Raises:
            DataError: a link contradicts another, or is in a file before this one.
        """
        known, unknown = self.found(listing)
        _tell_left_out(listing.label, unknown, "with an unknown entity")
        kept = self.registered(listing, known)
        return np.array(kept, dtype=np.int64).reshape(-1, 2), LinkReading(
            label=listing.label,
            num_links=len(kept),
            num_unknown=len(unknown),
            num_duplicates=len(listing.links) - len(unknown) - len(known),
            num_contradicting=len(known) - len(kept),
            num_other=listing.num_other,
            num_bad=listing.num_bad,
        )

    def found(self, listing: LinkListing) -> tuple[dict[tuple[int, int], int], list[str]]:
        """The row in which each link between known entities first stands, and who is unknown."""
        prefixes = self.prefixes.with_others(listing.prefixes.namespaces)
        known: dict[tuple[int, int], int] = {}
        unknown: list[str] = []
        for row, names in enumerate(listing.links):
            ends, missing = self._ends(names, prefixes, listing.symmetric)
            if missing:
                unknown.append(f"{listing.place(row)}: {missing}")
            else:
                known.setdefault(ends, row)
        return known, unknown

    def _ends(
        self, names: tuple[str, str], prefixes: Prefixes, symmetric: bool
    ) -> tuple[tuple[int, int], str]:
        """The two entities, or a text that says which one is unknown."""
        missing = ""
        for left, right in (names, names[::-1]) if symmetric else (names,):
            source = self.source.find(left, prefixes)
            target = self.target.find(right, prefixes)
            if source is not None and target is not None:
                return (source, target), ""
            finder, name = (self.source, left) if source is None else (self.target, right)
            missing = missing or f"{finder.side} entity {name} is not in {finder.label}"
        return (-1, -1), missing

    def registered(
        self, listing: LinkListing, known: dict[tuple[int, int], int]
    ) -> list[tuple[int, int]]:
        """The links that contradict none before them.

        Raises:
            DataError: one does, and that is where to stop.
        """
        kept, contradicting = [], []
        for ends, row in known.items():
            try:
                # by the graphs' names: files may spell one entity in several ways
                names = (self.source.names[ends[0]], self.target.names[ends[1]])
                self.register.enter(listing, row, names)
            except DataError as error:
                if self.on_error == "stop":
                    raise
                contradicting.append(str(error))
            else:
                kept.append(ends)
        _tell_left_out(listing.label, contradicting, "that contradict others")
        return kept


def _tell_left_out(label: str, problems: list[str], which: str) -> None:
    for text in problems[:NUM_NAMED]:
        log.warning("%s: left out", one_line(text))
    if len(problems) > NUM_NAMED:
        log.warning("%s: %d more links %s left out", label, len(problems) - NUM_NAMED, which)
