"""Renderers: filled tables as Markdown and CSV."""

import csv
import io
from collections.abc import Collection, Iterable, Sequence

from emea.record.description import escape_markup
from emea.results.columns import verdict
from emea.results.run_table import Cell
from emea.results.study import Report
from emea.results.table import Entry, Table

CSV_COLUMNS = (
    *("study", "metric", "pool", "data", "ratio", "method", "protocol"),
    *("mean", "deviation", "splits", "paper", "verdict", "runs"),
)


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
    text = markdown_table([*shown.keys, *shown.titles], rows, {*shown.keys, *shown.text})
    return "\n\n".join(part for part in (text, left_out(table)) if part)


def left_out(table: Table) -> str:
    """Return a sentence about the rows that were not run; empty if there are none."""
    shown = {labels for labels, _ in table.shown().rows}
    missing = [labels for labels, _ in table.rows if labels not in shown]
    if not missing:
        return ""
    partly = {labels[0] for labels in shown}
    wholly = dict.fromkeys(labels[0] for labels in missing if labels[0] not in partly)
    others = dict.fromkeys(" ".join(labels) for labels in missing if labels[0] in partly)
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
    return texts


def report_csv(report: Report) -> str:
    """Return the measured cells of a report as CSV; empty if it has none.

    There is one line per method, place, protocol and metric, with the ids of the runs.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    entries = [entry for part in report.parts for entry in part.entries]
    writer.writerows(_csv_line(report.name, entry) for entry in entries)
    return buffer.getvalue() if entries else ""


def _csv_line(study: str, entry: Entry) -> list[object]:
    line = entry.line
    assert line is not None
    cell = line["cell"] or Cell(None, 0.0, 0)
    spread = cell.spread if cell.mean is not None and cell.num_runs > 1 else None
    place = [line[key] for key in CSV_COLUMNS[1:7]]
    numbers = [_plain(value) for value in (cell.mean, spread, cell.num_runs, line["paper"])]
    return [study, *place, *numbers, verdict(line), " ".join(cell.run_ids)]


def _plain(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
