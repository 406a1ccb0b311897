"""All studies: the reports that recorded runs give, and the files they become."""

from collections.abc import Callable, Sequence
from pathlib import Path

from emea.errors import DataError
from emea.record.atomic import write_atomic
from emea.reporting import (
    all_runs,
    dual,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    table1,
    table2,
    table3,
    times,
)
from emea.reporting.comparison import csv_text
from emea.reporting.figures import write_figure
from emea.reporting.findings import REMARK as FINDINGS_REMARK
from emea.reporting.findings import findings, findings_table
from emea.reporting.own_runs import with_runs_only
from emea.reporting.page import HtmlPart, page
from emea.reporting.records import RecordedRun, seen_from
from emea.reporting.speed import speed_tables
from emea.reporting.study import Study

ROOT = Path(__file__).resolve().parents[2]
PAGE = "report.html"
RESULTS_PAGE = ROOT / "docs" / "results.md"
EXPERIMENTS = ROOT / "experiments"
MEASUREMENTS = EXPERIMENTS / "speed"
SHIPPED = Path(__file__).resolve().parents[1] / "experiments"
PUBLISHED = SHIPPED if SHIPPED.is_dir() else EXPERIMENTS
"""Where the published numbers are: in an installed package, they are inside the package."""

STUDIES: dict[str, Callable[[Sequence[RecordedRun], Path], Study]] = {
    "table1": table1.study,
    "table2": table2.study,
    "table3": table3.study,
    "table4": times.table4,
    "table5": times.table5,
    "figure4": figure4.study,
    "figure5": figure5.study,
    "figure6": figure6.study,
    "figure7": figure7.study,
    "figure8": figure8.study,
    "dual": dual.study,
}


BESIDE = {"dual": "table1"}
"""What stands beside another study, and has the runs that stand there."""


def page_with_results(page: str, runs: Sequence[RecordedRun]) -> str:
    """The page ``docs/results.md`` with its generated blocks written again."""
    for name, summary in {"table1": table1.summary, "dual": dual.summary}.items():
        block = summary(view(runs, name), EXPERIMENTS / name)
        page = with_block(page, name, block.replace("](experiments/", "](../experiments/"))
    page = with_block(page, "findings", findings(runs))
    return with_block(page, "speed", speed_tables(MEASUREMENTS))


def with_block(text: str, name: str, content: str) -> str:
    """A text with what stands between a block's two marks replaced."""
    begin, end = f"<!-- {name}: written by emea report -->", f"<!-- /{name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{content}\n{end}{after}"


def write_reports(studies: Sequence[Study], runs: Sequence[RecordedRun], out: Path) -> None:
    """Write every study, the page and, for the committed records, ``docs/results.md``.

    Raises:
        DataError: the folder cannot be written.
    """
    try:
        for study in studies:
            write_study(study, out / study.name)
        is_store = studies[0].name == all_runs.NAME
        make_page = store_page if is_store else report_page
        write_atomic(out / PAGE, make_page(studies, runs, out))
        if out == EXPERIMENTS:
            text = RESULTS_PAGE.read_text(encoding="utf-8")
            write_atomic(RESULTS_PAGE, page_with_results(text, runs))
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error}") from error


def own_studies(runs: Sequence[RecordedRun]) -> list[Study]:
    """The studies of a user's own runs: only what there are runs of, all runs first."""
    return [all_runs.study(runs), *filter(None, map(with_runs_only, made_studies(runs)))]


def made_studies(runs: Sequence[RecordedRun]) -> list[Study]:
    """Every study."""
    return [make(view(runs, name), PUBLISHED / name) for name, make in STUDIES.items()]


def view(runs: Sequence[RecordedRun], name: str) -> list[RecordedRun]:
    """The runs as a study sees them: it prefers those that were made for it."""
    return seen_from(runs, BESIDE.get(name, name))


def report_page(studies: Sequence[Study], runs: Sequence[RecordedRun], folder: Path) -> str:
    """All reports on one page that needs nothing else, from what lies in the folder."""
    text = f"# What the paper claims\n\n{findings(runs)}\n"
    parts = [HtmlPart("claims", text, folder / "claims")]
    parts += [HtmlPart(study.name, study.markdown, folder / study.name) for study in studies]
    return page("EMEA, reproduced: tables, figures and claims beside the paper's", parts, folder)


def store_page(studies: Sequence[Study], runs: Sequence[RecordedRun], folder: Path) -> str:
    """The page of a store: all its runs first, then what they say about the paper."""
    parts = [HtmlPart(study.name, study.markdown, folder / study.name) for study in studies]
    claims = findings_table(runs, only_run=True)
    if claims:
        text = f"# What the paper claims\n\n{FINDINGS_REMARK}\n\n{claims}\n"
        parts.insert(1, HtmlPart("claims", text, folder / "claims"))
    return page("EMEA: recorded runs", parts, folder)


def write_study(study: Study, folder: Path) -> None:
    """The report as Markdown, its numbers as CSV, its picture as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "results.md", study.markdown)
    if study.entries:
        write_atomic(folder / "results.csv", csv_text(study.entries))
    if study.figure is not None:
        write_figure(study.figure, folder / study.name)
