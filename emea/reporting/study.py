"""A study: what a report is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from emea.reporting.comparison import NOT_RUN, Entry
from emea.reporting.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3)
DBP15K = ("dbp15k_zh", "dbp15k_fr", "dbp15k_ja")
DWY100K = ("dwy100k_dbp_wd", "dwy100k_dbp_yg")
DATASETS = (*DBP15K, *DWY100K)

Cells = Sequence[tuple[str, float]]
CELLS: Cells = tuple(product(DATASETS, RATIOS))
"""Pairs and ratios of the paper."""

DBP15K_CELLS: Cells = tuple(product(DBP15K, RATIOS))


@dataclass(frozen=True)
class Study:
    """A report in the forms in which it is written.

    Args:
        name: of its folder and, if it has one, its experiment.
        title: of the report.
        parts: of its Markdown, without the title.
        entries: its numbers for a machine.
        figure: its picture, if it has one.
        is_experiment: whether there is a sweep that makes its runs.
    """

    name: str
    title: str
    parts: tuple[str, ...]
    entries: tuple[Entry, ...] = ()
    figure: "Figure | None" = field(default=None, compare=False)
    is_experiment: bool = True

    @property
    def markdown(self) -> str:
        """The report's text."""
        command = f"`python run.py -m experiment={self.name}` runs it."
        commands = [command] if self.is_experiment else []
        picture = [f"![{self.title}]({self.name}.svg)"] if self.figure else []
        return "\n\n".join([f"# {self.title}", *commands, *picture, *self.parts]) + "\n"


RELEASED = "The same under `protocol=released`, where it was run:"

Rows = Sequence[Sequence[str]]


def protocol_tables(
    titles: Sequence[str], rows: Mapping[str, Rows], num_left: int
) -> tuple[str, ...]:
    """The table of the strict runs and, if there are any, that of the released ones.

    Args:
        titles: of the columns.
        rows: of each protocol; of ``released`` those that were run are shown.
        num_left: columns of text.
    """
    tables = [markdown_table(titles, rows["strict"], num_left=num_left)]
    released = [row for row in rows["released"] if NOT_RUN not in row]
    if released:
        tables += [RELEASED, markdown_table(titles, released, num_left=num_left)]
    return tuple(tables)
