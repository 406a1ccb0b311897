"""The paper's numbers, which are stored next to the reports."""

from itertools import product
from pathlib import Path

from experiments.archive.study import EXPERIMENTS
from experiments.report.methods import MODEL_NAMES
from experiments.report.records import load_paper_numbers
from experiments.report.studies.tables import TABLE3_KEYS
from experiments.report.study_spec import DBP15K, DWY100K, RATIOS


def test_what_was_not_printed_is_left_out(tmp_path: Path) -> None:
    lines = [
        "# source",
        "data,ratio,method,hit@1,mrr,mr",
        "dbp15k_zh,0.01,emea,0.517,,116.4",
    ]
    (tmp_path / "paper.csv").write_text("\n".join(lines) + "\n")
    numbers = load_paper_numbers(tmp_path / "paper.csv")
    assert numbers == {("dbp15k_zh", 0.01, "emea"): {"hit@1": 0.517, "mr": 116.4}}


def test_table1_is_complete() -> None:
    numbers = load_paper_numbers(EXPERIMENTS / "table1" / "paper.csv")
    methods = ("paris", "rrea", "prase", "emea")
    assert set(numbers) == set(product((*DBP15K, *DWY100K), RATIOS, methods))
    assert numbers["dbp15k_ja", 0.3, "emea"] == {
        "hit@1": 0.771,
        "mrr": 0.837,
        "mr": 12.6,
    }
    for (_, _, method), printed in numbers.items():
        ranks = method in ("rrea", "emea")  # reasoning ranks nothing
        assert set(printed) == ({"hit@1", "mrr", "mr"} if ranks else {"hit@1"})


def test_table3_is_complete() -> None:
    numbers = load_paper_numbers(EXPERIMENTS / "table3" / "paper.csv")
    methods = {method for _, _, method in numbers}
    assert len(methods) == 14
    assert [*dict.fromkeys(method for _, _, method in numbers), "lightea_sup"] == list(
        TABLE3_KEYS
    )
    assert set(numbers) == set(product(DBP15K, [0.3], methods))
    assert {method.rsplit("_", 1)[0] for method in methods} <= set(MODEL_NAMES)
    assert all("hit@1" in printed for printed in numbers.values())
