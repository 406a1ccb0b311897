"""Reports of a user's own runs show what there are runs of, and nothing else."""

from pathlib import Path
from typing import Any

from emea.results.own_runs import RunTable, all_runs, run_counts, write_own_runs
from emea.results.recorded_run import RecordedRun

from ..experiments.report.fabricated import made


def own(name: str, **changes: Any) -> RecordedRun:
    return made(name, "", data="mine", seconds={"total": 12.3}, **changes)


def rows(table: RunTable) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_every_run_has_a_row() -> None:
    bare = {"hit@1": None, "mrr": None, "mr": None}
    runs = [own("late", started=2), own("early", initial=bare, final=bare)]
    assert run_counts(runs) == "2 finished runs, 1 of them with test links."
    early, late = rows(all_runs(runs))
    place = {"pair": "mine", "model": "rrea", "rule": "paris", "em": "paper", "protocol": "strict"}
    metrics = {"Hit@1 before": "0.1234", "Hit@1": "0.5000", "MRR": "0.5000", "MR": "5.0"}
    assert late == {"run": "late", "seconds": "12"} | place | metrics
    assert early == {"run": "early", "seconds": "12"} | place | dict.fromkeys(metrics, "")


def test_names_are_escaped(tmp_path: Path) -> None:
    write_own_runs([own("low <b>")], tmp_path)
    page, text = (tmp_path / "report.html").read_text(), (tmp_path / "runs/results.md").read_text()
    assert "low &lt;b&gt;" in page and "<b>" not in page.split("<body")[1].split("</main>")[0]
    assert "| low &lt;b> | mine | rrea |" in text
