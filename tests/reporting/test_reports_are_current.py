"""The results page and the reports are what the records give, byte for byte."""

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
from matplotlib import ft2font

from emea.config.files import option_names
from emea.reporting.cells import cell
from emea.reporting.comparison import csv_text
from emea.reporting.figures import write_figure
from emea.reporting.findings import findings
from emea.reporting.methods import EMEA, PRASE, runs_of
from emea.reporting.records import RecordedRun
from emea.reporting.studies import (
    EXPERIMENTS,
    PAGE,
    RESULTS_PAGE,
    ROOT,
    STUDIES,
    made_studies,
    page_with_results,
    report_page,
)
from emea.reporting.study import DBP15K, Study

AGAIN = "run emea report"
REPORTS = [
    ROOT / "README.md",
    RESULTS_PAGE,
    EXPERIMENTS / "README.md",
    *sorted(EXPERIMENTS.glob("*/results.md")),
]


@pytest.fixture(scope="module")
def runs(committed_runs: list[RecordedRun]) -> list[RecordedRun]:
    return committed_runs


@pytest.fixture(scope="module", autouse=True)
def _found_once(runs: list[RecordedRun]) -> Iterator[None]:
    """The results page and the HTML page hold the same findings, which take seconds."""
    text = findings(runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("emea.reporting.studies.findings", lambda _: text)
        yield


@pytest.fixture(scope="module")
def studies(runs: list[RecordedRun]) -> dict[str, Study]:
    return {study.name: study for study in made_studies(runs)}


@pytest.mark.parametrize("name", STUDIES)
def test_a_report_holds_the_recorded_results(name: str, studies: dict[str, Study]) -> None:
    folder, study = EXPERIMENTS / name, studies[name]
    assert (folder / "results.md").read_text(encoding="utf-8") == study.markdown, AGAIN
    numbers = folder / "results.csv"
    assert numbers.exists() == bool(study.entries)
    if study.entries:
        assert numbers.read_text(encoding="utf-8") == csv_text(study.entries), AGAIN
    pictures = {path.name for path in folder.glob(f"{name}.*")}
    assert pictures == ({f"{name}.png", f"{name}.svg"} if study.figure else set()), AGAIN


@pytest.mark.parametrize("name", [name for name in STUDIES if name.startswith("figure")])
def test_a_picture_is_drawn_from_the_recorded_results(
    name: str, studies: dict[str, Study], tmp_path: Path
) -> None:
    figure = studies[name].figure
    assert figure is not None
    committed = EXPERIMENTS / name / f"{name}.svg"
    version = f"Matplotlib v{matplotlib.__version__},"
    # versions draw differently; sizes of words come from FreeType, of which wheels bring their own
    if version not in committed.read_text("utf-8") or ft2font.__freetype_build_type__ != "local":
        pytest.skip("the pictures were drawn by another matplotlib")
    for path in write_figure(figure, tmp_path / name):
        assert path.read_bytes() == committed.with_suffix(path.suffix).read_bytes(), AGAIN


def test_the_results_page_holds_the_recorded_results(runs: list[RecordedRun]) -> None:
    page = RESULTS_PAGE.read_text(encoding="utf-8")
    assert page_with_results(page, runs) == page, AGAIN


def test_every_experiment_has_a_report() -> None:
    assert sorted(STUDIES) == [name for name in option_names("experiment") if "/" not in name]


def test_the_page_holds_the_recorded_results(
    runs: list[RecordedRun], studies: dict[str, Study]
) -> None:
    written = (EXPERIMENTS / PAGE).read_text(encoding="utf-8")
    assert report_page(list(studies.values()), runs, EXPERIMENTS) == written, AGAIN


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    missing = [
        link for link in links if not link.startswith("http") and not (path.parent / link).exists()
    ]
    assert not missing


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("data", DBP15K)
def test_prase_is_ahead_among_all_targets_as_the_readme_says(
    data: str, ratio: float, runs: list[RecordedRun]
) -> None:
    prase, emea = (
        cell(
            (one.run for one in runs_of(runs, method, "strict", data, ratio).values()),
            "hit@1",
            "all",
        )
        for method in (PRASE, EMEA)
    )
    assert prase is not None and prase.mean is not None
    assert emea is not None and emea.mean is not None
    assert prase.mean > emea.mean
