"""Write reports: Markdown, CSV and SVG per study, one HTML page, and blocks of the docs."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from emea.errors import writing
from emea.record.checked_files import write_atomic
from emea.results.own_runs import NOTE, PAGE, TITLE, all_runs, run_counts
from emea.results.recorded_run import RecordedRun
from experiments.archive.study import EXPERIMENTS
from experiments.report.claims import claim_rows
from experiments.report.columns import verdict
from experiments.report.drawing import svg
from experiments.report.filling import made_report, made_reports
from experiments.report.repetitions import repetitions_report
from experiments.report.report import (
    Cell,
    Entry,
    Part,
    Report,
    as_markdown,
    part_texts,
    report_markdown,
    text_table,
)
from experiments.report.report_page import report_page
from experiments.report.run_table import run_table
from experiments.report.speed import speed_report
from experiments.report.studies.headline import HEADLINE, README_RESULTS
from experiments.report.summary import claims_report, summary_sentences

PICTURE = "docs/accuracy.svg"
OWN_NOTE = (
    f"{NOTE} Tables and figures of the paper follow if some of these runs belong to them: "
    "such runs have the pair, ratio, protocol, model, rule, seed, decoding and EM settings "
    "of the paper. Other settings of the model are not compared."
)
DOCUMENTS = ("README.md", "docs/results.md")
"""Documents with generated blocks."""

CSV_COLUMNS = (
    *("study", "metric", "pool", "data", "ratio", "method", "protocol"),
    *("mean", "deviation", "splits", "paper", "verdict", "runs"),
)


class Results:
    """Everything that the recorded runs of this project give.

    Args:
        runs: The recorded runs.
    """

    def __init__(self, runs: Sequence[RecordedRun]) -> None:
        table = self.table = run_table(runs)
        self.summary = made_report(HEADLINE, table)
        self.reports = made_reports(table)
        self.claims = claim_rows(table)
        self.repetitions = repetitions_report(table)
        self.speed = speed_report(EXPERIMENTS / "speed")

    def page(self) -> str:
        """Return the HTML page."""
        headline = self.summary.parts[0].table
        assert headline is not None
        lead = summary_sentences(headline, self.claims)
        everything = [self.summary, claims_report(self.claims), self.repetitions]
        everything += [*self.reports, self.speed]
        return report_page("EMEA: our results next to the paper's", everything, lead)

    def picture(self) -> str:
        """Return the headline picture as SVG."""
        assert self.summary.chart is not None
        return svg(self.summary.chart)

    def document(self, text: str) -> str:
        """Return a document with its generated blocks filled in."""
        for name, content in BLOCKS.items():
            text = with_block(text, name, content, self)
        return text


def _table1_block(results: Results) -> str:
    return _joined(
        [*part_texts(results.summary)[1:], results.summary.provenance], "## "
    )


def _dual_block(results: Results) -> str:
    (dual,) = (report for report in results.reports if report.name == "dual")
    tables = [part for part in dual.parts if not part.title.startswith("Other metrics")]
    return "\n\n".join(
        text
        for part in tables
        for text in (
            part.note,
            as_markdown(part.table) if part.table else "",
            part.versions,
        )
        if text
    )


def _suite_block(results: Results) -> str:
    (suite,) = (report for report in results.reports if report.name == "suite")
    return _joined([suite.note, *part_texts(suite), suite.provenance])


def _results_block(results: Results) -> str:
    part = made_report(README_RESULTS, results.table).parts[0]
    assert part.table is not None
    return f"{as_markdown(part.table)}\n\n{part.versions}"


def _findings_block(results: Results) -> str:
    return _joined(
        [claims_report(results.claims).note, *part_texts(claims_report(results.claims))]
    )


def _repetitions_block(results: Results) -> str:
    return _joined([results.repetitions.note, *part_texts(results.repetitions)])


def _speed_block(results: Results) -> str:
    return _joined(part_texts(results.speed), "## ")


def _joined(texts: Sequence[str], without: str = "\0") -> str:
    return "\n\n".join(text for text in texts if text and not text.startswith(without))


BLOCKS: Mapping[str, Callable[[Results], str]] = {
    "results": _results_block,
    "table1": _table1_block,
    "dual": _dual_block,
    "suite": _suite_block,
    "findings": _findings_block,
    "repetitions": _repetitions_block,
    "speed": _speed_block,
}
"""Generated blocks of documents by the name in their markers. A document uses any of them."""


def with_block(
    text: str, name: str, content: Callable[[Results], str], results: Results
) -> str:
    """Replace what is between a block's two markers, if the text has them."""
    begin, end = f"<!-- {name}: written by make report -->", f"<!-- /{name} -->"
    if begin not in text:
        return text
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{content(results)}\n{end}{after}"


def write_results(results: Results, out: Path) -> list[str]:
    """Write the project's own reports.

    Args:
        results: The results.
        out: The folder for the reports. For the folder of experiments, the documents and the
            headline picture of the docs are written, too.

    Returns:
        The names of the reports.

    Raises:
        DataError: If the folder is not writable.
    """
    with writing(out):
        for report in results.reports:
            write_report(report, out / report.name)
        write_atomic(out / PAGE, results.page())
        if out == EXPERIMENTS:
            write_atomic(EXPERIMENTS.parent / PICTURE, results.picture())
            for document in filter(
                Path.is_file, (EXPERIMENTS.parent / name for name in DOCUMENTS)
            ):
                text = document.read_text(encoding="utf-8")
                write_atomic(document, results.document(text))
    return [report.name for report in results.reports]


def write_own_runs(runs: Sequence[RecordedRun], out: Path) -> list[str]:
    """Write the report of a user's own runs: all runs first, then what the paper has of them.

    Raises:
        DataError: If the folder is not writable.
    """
    table = run_table(runs)
    known = [with_runs_only(report) for report in made_reports(table)]
    reports = [_all_runs(runs), *(report for report in known if report is not None)]
    claims = claim_rows(table, only_run=True)
    shown = [*reports[:1], *([claims_report(claims)] if claims else []), *reports[1:]]
    with writing(out):
        for report in reports:
            write_report(report, out / report.name)
        write_atomic(out / PAGE, report_page("Recorded runs", shown))
    return [report.name for report in reports]


def _all_runs(runs: Sequence[RecordedRun]) -> Report:
    """Return the table of a user's own runs as a report."""
    found = all_runs(runs)
    table = text_table(found.columns[:1], found.columns[1:], found.rows, found.text)
    part = Part("All runs", OWN_NOTE, table)
    return Report("runs", TITLE, run_counts(runs), (part,), is_experiment=False)


def with_runs_only(report: Report) -> Report | None:
    """Return the report without tables that have no run; ``None`` if no table is left."""
    kept = []
    for part in report.parts:
        table = part.table.reduced() if part.table else None
        if table and table.rows:
            ours = tuple(entry for entry in part.entries if entry.cell is not None)
            kept.append(replace(part, table=table, entries=ours))
    return replace(report, parts=tuple(kept)) if kept else None


def write_report(report: Report, folder: Path) -> None:
    """Write a report as Markdown, its numbers as CSV and its charts as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "results.md", report_markdown(report))
    numbers = report_csv(report)
    if numbers:
        write_atomic(folder / "results.csv", numbers)
    if report.chart is not None:
        write_atomic(folder / f"{report.name}.svg", svg(report.chart))


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
    numbers = [
        _plain(value) for value in (cell.mean, spread, cell.num_runs, line["paper"])
    ]
    return [study, *place, *numbers, verdict(line), " ".join(cell.run_ids)]


def _plain(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
