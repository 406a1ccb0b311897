"""Tables from specifications: our numbers next to the paper's."""

import pandas as pd
import pytest

from experiments.report.columns import Difference, Measured, Printed, verdict
from experiments.report.filling import versions_of
from experiments.report.methods import EMEA, PARIS
from experiments.report.records import PaperNumbers
from experiments.report.report import Cell, Entry, Table
from experiments.report.study_spec import Row, TableSpec

from .fabricated import filled, made, reasoned, texts

CELL = [("dbp15k_zh", 0.01)]
PAPER: PaperNumbers = {
    ("dbp15k_zh", 0.01, "emea"): {"hit@1": 0.517, "mr": 5.0},
    ("dbp15k_zh", 0.01, "rrea"): {"hit@1": 0.14},
    ("dbp15k_zh", 0.01, "paris"): {"hit@1": 0.01, "mrr": 0.02},
}


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
    assert (
        verdict({"cell": Cell(mean, 0.0, 3), "paper": paper, "metric": metric})
        == expected
    )


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


def test_commits_of_a_table_are_named_by_column() -> None:
    def entry(*run_ids: str) -> Entry:
        cell = Cell(0.5, 0.0, len(run_ids), run_ids=tuple(run_ids))
        return Entry("0.5", cell, is_ours=True)

    commits = {"1": "a" * 40, "2": "b" * 40, "3": "a" * 40}
    runs = pd.DataFrame(
        [{"run_id": one, "tags": {"commit": commit}} for one, commit in commits.items()]
    )
    rows = ((("zh",), (entry("1"), entry("1", "2"), Entry("text"))),)
    table = Table(("pair",), ("x", "y", "z"), frozenset(), rows)
    assert versions_of(table, runs) == (
        "Commits of the runs: x: aaaaaaaa; y: aaaaaaaa, bbbbbbbb."
    )
    same = Table(
        ("pair",), ("x", "y"), frozenset(), ((("zh",), (entry("1"), entry("3"))),)
    )
    assert versions_of(same, runs) == "Commit of all runs: aaaaaaaa."
    none = Table(("pair",), ("x",), frozenset(), ((("zh",), (Entry("text"),)),))
    assert versions_of(none, runs) == ""
