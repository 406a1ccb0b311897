"""Links between entities: what a file lists, how names are found, which links count."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol

import numpy as np

from emea.data.arrays import IntArray
from emea.data.formats.tab_file import Key
from emea.data.graph import KnowledgeGraph
from emea.data.names import Prefixes
from emea.data.reading import LinkReading
from emea.errors import DataError, one_line


@dataclass(frozen=True, eq=False)
class LinkListing:
    """The links of a file.

    Args:
        label: the file's name.
        links: a source and a target name each.
        places: the number of the line or statement of each link.
        unit: what the numbers count.
        symmetric: whether a link may also be meant the other way round.
        prefixes: short names that the file explains.
        num_other: rows that are no links.
        num_bad: lines that could not be read.
    """

    label: str
    links: Sequence[tuple[str, str]]
    places: Sequence[int]
    unit: str = "line"
    symmetric: bool = False
    prefixes: Prefixes = field(default_factory=Prefixes)
    num_other: int = 0
    num_bad: int = 0

    def place(self, row: int) -> str:
        """Where a link stands."""
        return f"{self.label}, {self.unit} {self.places[row]}"

    def error(self, row: int, message: str) -> DataError:
        """An error about one link, to be raised by the caller."""
        return DataError(f"{self.place(row)}: {message}")


class Listing(Protocol):
    """A file whose rows are links."""

    @property
    def label(self) -> str:
        """What messages call the file."""

    def place(self, row: int) -> str:
        """Where a row stands."""

    def error(self, row: int, message: str) -> DataError:
        """An error about one row."""


class Place(NamedTuple):
    """Where a link was read."""

    label: str
    text: str

    def __str__(self) -> str:
        return self.text


class LinkRegister(Generic[Key]):
    """Remembers where each link was read and refuses what contradicts it."""

    def __init__(self) -> None:
        self._links: dict[tuple[Key, Key], Place] = {}
        self._sources: dict[Key, Place] = {}
        self._targets: dict[Key, Place] = {}

    def add(
        self, table: Listing, links: Iterable[tuple[Key, Key]], may_repeat: bool = False
    ) -> list[int]:
        """Register a file's links.

        Args:
            table: the file they come from.
            links: a (source, target) per row.
            may_repeat: whether the file may hold links of the files before it.

        Returns:
            The rows whose link no file before held.

        Raises:
            DataError: a link is a duplicate or contradicts another.
        """
        new_rows = []
        for row, link in enumerate(links):
            known = self._links.get(link)
            if known is None or known.label == table.label or not may_repeat:
                self.enter(table, row, link)
                new_rows.append(row)
        return new_rows

    def enter(self, table: Listing, row: int, link: tuple[Key, Key]) -> None:
        """Register one link.

        Raises:
            DataError: it is registered already, or contradicts another.
        """
        if link in self._links:
            raise table.error(row, f"link {_text(link)} is already in {self._links[link]}")
        sides = (("source", link[0], self._sources), ("target", link[1], self._targets))
        for side, entity, known in sides:
            if entity in known:
                raise table.error(
                    row, f"{side} entity {entity} is already linked in {known[entity]}"
                )
        place = Place(table.label, table.place(row))
        self._links[link] = self._sources[link[0]] = self._targets[link[1]] = place

    def check_contains(self, table: Listing, links: Iterable[tuple[Key, Key]], home: str) -> None:
        """Refuse a link that has not been registered before."""
        for row, link in enumerate(links):
            if link not in self._links:
                raise table.error(row, f"link {_text(link)} is not in {home}")


def _text(link: tuple[Key, Key]) -> str:
    return f"{link[0]} - {link[1]}"


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
