"""Reports and their tables as Markdown."""

from collections.abc import Collection, Iterable, Sequence

from emea.record.description import escape_markup
from emea.results.report import Report, Table


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
