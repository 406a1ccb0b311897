"""Keeps links one-to-one while they are read from several files."""

from collections.abc import Iterable
from typing import Generic, NamedTuple

from emea.data.tab_file import TabTable
from emea.data.vocabulary import Key


class Place(NamedTuple):
    """Where a link was read."""

    label: str
    row: int

    def __str__(self) -> str:
        return f"{self.label}, line {self.row + 1}"


class LinkRegister(Generic[Key]):
    """Remembers where each link was read and refuses what contradicts it."""

    def __init__(self) -> None:
        self._links: dict[tuple[Key, Key], Place] = {}
        self._sources: dict[Key, Place] = {}
        self._targets: dict[Key, Place] = {}

    def add(
        self, table: TabTable, links: Iterable[tuple[Key, Key]], may_repeat: bool = False
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
            if known is None:
                self._enter(table, row, link)
                new_rows.append(row)
            elif known.label == table.label or not may_repeat:
                raise table.error(row, f"link {_text(link)} is already in {known}")
        return new_rows

    def check_contains(self, table: TabTable, links: Iterable[tuple[Key, Key]], home: str) -> None:
        """Refuse a link that has not been registered before."""
        for row, link in enumerate(links):
            if link not in self._links:
                raise table.error(row, f"link {_text(link)} is not in {home}")

    def _enter(self, table: TabTable, row: int, link: tuple[Key, Key]) -> None:
        place = Place(table.label, row)
        for side, entity, known in (
            ("source", link[0], self._sources),
            ("target", link[1], self._targets),
        ):
            if entity in known:
                raise table.error(
                    row, f"{side} entity {entity} is already linked in {known[entity]}"
                )
            known[entity] = place
        self._links[link] = place


def _text(link: tuple[Key, Key]) -> str:
    return f"{link[0]} - {link[1]}"
