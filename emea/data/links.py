"""Links from files: finds the entities by name and checks how many links an entity has."""

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from emea.data.arrays import IntArray
from emea.data.formats.tab_file import TableRows, read_lines
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphReading, LinkReading, sorted_links
from emea.data.names import Prefixes, based_iri, entity_uri, uri_numbers
from emea.data.settings import Cardinality, cardinality_of
from emea.data.sorting import distinct_ids
from emea.errors import DataError, one_line

log = logging.getLogger(__name__)

Key = TypeVar("Key", int, str)

REPEATED_ENTITY = (
    "(cardinality={} allows one link of each {} entity; choose another cardinality, such as "
    "cardinality={}, or use data.on_error=skip to keep one link)"
)
REPEATED = (
    "(test links must differ from the labels; use data.on_error=skip to leave them out)"
)
NUM_NAMED = 20
"""Links left out for the same reason that are logged one by one. The others are counted."""


@dataclass(frozen=True, eq=False)
class LinkListing(TableRows):
    """The links of a file, by name.

    Args:
        label: The name of the file.
        links: The source and the target name of each link.
        places: The number of the line or statement of each link.
        unit: The unit that the numbers count.
        symmetric: Whether the first name may also be the target.
        prefixes: Prefixes that the file defines.
        num_other: The number of rows that are not links.
        num_bad: The number of lines that could not be read.
    """

    links: Sequence[tuple[str, str]]
    places: Sequence[int]
    unit: str = "line"
    symmetric: bool = False
    prefixes: Prefixes = field(default_factory=Prefixes)
    num_other: int = 0
    num_bad: int = 0

    def place(self, row: int) -> str:
        """Return the file and the line of a link, for messages."""
        return f"{self.label}, {self.unit} {self.places[row]}"


class LinkRegister(Generic[Key]):
    """Records where each link was read and refuses links that contradict earlier ones."""

    def __init__(self, cardinality: Cardinality = Cardinality.ONE_TO_ONE) -> None:
        self.cardinality = cardinality
        self.sides = cardinality.unique_sides
        self._links: dict[tuple[Key, Key], tuple[TableRows, int]] = {}
        self._places: dict[str, dict[Key, tuple[TableRows, int]]] = {
            side: {} for side in self.sides
        }

    def add(
        self,
        table: TableRows,
        links: Iterable[tuple[Key, Key]],
        may_repeat: bool = False,
    ) -> list[int]:
        """Register the links of a file.

        Args:
            table: The file.
            links: Source and target of each row.
            may_repeat: Whether the file may contain links of earlier files.

        Returns:
            The rows whose link is not in an earlier file.

        Raises:
            DataError: A link is a duplicate or contradicts another.
        """
        new_rows = []
        for row, link in enumerate(links):
            known = self._links.get(link)
            if known is None or known[0].label == table.label or not may_repeat:
                self.enter(table, row, link)
                new_rows.append(row)
        return new_rows

    def contains(self, link: tuple[Key, Key]) -> bool:
        """Return whether a link is registered."""
        return link in self._links

    def enter(self, table: TableRows, row: int, link: tuple[Key, Key]) -> None:
        """Register one link.

        Raises:
            DataError: The link is already registered or contradicts another.
        """
        if link in self._links:
            known, place = self._links[link]
            message = f"link {_text(link)} is already in {known.place(place)}"
            raise table.error(row, message)
        for side, column in self.sides.items():
            entity = link[column]
            if entity in self._places[side]:
                known, place = self._places[side][entity]
                message = (
                    f"{side} entity {entity} is already linked in {known.place(place)}"
                )
                raise table.error(row, message)
        here = self._links[link] = table, row
        for side, column in self.sides.items():
            self._places[side][link[column]] = here

    def check_contains(
        self, table: TableRows, links: Iterable[tuple[Key, Key]], home: str
    ) -> None:
        """Raise an error if a link is not registered."""
        for row, link in enumerate(links):
            if link not in self._links:
                raise table.error(row, f"link {_text(link)} is not in {home}")


def _text(link: tuple[Key, Key]) -> str:
    return f"{link[0]} - {link[1]}"


def folded(text: str) -> str:
    """Return a text without differences in case and white space."""
    return " ".join(text.split()).casefold()


class EntityFinder:
    """Finds the entities of a graph by name.

    Args:
        graph: The graph.
        side: ``source`` or ``target``.
        label: The file of the graph, for messages.
        reading: Entities of the file that are left out, if the graph was read from one.
        base: What the graph puts before names that are not IRIs, if anything.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        side: str,
        label: str,
        reading: GraphReading | None = None,
        base: str | None = None,
    ) -> None:
        self._base = base
        self.names = graph.all_entity_names
        self._ids = {name: number for number, name in enumerate(self.names)}
        self._graph = graph
        self.side = side
        self.label = label
        self._reading = reading

    def missing(self, name: str, prefixes: Prefixes) -> str:
        """Return why the graph does not contain a name."""
        reading = self._reading
        if reading is not None and not reading.left_out.isdisjoint(
            prefixes.spellings(name)
        ):
            return f"{self.side} entity {name} of {self.label} {reading.reason}"
        return f"{self.side} entity {name} is not in {self.label}"

    def find(self, name: str, prefixes: Prefixes) -> int | None:
        """Return the entity with this name in any of its spellings, or ``None``."""
        spellings = list(prefixes.spellings(name))
        if self._base is not None and name not in self._ids:
            spellings.append(based_iri(self._base, name))
        found = next((self._ids[text] for text in spellings if text in self._ids), None)
        if found is None and any("%" in text for text in spellings):
            # an export encodes some characters of a name that may contain encoded ones itself
            uris = map(entity_uri, spellings)
            found = next(
                (self._by_uri[uri] for uri in uris if uri in self._by_uri), None
            )
        return found

    def by_value(self, names: Sequence[str]) -> tuple[str, dict[str, int]]:
        """Return the attribute whose values the names are, and the entity of each of them.

        A value that several entities have names none of them. Of several attributes, the one with
        the most entities is taken. Case and repeated spaces do not matter.
        """
        wanted = {folded(name) for name in names}
        best: tuple[str, dict[str, int]] = ("", {})
        for attribute, holders in self._holders(wanted).items():
            found = {
                text: next(iter(entities))
                for text, entities in holders.items()
                if len(entities) == 1
            }
            if len(found) > len(best[1]):
                best = attribute, found
        attribute, entity_of = best
        known = {
            name: entity_of[key] for name in names if (key := folded(name)) in entity_of
        }
        return attribute, known

    def _holders(self, wanted: Set[str]) -> dict[str, dict[str, set[int]]]:
        """Return the entities with each of the wanted values, by attribute."""
        holders: dict[str, dict[str, set[int]]] = {}
        found = self._graph.attributes
        if found is not None:
            places = {
                value: text
                for value, given in enumerate(found.values)
                if (text := folded(given)) in wanted
            }
            for entity, attribute, value in found.triples.tolist():
                if value in places:
                    of_name = holders.setdefault(found.attribute_names[attribute], {})
                    of_name.setdefault(places[value], set()).add(entity)
        for entity, label in enumerate(self._graph.labels or ()):
            if (text := folded(label)) in wanted:
                holders.setdefault("label", {}).setdefault(text, set()).add(entity)
        return holders

    @cached_property
    def _by_uri(self) -> dict[str, int]:
        return uri_numbers(self.names)


@dataclass(frozen=True, eq=False)
class LinkResolver:
    """Turns names into links that do not contradict each other over all files.

    Args:
        source: Finds source entities.
        target: Finds target entities.
        prefixes: Prefixes that the user defines.
        on_error: ``stop`` at a link that contradicts another, or ``skip`` and count it.
        register: The links of earlier files, and how many links an entity may have; by default,
            there are none, and links are one-to-one.
    """

    source: EntityFinder
    target: EntityFinder
    prefixes: Prefixes
    on_error: str
    register: LinkRegister[str] = field(default_factory=LinkRegister)

    def resolve(self, listing: LinkListing) -> tuple[IntArray, LinkReading]:
        """Return the links of a file between known entities, and counts of those left out.

        Links with an unknown entity are logged and left out. Repeated links count once. The result
        is sorted, so that the order of the lines does not matter.

        Raises:
            DataError: A link contradicts another or is in an earlier file.
        """
        listing = self._by_id(listing)
        known, unknown = self.found(listing)
        _log_left_out(listing.label, unknown, "with an unknown entity")
        kept = self.registered(listing, known)
        links = sorted_links(np.array(kept, dtype=np.int64).reshape(-1, 2))
        return links, LinkReading(
            label=listing.label,
            num_links=len(kept),
            num_unknown=len(unknown),
            num_duplicates=len(listing.links) - len(unknown) - len(known),
            num_contradicting=len(known) - len(kept),
            num_other=listing.num_other,
            num_bad=listing.num_bad,
        )

    def pairs(self, listing: LinkListing) -> IntArray:
        """Return the pairs of a file between known entities; they need not be one-to-one.

        Pairs with an unknown entity are logged and left out. The result is sorted.
        """
        known, unknown = self.found(listing)
        _log_left_out(listing.label, unknown, "with an unknown entity")
        return sorted_links(np.array(list(known), dtype=np.int64).reshape(-1, 2))

    def _by_id(self, listing: LinkListing) -> LinkListing:
        """Return links by name, if all names of a side are values of entities, such as titles."""
        if listing.symmetric or not listing.links:
            return listing
        prefixes = self.prefixes.with_others(listing.prefixes.namespaces)
        columns = []
        for finder, names in zip(
            (self.source, self.target), zip(*listing.links, strict=True), strict=True
        ):
            renamed = {}
            if all(finder.find(name, prefixes) is None for name in names):
                attribute, known = finder.by_value(names)
                renamed = {name: finder.names[entity] for name, entity in known.items()}
            if renamed:
                log.warning(
                    "%s names %s entities by their values of %s: %d of %d names are found",
                    listing.label,
                    finder.side,
                    attribute,
                    len(renamed),
                    len(set(names)),
                )
            columns.append([renamed.get(name, name) for name in names])
        return replace(listing, links=list(zip(*columns, strict=True)))

    def found(
        self, listing: LinkListing
    ) -> tuple[dict[tuple[int, int], int], list[str]]:
        """Return the first row of each link between known entities, and the unknown entities."""
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
        """Return the two entities, or a message that names the unknown one."""
        missing = ""
        for left, right in (names, names[::-1]) if symmetric else (names,):
            source = self.source.find(left, prefixes)
            target = self.target.find(right, prefixes)
            if source is not None and target is not None:
                return (source, target), ""
            finder, name = (
                (self.source, left) if source is None else (self.target, right)
            )
            missing = missing or finder.missing(name, prefixes)
        return (-1, -1), missing

    def registered(
        self, listing: LinkListing, known: dict[tuple[int, int], int]
    ) -> list[tuple[int, int]]:
        """Return the links that do not contradict others.

        If contradictory links are skipped, the first in the order of the entities is kept, so that
        the order of the lines does not matter.

        Raises:
            DataError: A link contradicts an earlier one and ``on_error`` is ``stop``.
        """
        kept = []
        contradicting = []
        rows = known.items() if self.on_error == "stop" else sorted(known.items())
        for ends, row in rows:
            # use the names of the graphs, since files may spell an entity in several ways
            names = (self.source.names[ends[0]], self.target.names[ends[1]])
            try:
                self.register.enter(listing, row, names)
            except DataError as error:
                if self.on_error == "stop":
                    advice = (
                        REPEATED
                        if self.register.contains(names)
                        else self._advice(known)
                    )
                    raise DataError(f"{error} {advice}") from error
                contradicting.append(str(error))
            else:
                kept.append(ends)
        _log_left_out(listing.label, contradicting, "that contradict others")
        return kept

    def _advice(self, links: Iterable[tuple[int, int]]) -> str:
        """Return which setting forbids some of the links, and the value that allows all."""
        known = self.register.cardinality
        columns = np.array(list(links)).reshape(-1, 2).T
        single = [len(distinct_ids(column)) == len(column) for column in columns]
        allowed = cardinality_of(
            single[0] and known.one_target, single[1] and known.one_source
        )
        return REPEATED_ENTITY.format(known, " and ".join(known.unique_sides), allowed)


def check_rejected(
    rejected: IntArray,
    links: IntArray,
    source: KnowledgeGraph,
    target: KnowledgeGraph,
    advice: str = "",
) -> None:
    """Check that no rejected pair is also a known link.

    Args:
        rejected: ``[n, 2]`` rejected pairs.
        links: ``[n, 2]`` links that a run may learn from. Test links are not checked.
        source: The source graph.
        target: The target graph.
        advice: How to withdraw a known link, for the error.

    Raises:
        DataError: A pair is both. The error names it.
    """
    known = set(map(tuple, links.tolist()))
    for one, other in rejected.tolist():
        if (one, other) in known:
            names = (source.entity_name(one), target.entity_name(other))
            raise DataError(
                f"{_text(names)} is both a known link and a rejected pair. Remove it from the "
                f"links or from the rejected pairs{f', or {advice}' if advice else ''}."
            )


def read_entities(path: Path, finder: EntityFinder, prefixes: Prefixes) -> IntArray:
    """Return the entities that the first column of a file names, sorted.

    Unknown names are logged and left out. Blank lines are ignored.

    Raises:
        DataError: The file cannot be read, or names only entities that are not in the graph.
    """
    names = [line.split("\t")[0].strip() for line in read_lines(path)]
    names = [name[1:-1] if name.startswith("<") else name for name in names if name]
    found = {name: finder.find(name, prefixes) for name in names}
    known = sorted({number for number in found.values() if number is not None})
    unknown = [name for name, number in found.items() if number is None]
    if found and not known:
        raise DataError(
            f"{path.name} names no {finder.side} entity of {finder.label}. Write one name per "
            "line, as in the graph."
        )
    if unknown:
        counts = f"{len(unknown)} of {len(found)} names are not in {finder.label}"
        log.warning(
            "%s: %s and are left out, such as %s", path.name, counts, unknown[0]
        )
    return np.array(known, dtype=np.int64)


@contextmanager
def silent_links() -> Iterator[None]:
    """Do not log the links that are left out within the context: the run reported them before."""
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False


def _log_left_out(label: str, problems: list[str], which: str) -> None:
    """Log the links of a file that are left out: the first ones by name, then their number."""
    for text in problems[:NUM_NAMED]:
        log.warning("%s: left out", one_line(text))
    if len(problems) > NUM_NAMED:
        log.warning(
            "%s: %d more links %s left out", label, len(problems) - NUM_NAMED, which
        )
