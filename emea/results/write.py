"""Write reports: Markdown, CSV and SVG per study, one HTML page, and blocks of the docs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from emea.errors import writing
from emea.record.atomic import write_atomic
from emea.results.charts import svg
from emea.results.claims import claim_rows
from emea.results.own_runs import runs_report
from emea.results.page import report_page
from emea.results.render import as_markdown, part_texts, report_csv, report_markdown
from emea.results.report import EXPERIMENTS, PUBLISHED, ROOT, made_report, made_reports
from emea.results.speed import speed_report
from emea.results.studies.headline import HEADLINE, README_RESULTS
from emea.results.study import Report
from emea.results.summary import claims_report, summary_sentences

PAGE = "report.html"
PICTURE = "docs/accuracy.svg"
DOCUMENTS = ("README.md", "docs/results.md")
"""Documents with generated blocks."""


class Results:
    """Everything that the recorded runs of this project give.

    Args:
        table: The table of runs.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table
        self.summary = made_report(HEADLINE, table)
        self.reports = made_reports(table)
        self.claims = claim_rows(table)
        self.speed = speed_report(EXPERIMENTS / "speed")

    def page(self) -> str:
        """Return the HTML page."""
        headline = self.summary.parts[0].table
        assert headline is not None
        lead = summary_sentences(headline, self.claims)
        everything = [self.summary, claims_report(self.claims), *self.reports, self.speed]
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
    return _joined([*part_texts(results.summary)[1:], results.summary.provenance], "## ")


def _dual_block(results: Results) -> str:
    (dual,) = (report for report in results.reports if report.name == "dual")
    tables = [part for part in dual.parts if not part.title.startswith("Other metrics")]
    return "\n\n".join(
        text
        for part in tables
        for text in (part.note, as_markdown(part.table) if part.table else "")
        if text
    )


def _results_block(results: Results) -> str:
    filled = made_report(README_RESULTS, results.table).parts[0].table
    assert filled is not None
    return as_markdown(filled)


def _findings_block(results: Results) -> str:
    return _joined([claims_report(results.claims).note, *part_texts(claims_report(results.claims))])


def _speed_block(results: Results) -> str:
    return _joined(part_texts(results.speed), "## ")


def _joined(texts: Sequence[str], without: str = "\0") -> str:
    return "\n\n".join(text for text in texts if text and not text.startswith(without))


BLOCKS: Mapping[str, Callable[[Results], str]] = {
    "results": _results_block,
    "table1": _table1_block,
    "dual": _dual_block,
    "findings": _findings_block,
    "speed": _speed_block,
}
"""Generated blocks of documents by the name in their markers. A document uses any of them."""


def with_block(text: str, name: str, content: Callable[[Results], str], results: Results) -> str:
    """Replace what is between a block's two markers, if the text has them."""
    begin, end = f"<!-- {name}: written by emea report -->", f"<!-- /{name} -->"
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
            write_atomic(ROOT / PICTURE, results.picture())
            for document in filter(Path.is_file, (ROOT / name for name in DOCUMENTS)):
                text = document.read_text(encoding="utf-8")
                write_atomic(document, results.document(text))
    return [report.name for report in results.reports]


def write_own_runs(table: pd.DataFrame, out: Path) -> list[str]:
    """Write the report of a user's own runs: all runs first, then what the paper has of them.

    Raises:
        DataError: If the folder is not writable.
    """
    known = [report.with_runs_only() for report in made_reports(table, PUBLISHED)]
    reports = [runs_report(table), *(report for report in known if report is not None)]
    claims = claim_rows(table, only_run=True)
    shown = [*reports[:1], *([claims_report(claims)] if claims else []), *reports[1:]]
    with writing(out):
        for report in reports:
            write_report(report, out / report.name)
        write_atomic(out / PAGE, report_page("Recorded runs", shown))
    return [report.name for report in reports]


def write_report(report: Report, folder: Path) -> None:
    """Write a report as Markdown, its numbers as CSV and its charts as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "results.md", report_markdown(report))
    numbers = report_csv(report)
    if numbers:
        write_atomic(folder / "results.csv", numbers)
    if report.chart is not None:
        write_atomic(folder / f"{report.name}.svg", svg(report.chart))
