"""Links as a file lists them, by name."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from emea.data.prefixes import Prefixes
from emea.errors import DataError


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
