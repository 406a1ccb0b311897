"""Studies as data: the tables and charts of a report, and where their numbers come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

from experiments.report.line_charts import Chart
from experiments.report.methods import Method
from experiments.report.records import PaperNumbers
from experiments.report.report import Entry
from experiments.report.run_table import Runs

RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3)
DBP15K = ("dbp15k_zh", "dbp15k_fr", "dbp15k_ja")
DWY100K = ("dwy100k_dbp_wd", "dwy100k_dbp_yg")
DATASETS = (*DBP15K, *DWY100K)

Places = Sequence[tuple[str, float]]
CELLS: Places = tuple(product(DATASETS, RATIOS))
"""Pairs and ratios of the paper."""

DBP15K_CELLS: Places = tuple(product(DBP15K, RATIOS))


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a table: where its numbers come from.

    Args:
        labels: The content of the key columns.
        data: The pair of graphs.
        ratio: The share of links that are labelled.
        method: The method, unless the columns name their own.
        protocol: The protocol, unless the columns name their own.
        fill: Values for placeholders in the columns' paths.
    """

    labels: tuple[str, ...]
    data: str = ""
    ratio: float | None = None
    method: Method | None = None
    protocol: str = "strict"
    fill: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Scope:
    """What a column can look at while a row is filled.

    Args:
        runs: The recorded runs.
        paper: The paper's numbers.
        splits: The number of splits that cells should have; 0 means any number.
        row: The row.
        kept: The splits to use; ``None`` means all.
        done: The cells of the row that are filled already, by the title of their column.
    """

    runs: Runs
    paper: PaperNumbers
    splits: int
    row: Row
    kept: frozenset[int] | None = None
    done: dict[str, Entry] = field(default_factory=dict)


class Column(Protocol):
    """A column of a table."""

    @property
    def title(self) -> str:
        """The heading."""

    @property
    def is_text(self) -> bool:
        """Whether the cells hold text; otherwise they hold numbers."""

    def entry(self, scope: Scope) -> Entry:
        """Fill the cell of the row in the scope."""


Rows = Sequence[Row] | Callable[[Runs], Sequence[Row]]


@dataclass(frozen=True, eq=False)
class TableSpec:
    """A table as data.

    Args:
        keys: Titles of the key columns, which hold the rows' labels.
        rows: The rows, or a function that lists them.
        columns: The other columns.
        splits: The number of splits that cells should have; cells with fewer say so. ``None``:
            the largest number in the table; 0: never say so.
        common: Key columns within which all rows use the same splits.
        known_only: Leave out what was neither run nor printed in the paper.
        in_csv: Whether the measured cells go to the study's ``results.csv``.
    """

    keys: tuple[str, ...]
    rows: Rows
    columns: tuple[Column, ...]
    splits: int | None = None
    common: tuple[str, ...] = ()
    known_only: bool = False
    in_csv: bool = True


@dataclass(frozen=True)
class Section:
    """A part of a report: a heading, a note and a table.

    Args:
        title: The heading; empty if the part belongs to the section before it.
        note: Text above the table, in Markdown.
        table: The table.
        optional: Leave the part out as long as it has no run.
    """

    title: str
    note: str
    table: TableSpec
    optional: bool = False


@dataclass(frozen=True)
class StudySpec:
    """The specification of a report.

    Args:
        name: The name of its folder and of the experiment that makes its runs.
        title: The title.
        note: What it shows, in Markdown.
        sections: Its tables.
        charts: Its charts, which show its tables.
        numbers: Published numbers, relative to the folder of studies.
        prefers: The study whose runs are preferred; by default this one.
        pictures: Functions of the runs that draw other charts, below those of tables.
    """

    name: str
    title: str
    note: str
    sections: tuple[Section, ...]
    charts: tuple[Chart, ...] = ()
    numbers: str = ""
    prefers: str = ""
    pictures: tuple[Callable[[Runs], dict[str, Any]], ...] = ()
