"""Tables as data: rows, columns, and how they are filled from the table of runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from emea.results.methods import Method
from emea.results.records import PaperNumbers
from emea.results.run_table import Cell, Runs

NOT_RUN, NOT_APPLICABLE = "not run", "n/a"


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


def fill(spec: TableSpec, runs: Runs, paper: PaperNumbers) -> Table:
    """Fill a table from the recorded runs and the paper's numbers."""
    rows = spec.rows(runs) if callable(spec.rows) else spec.rows
    kept = _common_splits(spec, runs, rows)
    cells = [
        _filled(spec, Scope(runs, paper, spec.splits or 0, row, kept.get(row))) for row in rows
    ]
    if spec.splits is None:
        most = max((e.cell.num_runs for row in cells for e in row if e.cell), default=0)
        for place, row in enumerate(rows):  # cells with fewer splits than others say so
            if any(e.cell.num_runs < most for e in cells[place] if e.cell):
                cells[place] = _filled(spec, Scope(runs, paper, most, row, kept.get(row)))
    filled = tuple((row.labels, found) for row, found in zip(rows, cells, strict=True))
    if spec.known_only:
        filled = tuple(row for row in filled if any(map(is_known, row[1])))
    text = frozenset(c.title for c in spec.columns if c.is_text)
    titles = tuple(column.title for column in spec.columns)
    return Table(spec.keys, titles, text, filled, spec.known_only)


def is_known(entry: Entry) -> bool:
    """Return whether a cell was run or printed in the paper."""
    return bool(entry.line and (entry.line["cell"] or entry.line["paper"] is not None))


def _filled(spec: TableSpec, scope: Scope) -> tuple[Entry, ...]:
    entries = []
    for column in spec.columns:
        scope.done[column.title] = column.entry(scope)
        entries.append(scope.done[column.title])
    return tuple(entries)


def _common_splits(spec: TableSpec, runs: Runs, rows: Sequence[Row]) -> dict[Row, frozenset[int]]:
    """By row, the splits that it shares with the rows of its group, if they share any."""
    places = [spec.keys.index(title) for title in spec.common]
    if not places:
        return {}
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.labels[place] for place in places), []).append(row)
    kept: dict[Row, frozenset[int]] = {}
    for group in groups.values():
        asked = [
            (row.method, row.protocol, row.data, row.ratio)
            for row in group
            if row.method is not None and row.ratio is not None
        ]
        shared = frozenset(runs.shared_splits(asked))
        if shared:
            kept |= dict.fromkeys(group, shared)
    return kept
