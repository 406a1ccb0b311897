"""Reports as files."""

from pathlib import Path
from typing import Any

import pytest

from experiments.report.filling import made_reports
from experiments.report.report import NOT_RUN
from experiments.report.run_table import run_table
from experiments.report.write import (
    BLOCKS,
    with_block,
    with_runs_only,
    write_own_runs,
)

from .fabricated import made


def test_a_block_is_replaced_and_nothing_else() -> None:
    results: Any = None
    begin, end = "<!-- b: written by make report -->", "<!-- /b -->"
    text = f"before\n{begin}\nold\n{end}\nafter\n"
    written = with_block(text, "b", lambda _: "new", results)
    assert written == f"before\n{begin}\nnew\n{end}\nafter\n"
    assert with_block(written, "b", lambda _: "new", results) == written
    assert with_block(text, "c", lambda _: "new", results) == text
    blocks = {"results", "table1", "dual", "suite", "findings", "repetitions", "speed"}
    assert blocks == set(BLOCKS)


@pytest.mark.slow
def test_only_runs_of_the_paper_are_compared_with_it(tmp_path: Path) -> None:
    runs = [made("mine", "", data="mine", seconds={"total": 12.3})]
    assert not any(with_runs_only(report) for report in made_reports(run_table(runs)))
    assert write_own_runs(runs, tmp_path) == ["runs"]
    content = (
        (tmp_path / "report.html").read_text().split("<main>")[1].split("</main>")[0]
    )
    assert 'id="claims"' not in content and NOT_RUN not in content


@pytest.mark.slow
def test_a_page_of_some_runs_has_no_gaps(tmp_path: Path) -> None:
    runs = [
        made(f"s{seed}", "", split_seed=seed, seconds={"total": 1.0}) for seed in (0, 1)
    ]
    names = write_own_runs(runs, tmp_path)
    assert {"runs", "table1", "dual", "figure4", "figure5"} <= set(names)
    assert not {"table2", "table5"} & set(names)
    for name in names:
        text = (tmp_path / name / "results.md").read_text()
        assert NOT_RUN not in text and "Not run" not in text, name
    page = (tmp_path / "report.html").read_text()
    places = [
        page.index(f'<section id="{name}">') for name in ("runs", "claims", "table1")
    ]
    assert places == sorted(places)
    assert NOT_RUN not in page.split('<section id="table1">')[1].split("</main>")[0]
    # the numbers of runs that a user does not have are not in the files either
    assert "not run" not in (tmp_path / "table1" / "results.csv").read_text()
