"""Table 2 from fabricated runs."""

from pathlib import Path

from emea.reporting.records import RecordedRun
from emea.reporting.table2 import study

from .fabricated import alone, line_of, made, rows_of, scores, write_run

PAPER = "data,ratio,method,hit@1,mrr\ndbp15k_zh,0.01,rrea_semi,0.3,0.35\n"
PAPER += "dbp15k_zh,0.01,emea_semi,0.49,\n"


def told(runs: list[RecordedRun], folder: Path) -> tuple[str, ...]:
    (folder / "paper.csv").write_text(PAPER)
    return study(runs, folder).parts


def test_both_stages_of_a_run_stand_beside_the_paper(tmp_path: Path) -> None:
    semi = {"training": "semi", "initial": scores(0.31)}
    runs = [made(protocol="released", **semi), made("sup", protocol="released")]
    parts = told(runs, tmp_path)
    rows = rows_of(parts[parts.index("## Hit@1 among test targets") + 1])
    assert len(rows) == 3 * 5 * 2
    missing = ["not run", "", ""]
    rrea, emea = rows[:2]
    assert rrea[2:-1] == ["RREA (semi)", "0.300", "0.310 (1 split)", "+0.010", "within", *missing]
    assert emea[2:-1] == ["EMEA (semi)", "0.490", "0.500 (1 split)", "+0.010", "within", *missing]
    assert rrea[-1] == emea[-1] == f"[1](../study/runs.jsonl#L{line_of('a')})"
    mrr = rows_of(parts[parts.index("## MRR among test targets") + 1])
    assert mrr[0][3:7] == ["0.350", "0.310 (1 split)", "-0.040", "below"]
    assert mrr[1][3:7] == ["", "0.500 (1 split)", "", ""]


def test_a_model_alone_stands_where_there_is_no_run_with_em(tmp_path: Path) -> None:
    parts = told([alone(0.32, training="semi")], tmp_path)
    rows = rows_of(parts[parts.index("## Hit@1 among test targets") + 1])
    assert rows[0][4] == rows[0][7] == "0.320 (1 split)"
    assert rows[1][4] == rows[1][7] == "not run"


def test_p_is_of_the_same_protocol(tmp_path: Path) -> None:
    ranks = {"initial": [2, 2, 2, 1], "final": [1, 1, 2, 2]}
    run = write_run(tmp_path, "a", ranks, training="semi")
    rows = rows_of(told([run], tmp_path)[-1])
    assert rows == [["dbp15k_zh", "1%", "", "", "0.638", "0.638"]]
