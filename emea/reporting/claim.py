"""A claim of the paper's text, and how it is checked on recorded runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from emea.reporting.cells import Cell
from emea.reporting.records import RecordedRun

Case = tuple[str, bool | None]
"""Where a claim is looked at, and whether it holds there; ``None``: no runs to tell."""

Check = Callable[[Sequence[RecordedRun], str], Iterator[Case]]
"""The cases of a claim in the runs of one protocol."""

STAGES = ("initial", "final")

STABLE = 0.02
"""Hit@1 that differs by less is called about the same."""

SLIGHT = 0.01
"""A lift of less is called none or slight."""


EVEN = 0.003
"""Values that differ by less are even: a training that is repeated on a GPU differs by more."""


class Finding(NamedTuple):
    """A claim, where it stands in the paper, and how it is checked."""

    claim: str
    place: str
    cases: Check

    @property
    def study(self) -> str:
        """Whose runs it is checked on: its table's or figure's; what the text claims: table 1's."""
        kind, _, number = self.place.partition(" ")
        by_kind = {"Table": f"table{number}", "Fig.": f"figure{number}", "Appendix": "figure7"}
        return by_kind.get(kind, "table1")


def above(first: float | None, second: float | None, *, by: float = EVEN) -> bool | None:
    """Whether the first is clearly the larger; ``None`` where one is not known."""
    return None if first is None or second is None else first - second > by


def with_difference(name: str, first: float | None, second: float | None) -> str:
    """A case's name, with how far its two values lie apart."""
    return name if first is None or second is None else f"{name} ({first - second:+.3f})"


def every(holds: Sequence[bool | None]) -> bool | None:
    """Whether all hold; ``None`` where there are none, or one is not known."""
    known = [one for one in holds if one is not None]
    return all(known) if known and len(known) == len(holds) else None


def mean_at(cells: Mapping[Any, Cell], place: float) -> float | None:
    """The mean at a place; ``None`` where nothing was run."""
    return cells[place].mean if place in cells else None


def cell_name(data: str, ratio: float) -> str:
    """A cell as tables of claims call it."""
    return f"{pair_name(data)} {ratio:.0%}"


def pair_name(data: str) -> str:
    """A pair as tables of claims call it."""
    return data.removeprefix("dbp15k_").removeprefix("dwy100k_")
