"""Tables 4 and 5 from fabricated runs."""

from dataclasses import replace
from pathlib import Path

from emea.reporting.study import RATIOS
from emea.reporting.times import table4, table5

from .fabricated import history, line_of, made, rows_of

SECONDS = (100.0, 20.0, 30.0)


def paper(folder: Path, data: str) -> Path:
    lines = [f"{data},{ratio},emea,250.4,100,2,{90 + i}" for i, ratio in enumerate(RATIOS)]
    text = "\n".join(["data,ratio,method,initial,neural,neural_sd,joint", *lines]) + "\n"
    (folder / "paper.csv").write_text(text)
    return folder


def test_parts_are_means_over_iterations(tmp_path: Path) -> None:
    hits = ((0.1, 0.2), (0.3, 0.4), (0.5, 0.6))
    whole = made("whole", history=history(*hits, neural=SECONDS))
    taken = {"params": {"initial_from": "file"}, "split_seed": 1}
    later = made("later", history=history(*hits, neural=(0.0, 40.0, 50.0)), **taken)
    rows = rows_of(table4([whole, later], paper(tmp_path, "dbp15k_zh")).parts[-1])
    assert len(rows) == 5
    links = (
        f"[1](../study/runs.jsonl#L{line_of('whole')}) [2](../study/runs.jsonl#L{line_of('later')})"
    )
    # weights taken over took no training, and iteration 0 is the first training
    assert rows[0] == [
        "dbp15k_zh",
        "1%",
        "250",
        "100 ± 2",
        "90",
        "100.00",
        "35.00 ± 12.91",
        "0.75 ± 0.00",
        "some GPU",
        links,
    ]
    assert rows[4] == ["dbp15k_zh", "30%", "250", "100 ± 2", "94", "", "not run", "not run", "", ""]


def test_weights_of_another_run_leave_no_first_training(tmp_path: Path) -> None:
    run = made(params={"initial_from": "file"})
    [row, *_] = rows_of(table4([run], paper(tmp_path, "dbp15k_zh")).parts[-1])
    assert row[5:8] == ["", "1.00", "0.75"]


def test_the_tables_own_runs_are_timed_alone(tmp_path: Path) -> None:
    shared = [made("shared", split_seed=1), made("latest", split_seed=2)]
    own = replace(made("own"), is_own=True)
    [row, *_] = rows_of(table4([*shared, own], paper(tmp_path, "dbp15k_zh")).parts[-1])
    assert row[-1] == f"[1](../study/runs.jsonl#L{line_of('own')})"


def test_the_papers_minutes_are_seconds_beside_another_pair(tmp_path: Path) -> None:
    kind = {"data": "contea_fr_en", "ratio": 0.2}
    runs = [made("five", params={"em.iterations": 5}, **kind), made("ten", split_seed=1, **kind)]
    rows = rows_of(table5(runs, paper(tmp_path, "dwy100k_dbp_wd")).parts[-1])
    assert rows[0][:5] == ["contea_fr_en", "1%", "15024", "6000 ± 120", "5400"]
    assert rows[3][-1] == f"[1](../study/runs.jsonl#L{line_of('five')})"
