"""Our numbers beside the paper's."""

import csv
from typing import Any

import pytest

from emea.reporting.cells import Cell
from emea.reporting.comparison import Entry, comparison_table, csv_text, entries
from emea.reporting.markdown import PaperNumbers
from emea.reporting.methods import EMEA, PARIS, RREA, Method

from .fabricated import alone, line_of, made, reasoned, rows_of, scores

CELL = [("dbp15k_zh", 0.01)]
ALONE = Method("RREA", "rrea", RREA.sources[:1])
PAPER: PaperNumbers = {
    ("dbp15k_zh", 0.01, "emea"): {"hit@1": 0.517, "mr": 5.0},
    ("dbp15k_zh", 0.01, "rrea"): {"hit@1": 0.14},
    ("dbp15k_zh", 0.01, "paris"): {"hit@1": 0.01, "mrr": 0.02},
}


def entry(mean: float | None, paper: float | None, metric: str = "hit@1") -> Entry:
    cell = Cell(mean, 0.0, 3)
    return Entry("t", "EMEA", "dbp15k_zh", 0.01, "strict", metric, "test", cell, paper, ())


def found(metric: str = "hit@1", pool: str = "test") -> list[Entry]:
    """Two splits of strict EMEA, RREA once, PARIS twice, and no run of released EMEA."""
    runs = [made("s0", final=scores(0.48)), made("s1", final=scores(0.5), split_seed=1)]
    runs += [alone(0.2), reasoned("paris", 0.3), reasoned("paris", 0.4, split_seed=1)]
    return entries("t", runs, (PARIS, ALONE, EMEA), PAPER, CELL, metric, pool)


@pytest.mark.parametrize(
    ("mean", "paper", "metric", "verdict"),
    [
        (0.52, 0.5, "hit@1", "within"),
        (0.48, 0.5, "hit@1", "within"),
        (0.5201, 0.5, "hit@1", "above"),
        (0.4799, 0.5, "hit@1", "below"),
        (0.3, 0.28, "mrr", "within"),
        (0.3001, 0.28, "mrr", "above"),
        (120.0, 100.0, "mr", "within"),
        (80.0, 100.0, "mr", "within"),
        (120.1, 100.0, "mr", "above"),
        (79.9, 100.0, "mr", "below"),
        (6.0, 5.0, "mr", "within"),
        (6.1, 5.0, "mr", "above"),
        (0.5, None, "hit@1", ""),
        (None, 0.5, "hit@1", ""),
    ],
)
def test_verdicts_at_the_bounds(
    mean: float | None, paper: float | None, metric: str, verdict: str
) -> None:
    assert entry(mean, paper, metric).verdict == verdict


def test_every_method_is_told_under_each_of_its_protocols() -> None:
    told = {(one.method, one.protocol): one for one in found()}
    assert list(told) == [
        ("PARIS", "strict"),
        ("RREA", "strict"),
        ("EMEA", "released"),
        ("EMEA", "strict"),
    ]
    released, strict = told["EMEA", "released"], told["EMEA", "strict"]
    assert (released.cell, released.verdict, released.difference) == (None, "not run", "")
    assert strict.cell is not None and strict.cell.mean == pytest.approx(0.49)
    assert (strict.paper, strict.verdict, strict.difference) == (0.517, "below", "-0.027")


def test_a_row_holds_both_protocols_the_paper_and_links() -> None:
    released = "not run |  |"
    strict = "0.490 ± 0.014 | -0.027 | below"
    links = f"[1](../study/runs.jsonl#L{line_of('s0')}) [2](../study/runs.jsonl#L{line_of('s1')})"
    lines = comparison_table(found()).splitlines()
    assert lines[0] == (
        "| pair | ratio | method | paper | released | difference | verdict "
        "| strict | difference | verdict | runs |"
    )
    assert lines[-1] == f"| dbp15k_zh | 1% | EMEA | 0.517 | {released}  | {strict} | {links} |"


def test_a_method_without_a_protocol_leaves_its_columns_empty() -> None:
    row = rows_of(comparison_table(found()))[1]
    assert row[2:-1] == ["RREA", "0.140", "", "", "", "0.200 (1 split)", "+0.060", "above"]


def test_metrics_a_method_does_not_have() -> None:
    """Where the paper prints one that we cannot have, the verdict says why it is missing."""
    row = rows_of(comparison_table(found("mrr")))[0]
    assert row[2:-1] == ["PARIS", "0.020", "", "", "", "n/a", "", "n/a"]
    row = rows_of(comparison_table(found("mr")))[0]
    assert row[2:-1] == ["PARIS", "", "", "", "", "n/a", "", ""]


def test_ranks_have_one_digit() -> None:
    assert rows_of(comparison_table(found("mr")))[2][6:9] == ["", "4.9 ± 0.1", "-0.1"]


def test_the_paper_prints_nothing_of_all_targets() -> None:
    everywhere = found(pool="all")
    assert {one.paper for one in everywhere} == {None}
    assert rows_of(comparison_table(everywhere, paper=False))[2][:-1] == [
        "dbp15k_zh",
        "1%",
        "EMEA",
        "not run",
        "0.245 ± 0.007",
    ]


def test_the_csv_reads_back() -> None:
    rows = list(csv.DictReader(csv_text(found()).splitlines()))
    assert [row["method"] for row in rows] == ["PARIS", "RREA", "EMEA", "EMEA"]
    place = {"study": "t", "metric": "hit@1", "pool": "test", "data": "dbp15k_zh", "ratio": "0.01"}
    for row in rows:
        assert place.items() <= row.items()
    assert _told(rows[3]) == ["strict", "0.49", "0.0141421", "2", "0.517", "below", "id-s0 id-s1"]
    assert _told(rows[2]) == ["released", "", "", "0", "0.517", "not run", ""]
    assert _told(rows[1]) == ["strict", "0.2", "", "1", "0.14", "above", "id-alone"]


def test_what_has_no_mean_has_no_deviation() -> None:
    row = next(csv.DictReader(csv_text(found("mrr")).splitlines()))
    assert _told(row) == ["strict", "", "", "2", "0.02", "", "id-paris id-paris"]


def _told(row: dict[str | Any, str | Any]) -> list[str]:
    keys = ("protocol", "mean", "deviation", "splits", "paper", "verdict", "runs")
    return [row[key] for key in keys]
