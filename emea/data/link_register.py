"""Keeps links one-to-one while they are read from several files."""

from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol

from emea.data.vocabulary import Key
from emea.errors import DataError


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
