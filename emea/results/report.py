"""A report as data: parts with notes and tables, which pages and files are made from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

NOT_RUN = "not run"

Spec = dict[str, Any]
"""A Vega-Lite specification of charts."""


class Cell(NamedTuple):
    """A quantity over the runs of several splits.

    Args:
        mean: The mean; ``None`` if the method does not have this quantity.
        spread: The standard deviation over splits; 0 for a single run.
        num_runs: How many runs the mean is over.
        names: The names of the runs.
        run_ids: The ids of the runs.
    """

    mean: float | None
    spread: float
    num_runs: int
    names: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One filled cell of a table.

    Args:
        text: What the table shows.
        cell: The measured value, if the cell has one.
        line: The columns of the CSV line, if the cell has one.
        number: The value behind the text, for charts.
        is_ours: Whether this is a result of a recorded run. A row without any is "not run".
    """

    text: str = ""
    cell: Cell | None = None
    line: Mapping[str, Any] | None = None
    number: float | None = None
    is_ours: bool = False


@dataclass(frozen=True)
class Table:
    """A filled table.

    Args:
        keys: Titles of the key columns.
        titles: Titles of the other columns.
        text: Titles of columns that hold text; the others hold numbers.
        rows: Labels and cells of each row.
        shows_all: Whether reports show rows without a run, too.
    """

    keys: tuple[str, ...]
    titles: tuple[str, ...]
    text: frozenset[str]
    rows: tuple[tuple[tuple[str, ...], tuple[Entry, ...]], ...]
    shows_all: bool = False

    def shown(self) -> "Table":
        """Return the table as reports show it."""
        return self if self.shows_all else self.reduced()

    def reduced(self) -> "Table":
        """Return the table without rows and columns that have no recorded run."""
        rows = [row for row in self.rows if any(entry.is_ours for entry in row[1])]
        used = [
            index
            for index in range(len(self.titles))
            if any(row[1][index].text not in ("", NOT_RUN) for row in rows)
        ]
        return replace(
            self,
            titles=tuple(self.titles[index] for index in used),
            rows=tuple((labels, tuple(cells[index] for index in used)) for labels, cells in rows),
        )


def text_table(
    keys: Sequence[str],
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    text: Iterable[str] = (),
) -> Table:
    """Return a table of given texts; the first columns are the keys."""
    num_keys = len(keys)
    filled = [
        (tuple(row[:num_keys]), tuple(Entry(cell, is_ours=True) for cell in row[num_keys:]))
        for row in rows
    ]
    return Table(tuple(keys), tuple(titles), frozenset(text), tuple(filled))


@dataclass(frozen=True)
class Part:
    """A section of a report.

    Args:
        title: The heading; empty if it has none.
        note: Text above the table, in Markdown.
        table: The table, if it has one.
        entries: The cells that go to the CSV file.
    """

    title: str
    note: str
    table: Table | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Report:
    """A report, ready to be rendered.

    Args:
        name: The name of its folder and of its files.
        title: The title.
        note: What it shows, in Markdown.
        parts: Its tables.
        provenance: A sentence about the code and the machines of the runs.
        chart: Its charts as one Vega-Lite specification; ``None`` if it has none.
        is_experiment: Whether ``emea run -m experiment=NAME`` makes its runs.
    """

    name: str
    title: str
    note: str
    parts: tuple[Part, ...]
    provenance: str = ""
    chart: Spec | None = None
    is_experiment: bool = True

    def with_runs_only(self) -> "Report | None":
        """Return the report without tables that have no run; ``None`` if no table is left."""
        kept = []
        for part in self.parts:
            table = part.table.reduced() if part.table else None
            if table and table.rows:
                ours = tuple(entry for entry in part.entries if entry.cell is not None)
                kept.append(replace(part, table=table, entries=ours))
        return replace(self, parts=tuple(kept)) if kept else None
