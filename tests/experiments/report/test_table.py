"""Tables from specifications: our numbers next to the paper's."""

import csv
from typing import Any

import pytest

from experiments.report.columns import Difference, Measured, Printed, verdict
from experiments.report.methods import EMEA, PARIS, RREA, Method
from experiments.report.records import PaperNumbers
from experiments.report.report import Cell, Entry, Part, Report, Table, as_markdown
from experiments.report.studies.common import compared
from experiments.report.study_spec import Row, TableSpec
from experiments.report.write import report_csv

from .fabricated import alone, filled, made, reasoned, rows_of, scores, texts

CELL = [("dbp15k_zh", 0.01)]
ALONE = Method("RREA", "rrea", RREA.sources[:1])
PAPER: PaperNumbers = {
    ("dbp15k_zh", 0.01, "emea"): {"hit@1": 0.517, "mr": 5.0},
    ("dbp15k_zh", 0.01, "rrea"): {"hit@1": 0.14},
    ("dbp15k_zh", 0.01, "paris"): {"hit@1": 0.01, "mrr": 0.02},
}
ZH = ("dbp15k_zh", "1%")


def found(metric: str = "hit@1", pool: str = "test") -> Table:
    """Two splits of strict EMEA, RREA once, PARIS twice, and no run of released EMEA."""
    runs = [made("s0", final=scores(0.48)), made("s1", final=scores(0.5), split_seed=1)]
    runs += [alone(0.2), reasoned("paris", 0.3), reasoned("paris", 0.4, split_seed=1)]
    return filled(compared((PARIS, ALONE, EMEA), CELL, metric, pool), runs, PAPER)


def entries(table: Table) -> list[Entry]:
    return [entry for _, cells in table.rows for entry in cells if entry.line]


def csv_rows(table: Table) -> list[dict[str, str]]:
    report = Report("t", "T", "", (Part("", "", table, tuple(entries(table))),))
    return list(csv.DictReader(report_csv(report).splitlines()))


@pytest.mark.parametrize(
    ("mean", "paper", "metric", "expected"),
    [
        (0.52, 0.5, "hit@1", "within"),
        (0.48, 0.5, "hit@1", "within"),
        (0.5201, 0.5, "hit@1", "above"),
        (0.4799, 0.5, "hit@1", "below"),
        (120.0, 100.0, "mr", "within"),
        (80.0, 100.0, "mr", "within"),
        (120.1, 100.0, "mr", "above"),
        (79.9, 100.0, "mr", "below"),
        (0.5, None, "hit@1", ""),
        (None, 0.5, "hit@1", ""),
    ],
)
def test_verdicts_at_the_bounds(
    mean: float | None, paper: float | None, metric: str, expected: str
) -> None:
    assert verdict({"cell": Cell(mean, 0.0, 3), "paper": paper, "metric": metric}) == expected


def test_every_method_has_a_line_for_each_of_its_protocols() -> None:
    lines = [(e.line["method"], e.line["protocol"]) for e in entries(found()) if e.line]
    assert lines == [
        ("PARIS", "strict"),
        ("RREA", "strict"),
        ("EMEA", "released"),
        ("EMEA", "strict"),
    ]
    row = texts(found())[*ZH, "EMEA"]
    assert (row["released"], row["verdict, released"], row["released - paper"]) == (
        "not run",
        "",
        "",
    )
    assert row["strict"] == "0.490 ± 0.014"
    assert (row["paper"], row["verdict, strict"]) == ("0.517", "below")
    assert row["strict - paper"] == "-0.027"


def test_the_csv_reads_back() -> None:
    rows = csv_rows(found())
    assert [row["method"] for row in rows] == ["PARIS", "RREA", "EMEA", "EMEA"]
    place = {"study": "t", "metric": "hit@1", "pool": "test", "data": "dbp15k_zh", "ratio": "0.01"}
    for row in rows:
        assert place.items() <= row.items()
    assert _numbers(rows[3]) == [
        "strict",
        "0.49",
        "0.0141421",
        "2",
        "0.517",
        "below",
        "id-s0 id-s1",
    ]
    assert _numbers(rows[2]) == ["released", "", "", "0", "0.517", "not run", ""]
    assert _numbers(rows[1]) == ["strict", "0.2", "", "1", "0.14", "above", "id-alone"]


def _numbers(row: dict[str, Any]) -> list[str]:
    keys = ("protocol", "mean", "deviation", "splits", "paper", "verdict", "runs")
    return [row[key] for key in keys]


@pytest.mark.parametrize(
    ("splits", "spread", "text"),
    [
        (3, True, "0.490 ± 0.014 (2 splits)"),
        (2, True, "0.490 ± 0.014"),
        (0, True, "0.490 ± 0.014"),
        (0, False, "0.490"),
    ],
)
def test_a_cell_says_if_it_has_fewer_splits(splits: int, spread: bool, text: str) -> None:
    runs = [made("s0", final=scores(0.48)), made("s1", final=scores(0.5), split_seed=1)]
    spec = TableSpec(
        ("row",), [Row(("a",), *CELL[0], EMEA)], (Measured("x", spread=spread),), splits
    )
    assert texts(filled(spec, runs)) == {("a",): {"x": text}}


def test_differences_need_both_numbers() -> None:
    columns = (
        Measured("ours"),
        Printed("paper"),
        Printed("none", "mrr"),
        Difference("a", "ours", "paper"),
        Difference("b", "ours", "none"),
        Difference("c", "ours", Measured("whole", method=PARIS)),
    )
    spec = TableSpec(("row",), [Row(("x",), *CELL[0], EMEA)], columns, 0)
    row = texts(filled(spec, [made(), reasoned("paris", 0.3)], PAPER))["x",]
    assert (row["a"], row["b"], row["c"]) == ("-0.017", "", "+0.200")


def test_rows_and_columns_without_runs_are_left_out_and_named() -> None:
    rows = [
        Row(("zh", "1%"), "dbp15k_zh", 0.01, EMEA),
        Row(("zh", "5%"), "dbp15k_zh", 0.05, EMEA),
        Row(("fr", "1%"), "dbp15k_fr", 0.01, EMEA),
    ]
    columns = (Measured("strict"), Measured("released", protocol="released"), Printed("paper"))
    table = filled(TableSpec(("pair", "ratio"), rows, columns), [made()], PAPER)
    text = as_markdown(table)
    assert rows_of(text) == [["zh", "1%", "0.500", "0.517"]]
    assert text.endswith("\n\nNot run: fr, zh 5%.")
    assert as_markdown(filled(TableSpec(("pair",), rows, columns), [])) == "No run is recorded."
