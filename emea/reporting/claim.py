"""A claim of the paper's text, and how it is checked on recorded runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from emea.reporting.cells import Cell
from emea.reporting.records import RecordedRun
from emea.reporting.study import DBP15K, RATIOS

Case = tuple[str, bool | None]
"""Where a claim is looked at, and whether it holds there; ``None``: no runs to tell."""

Check = Callable[[Sequence[RecordedRun], str], Iterator[Case]]
"""The cases of a claim in the runs of one protocol."""

CELLS = tuple(product(DBP15K, RATIOS))
STAGES = ("initial", "final")

STABLE = 0.02
"""Hit@1 that differs by less is called about the same."""

SLIGHT = 0.01
"""A lift of less is called none or slight."""


class Finding(NamedTuple):
    """A claim, where it stands in the paper, and how it is checked."""

    claim: str
    place: str
    cases: Check

    @property
    def study(self) -> str:
        """Whose runs it is checked on: its table's or figure's; what the text claims: table 1's."""
        kind, _, number = self.place.partition(" ")
        return {"Table": f"table{number}", "Fig.": f"figure{number}"}.get(kind, "table1")


def above(first: float | None, second: float | None) -> bool | None:
    """Whether the first is the larger; ``None`` where one is not known."""
    return None if first is None or second is None else first > second


def every(holds: Sequence[bool | None]) -> bool | None:
    """Whether all hold; ``None`` where there are none, or one is not known."""
    known = [one for one in holds if one is not None]
    return all(known) if known and len(known) == len(holds) else None


def mean_at(cells: Mapping[Any, Cell], place: float) -> float | None:
    """The mean at a place; ``None`` where nothing was run."""
    return cells[place].mean if place in cells else None


def cell_name(data: str, ratio: float) -> str:
    """A cell as tables of claims call it."""
    return f"{data.removeprefix('dbp15k_')} {ratio:.0%}"
