"""Table 2 beside the runs."""

from pathlib import Path

from emea.reporting.paper_numbers import PaperNumbers
from emea.reporting.records import load_records
from emea.reporting.table2 import paper_row, table

from .fabricated import scores, write_run

PAPER: PaperNumbers = {
    ("dbp15k_zh", 0.01, "rrea_semi"): {"hit@1": 0.3, "mrr": 0.35},
    ("dbp15k_zh", 0.01, "emea_semi"): {"hit@1": 0.45},
    ("dbp15k_fr", 0.05, "rrea_semi"): {"hit@1": 0.9},
}


def test_runs_stand_beside_the_paper_with_their_turns(tmp_path: Path) -> None:
    write_run(tmp_path, "a", training="semi", protocol="released", initial=scores(0.31))
    write_run(tmp_path, "b", protocol="released", initial=scores(0.9))
    runs = load_records(tmp_path / "records")
    assert table(runs, PAPER).splitlines()[2:] == [
        "| dbp15k_zh | 1% | released | 100 | 0.300 | 0.310 | +0.010 | 0.450 | 0.500 | +0.050 |",
        "| dbp15k_zh | 1% | strict |  | 0.300 | no record |  | 0.450 | no record |  |",
    ]
    assert table(runs, PAPER, "mrr").splitlines()[2].endswith("| -0.040 |  | 0.500 |  |")


def test_runs_of_other_turns_have_rows_of_their_own(tmp_path: Path) -> None:
    for steps in (100, 1200):
        params = {"training.epochs_per_turn": steps}
        write_run(tmp_path, f"run-{steps}", params=params, training="semi")
    rows = table(load_records(tmp_path / "records"), PAPER).splitlines()[3:]
    assert [row.split(" | ")[3] for row in rows] == ["100", "1200"]


def test_the_papers_row_leaves_out_what_was_not_printed() -> None:
    assert paper_row(PAPER, [0.01, 0.05])[-2:] == ["0.300 → 0.450", ""]
