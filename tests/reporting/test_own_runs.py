"""A store's report shows what it has runs of, and nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emea.reporting import all_runs
from emea.reporting.comparison import NOT_RUN
from emea.reporting.own_runs import reduced_table, with_runs_only
from emea.reporting.records import RecordedRun
from emea.reporting.studies import made_studies, store_page, write_study
from emea.reporting.study import Study

from .fabricated import made, rows_of

TABLE = """| pair | ratio | paper | released | strict | difference | runs |
| --- | --- | ---: | ---: | ---: | ---: | --- |
| zh | 1% | 0.5 | not run | 0.4 | -0.1 | [1](a) |
| zh | 5% | 0.6 |  | not run |  |  |
| fr | 1% |  | not run | 0.3 |  | [2](b) |"""


@pytest.fixture(scope="module")
def runs(committed_runs: list[RecordedRun]) -> list[RecordedRun]:
    """Some of the committed runs, as if a user had made them."""
    return [
        run
        for run in committed_runs
        if (run.metrics["data"], run.metrics["ratio"]) == ("dbp15k_zh", 0.01)
        and run.metrics["protocol"] == "strict"
    ]


def own(name: str, **changes: Any) -> RecordedRun:
    run = made(name, data="mine", seconds={"total": 1.0}, **changes)
    return replace(run, header=run.header | {"name": name})


def test_rows_and_columns_without_runs_are_left_out() -> None:
    assert reduced_table(TABLE) == (
        """| pair | ratio | paper | strict | difference | runs |
| --- | --- | ---: | ---: | ---: | --- |
| zh | 1% | 0.5 | 0.4 | -0.1 | [1](a) |
| fr | 1% |  | 0.3 |  | [2](b) |"""
    )
    assert reduced_table("\n".join(TABLE.splitlines()[:2] + TABLE.splitlines()[3:4])) is None


def test_sections_and_studies_without_runs_are_left_out() -> None:
    empty = "\n".join(TABLE.splitlines()[:2])
    study = Study("a", "A", ("Remark.", f"## One\n\n{TABLE}", f"## Two\n\nText.\n\n{empty}"))
    reduced = with_runs_only(study)
    assert reduced is not None
    assert reduced.parts[:2] == ("Remark.", "## One")
    assert "## Two" not in reduced.parts and "Text." not in reduced.parts
    assert with_runs_only(Study("a", "A", ("Remark.", empty))) is None
    assert with_runs_only(Study("a", "A", ("Remark.", NOT_RUN))) is None


@pytest.mark.slow
def test_a_page_of_some_runs_has_no_gaps(runs: list[RecordedRun], tmp_path: Path) -> None:
    studies = made_studies(runs)
    reduced = [one for one in map(with_runs_only, studies) if one is not None]
    names = {study.name for study in reduced}
    assert {"table1", "dual", "figure4"} <= names and "table5" not in names
    for study in reduced:
        assert NOT_RUN not in study.markdown
        assert all(entry.cell is not None for entry in study.entries)
    (before,) = (study for study in studies if study.name == "table1")
    (after,) = (study for study in reduced if study.name == "table1")
    assert len(after.markdown.splitlines()) < 0.2 * len(before.markdown.splitlines())
    shown = [all_runs.study(runs), *reduced]
    for study in shown:
        write_study(study, tmp_path / study.name)
    page = store_page(shown, runs, tmp_path)
    places = [page.index(f'<section id="{name}">') for name in ("runs", "claims", "table1")]
    assert places == sorted(places)
    assert NOT_RUN not in page.split('<section id="table1">')[1].split("</main>")[0]


def test_a_page_without_runs_of_the_paper_is_the_runs(tmp_path: Path) -> None:
    mine = [own("mine")]
    assert not any(map(with_runs_only, made_studies(mine)))
    page = store_page([all_runs.study(mine)], mine, tmp_path)
    content = page.split("<main>")[1].split("</main>")[0]
    assert 'id="claims"' not in content and NOT_RUN not in content


def test_the_best_run_is_named_for_each_protocol() -> None:
    strict, released = own("one"), own("two", protocol="released")
    parts = all_runs.study([strict, released, strict]).parts
    assert parts[0] == "3 finished runs, 3 of them with test links."
    rows = rows_of(parts[2])
    assert [row[2] for row in rows] == ["released", "strict"]
    assert [row[-1] for row in rows] == ["1", "2"]
