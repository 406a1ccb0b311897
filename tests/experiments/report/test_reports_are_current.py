"""The committed reports are what the recorded runs give, byte for byte."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from emea.config.composition import option_names
from emea.results.recorded_run import RecordedRun
from experiments.archive.study import EXPERIMENTS, find_studies
from experiments.report.drawing import svg
from experiments.report.report import report_markdown
from experiments.report.report_page import vega_bundle
from experiments.report.studies import STUDIES
from experiments.report.write import DOCUMENTS, PAGE, PICTURE, Results, report_csv

pytestmark = pytest.mark.slow

ROOT = EXPERIMENTS.parent
AGAIN = "run make report"
DRAWN_BY = "1.9.0.post1"
"""The version of vl-convert that drew the committed pictures; others may draw differently."""

REPORTS = [
    *(ROOT / name for name in DOCUMENTS),
    EXPERIMENTS / "README.md",
    *sorted(EXPERIMENTS.glob("*/results.md")),
]
same_version = pytest.mark.skipif(
    version("vl-convert-python") != DRAWN_BY,
    reason="drawn by another version of vl-convert",
)


@pytest.fixture(scope="module")
def results(committed_runs: list[RecordedRun]) -> Results:
    return Results(committed_runs)


def test_reports_hold_the_recorded_results(results: Results) -> None:
    assert [report.name for report in results.reports] == list(STUDIES)
    for report in results.reports:
        folder = EXPERIMENTS / report.name
        assert (folder / "results.md").read_text(encoding="utf-8") == report_markdown(
            report
        ), AGAIN
        numbers, kept = report_csv(report), folder / "results.csv"
        assert kept.exists() == bool(numbers), AGAIN
        assert not numbers or kept.read_text(encoding="utf-8") == numbers, AGAIN
        pictures = {path.name for path in folder.glob(f"{report.name}.*")}
        assert pictures == ({f"{report.name}.svg"} if report.chart else set()), AGAIN


@same_version
def test_pictures_are_drawn_from_the_recorded_results(results: Results) -> None:
    assert (ROOT / PICTURE).read_text(encoding="utf-8") == results.picture(), AGAIN
    charts = [report for report in results.reports if report.chart is not None]
    assert len(charts) == 7
    for report in charts:
        assert report.chart is not None
        committed = EXPERIMENTS / report.name / f"{report.name}.svg"
        assert committed.read_text(encoding="utf-8") == svg(report.chart), AGAIN


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_hold_the_recorded_results(name: str, results: Results) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "written by make report -->" in text
    assert results.document(text) == text, AGAIN


@same_version
def test_the_page_holds_the_recorded_results(results: Results) -> None:
    written = (EXPERIMENTS / PAGE).read_text(encoding="utf-8")
    assert vega_bundle() in written
    assert results.page() == written, AGAIN


def test_every_study_with_recorded_runs_has_a_report() -> None:
    experiments = {name for name in option_names("experiment") if "/" not in name}
    assert set(STUDIES) <= experiments
    assert {folder.name for folder in find_studies([EXPERIMENTS])} <= set(STUDIES)


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    missing = [
        link
        for link in links
        if not link.startswith("http") and not (path.parent / link).exists()
    ]
    assert not missing
