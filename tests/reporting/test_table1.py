"""Table 1 from fabricated runs."""

from pathlib import Path

import pytest

from emea.reporting.records import RecordedRun
from emea.reporting.study import DWY100K, Study
from emea.reporting.table1 import study, summary

from .fabricated import alone, made, reasoned, rows_of, scores

PAPER = """# source
data,ratio,method,hit@1,mrr,mr
dbp15k_zh,0.01,paris,0.01,,
dbp15k_zh,0.01,rrea,0.14,0.2,6.5
dbp15k_zh,0.01,emea,0.517,,116.4
dwy100k_dbp_wd,0.05,emea,0.7,0.8,9.9
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "paper.csv").write_text(PAPER)
    return tmp_path


def runs() -> list[RecordedRun]:
    """PARIS, RREA, EMEA strict on two splits and released on one, and em=dual."""
    found = [alone(0.2), alone(0.2, "alone1", split_seed=1), reasoned("paris", 0.3)]
    found += [made("s0", final=scores(0.4)), made("s1", final=scores(0.5), split_seed=1)]
    found += [made("released", final=scores(0.6), protocol="released")]
    return [*found, made("dual", em="dual", final=scores(0.75))]


def section(made_study: Study, title: str) -> list[list[str]]:
    number = made_study.parts.index(f"## {title}")
    return rows_of(made_study.parts[number + 1])


def cell(rows: list[list[str]], *place: str) -> list[str]:
    """What a row says after its place, its links apart."""
    [row] = [row for row in rows if row[:3] == list(place)]
    return row[3:-1]


def test_rows_put_our_runs_beside_the_papers(folder: Path) -> None:
    rows = section(study(runs(), folder), "Hit@1 among test targets")
    none = ["", "", ""]
    zh = ("dbp15k_zh", "1%")
    assert cell(rows, *zh, "PARIS") == ["0.010", *none, "0.300 (1 split)", "+0.290", "above"]
    assert cell(rows, *zh, "RREA") == ["0.140", *none, "0.200 ± 0.000", "+0.060", "above"]
    assert cell(rows, *zh, "PRASE") == ["", *none, "not run", "", ""]
    released = ["0.600 (1 split)", "+0.083", "above"]
    strict = ["0.450 ± 0.071", "-0.067", "below"]
    assert cell(rows, *zh, "EMEA") == ["0.517", *released, *strict]
    assert cell(rows, *zh, "em=dual") == ["", *none, "0.750 (1 split)", "", ""]


def test_metrics_of_ranks_and_all_targets(folder: Path) -> None:
    made_study = study(runs(), folder)
    zh = ("dbp15k_zh", "1%")
    mrr = section(made_study, "MRR among test targets")
    assert cell(mrr, *zh, "PARIS") == ["", "", "", "", "n/a", "", ""]
    assert cell(mrr, *zh, "RREA")[0] == "0.200"
    mr = section(made_study, "MR among test targets")
    assert cell(mr, *zh, "EMEA")[:3] == ["116.4", "6.0 (1 split)", "-110.4"]
    everywhere = section(made_study, "Hit@1 among all targets")
    assert cell(everywhere, *zh, "EMEA") == ["0.300 (1 split)", "0.225 ± 0.035"]
    assert {row[0] for row in everywhere}.isdisjoint(DWY100K)


def test_cells_that_nobody_ran_say_so(folder: Path) -> None:
    made_study = study(runs(), folder)
    rows = section(made_study, "Hit@1 among test targets")
    assert len(rows) == 5 * 5 * 5
    large = [row for row in rows if row[0] in DWY100K]
    assert len(large) == 2 * 5 * 5
    assert {row[7] for row in large} == {"not run"}
    emea = cell(rows, "dwy100k_dbp_wd", "5%", "EMEA")
    assert emea == ["0.700", "not run", "", "", "not run", "", ""]
    told = [entry for entry in made_study.entries if entry.data in DWY100K]
    assert told and {entry.verdict for entry in told} == {"not run"}


def test_the_report_names_where_it_comes_from(folder: Path) -> None:
    text = study(runs(), folder).markdown
    assert "`python run.py -m experiment=table1` runs it." in text
    assert "7 recorded runs; commit cccccccccc (dirty: false), some GPU, torch 2;" in text
    assert "split seeds 0, 1 unless" in text


def test_the_readme_shows_what_the_leak_is_worth(folder: Path) -> None:
    neural, _, reasoning, _ = summary(runs(), folder).split("\n\n")
    first, second = rows_of(neural)[:2]
    assert first == [
        "dbp15k_zh",
        "1%",
        "0.140",
        "0.200 ± 0.000",
        "0.517",
        "0.600 (1 split)",
        "0.450 ± 0.071",
        "+0.150",
        "0.750 (1 split)",
        "2, 1, 2, 1",
    ]
    assert second[2:] == ["", "not run", "", "not run", "not run", "", "not run", "0"]
    assert ["PARIS", "dbp15k_zh", "here", "0.300 (1 split)"] in rows_of(reasoning)
