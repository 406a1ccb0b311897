"""A report as data: parts with notes and tables, and its form as Markdown."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from emea.record.markdown import escape_markup
from experiments.report.drawing import Spec

NOT_RUN = "not run"


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
            rows=tuple(
                (labels, tuple(cells[index] for index in used))
                for labels, cells in rows
            ),
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
        (
            tuple(row[:num_keys]),
            tuple(Entry(cell, is_ours=True) for cell in row[num_keys:]),
        )
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
        versions: The commits of the table's runs.
    """

    title: str
    note: str
    table: Table | None = None
    entries: tuple[Entry, ...] = ()
    versions: str = ""


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


def markdown_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], text: Collection[str] = ()
) -> str:
    """Return a Markdown table.

    Args:
        titles: The titles of the columns.
        rows: The cells of each row.
        text: Titles of columns with text, which are aligned to the left; the others are numbers.
    """
    alignment = ["---" if title in text else "---:" for title in titles]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, alignment, *rows))


def as_markdown(table: Table) -> str:
    """Return a filled table in Markdown, with only the rows that were run."""
    shown = table.shown()
    if not shown.rows:
        return "No run is recorded."
    rows = [[*labels, *(entry.text for entry in cells)] for labels, cells in shown.rows]
    text = markdown_table(
        [*shown.keys, *shown.titles], rows, {*shown.keys, *shown.text}
    )
    return "\n\n".join(part for part in (text, left_out(table)) if part)


def left_out(table: Table) -> str:
    """Return a sentence about the rows that were not run; empty if there are none."""
    shown = {labels for labels, _ in table.shown().rows}
    missing = [labels for labels, _ in table.rows if labels not in shown]
    if not missing:
        return ""
    partly = {labels[0] for labels in shown}
    wholly = dict.fromkeys(labels[0] for labels in missing if labels[0] not in partly)
    others = dict.fromkeys(
        " ".join(labels) for labels in missing if labels[0] in partly
    )
    return f"Not run: {', '.join([*wholly, *others])}."


def report_markdown(report: Report) -> str:
    """Return a report in Markdown."""
    parts = [f"# {report.title}"]
    if report.is_experiment:
        parts.append(f"Run it with `emea run -m experiment={report.name}`.")
    if report.chart is not None:
        parts.append(f"![{report.title}]({report.name}.svg)")
    parts += [report.note, *part_texts(report), report.provenance]
    return escape_markup("\n\n".join(part for part in parts if part)) + "\n"


def part_texts(report: Report) -> list[str]:
    """Return the headings, notes and tables of a report in Markdown."""
    texts = []
    for part in report.parts:
        if part.title:
            texts.append(f"## {part.title}")
        texts += [part.note, as_markdown(part.table) if part.table else ""]
        texts.append(part.versions)
    return texts
