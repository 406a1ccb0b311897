"""The report of two-way compatibility."""

from pathlib import Path

from emea.reporting.dual import changes, report, summary, variant
from emea.reporting.records import load_committed

from .fabricated import scores, write_run

PUBLISHED = "data,ratio,method,hit@1\ndbp15k_zh,0.01,Best,0.6\ndbp15k_zh,0.01,Second,0.5\n"
EXTRA = {"calibration": {"ece": 0.02}, "peak_memory_mb": 100.0, "seconds": {"total": 5.0}}


def write_study(folder: Path) -> tuple[Path, Path]:
    study, table1 = folder / "dual", folder / "table1"
    history = [{"neural": scores(0.64), "joint": scores(0.7)}]
    for split in (0, 1):
        value = {**scores(0.7 + 0.02 * split), "hit@10": 0.9}
        more = {"final": value, "final_reverse": value, "history": history, **EXTRA}
        write_run(study, f"zh-0.01-s{split}-dual-strict", split_seed=split, em="dual", **more)
    less = {"final": scores(0.66), "history": history, **EXTRA}
    write_run(study, "zh-0.01-s1-dual-no_propagation", split_seed=1, em="dual", **less)
    write_run(table1, "a", method="neural", final=scores(0.15))
    write_run(table1, "b", final=scores(0.46))
    write_run(table1, "c", final=scores(0.52), protocol="released")
    (study / "published.csv").write_text(PUBLISHED)
    return study, table1


def test_beside_the_papers_em_and_the_best_published(tmp_path: Path) -> None:
    rows = summary(*write_study(tmp_path)).splitlines()[2:]
    assert rows == [
        "| dbp15k_zh | 1% | 0.150 | 0.460 | 0.640 | 0.710 ± 0.014 | 0.600 Best | +0.110 |"
    ]


def test_variants_are_compared_on_their_own_split(tmp_path: Path) -> None:
    runs = load_committed(write_study(tmp_path)[0] / "records")
    assert sorted({variant(run) for run in runs}) == ["no_propagation", "strict"]
    rows = changes(runs).splitlines()[2:]
    assert rows == ["| no_propagation | dbp15k_zh | 0.660 (-0.060) |  |  |  |  |"]
    assert changes([run for run in runs if variant(run) == "strict"]) == "no record"


def test_the_report_has_every_part(tmp_path: Path) -> None:
    text = report(*write_study(tmp_path))
    headline, rest, changed = text.split("\n## ")[1:]
    assert "0.710" in headline and "| dbp15k_zh | 1% | 2 |" in rest
    assert "no_propagation" in changed and "no_propagation" not in rest
