"""Reports of a user's own runs show what there are runs of, and nothing else."""

from pathlib import Path
from typing import Any

from emea.results.own_runs import (
    RunTable,
    all_runs,
    best_runs,
    run_counts,
    write_own_runs,
)
from emea.results.recorded_run import RecordedRun

from ..experiments.report.fabricated import made


def own(name: str, **changes: Any) -> RecordedRun:
    return made(name, "", data="mine", seconds={"total": 12.3}, **changes)


def rows(table: RunTable) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_every_run_has_a_row() -> None:
    bare = {"hit@1": None, "mrr": None, "mr": None}
    after = {"one_to_one": {"hit@1": 0.75}}
    early = own("early", initial=bare, final=bare)
    early.header["tags"]["command"] = "emea run data=mine"
    runs = [own("late", started=2, **after), early]
    assert run_counts(runs) == "2 finished runs, 1 of them with test links."
    first, late = rows(all_runs(runs))
    place = {
        "pair": "mine",
        "model": "rrea",
        "rule": "paris",
        "em": "paper",
        "protocol": "strict",
    }
    command = {"command": "emea run data=mine"}
    metrics = {
        "Hit@1 before": "0.1234",
        "Hit@1": "0.5000",
        "Hit@1 one-to-one": "0.7500",
        "MRR": "0.5000",
        "MR": "5.0",
    }
    assert late == {"run": "late", "seconds": "12"} | place | metrics | {"command": ""}
    empty = dict.fromkeys(metrics, "")
    assert first == {"run": "early", "seconds": "12"} | place | empty | command


def test_the_best_run_of_each_pair_ratio_and_protocol() -> None:
    low = {"hit@1": 0.25, "mrr": 0.3, "mr": 9.0}
    runs = [own("low", final=low), own("high"), own("other", protocol="released")]
    found = rows(best_runs(runs))
    strict = next(row for row in found if row["protocol"] == "strict")
    assert (strict["best run"], strict["Hit@1"], strict["runs"]) == (
        "high",
        "0.5000",
        "2",
    )
    assert [row["best run"] for row in found if row["protocol"] == "released"] == [
        "other"
    ]
    assert best_runs([own("none", final={"hit@1": None})]).rows == []


def test_names_are_escaped(tmp_path: Path) -> None:
    write_own_runs([own("low <b>")], tmp_path)
    page, text = (
        (tmp_path / "report.html").read_text(),
        (tmp_path / "runs/results.md").read_text(),
    )
    assert (
        "low &lt;b&gt;" in page
        and "<b>" not in page.split("<body")[1].split("</main>")[0]
    )
    assert "| low &lt;b> | mine | rrea |" in text
