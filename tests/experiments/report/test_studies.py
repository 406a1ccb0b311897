"""The paper's tables and figures from fabricated runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_rel

from emea.results.recorded_run import RecordedRun
from experiments.report.filling import made_report
from experiments.report.methods import DUAL_PARTS
from experiments.report.report import Report
from experiments.report.run_table import run_table
from experiments.report.significance import shown_p
from experiments.report.studies import STUDIES
from experiments.report.study_spec import DBP15K, RATIOS

from .fabricated import history, made, scores, texts

Texts = dict[tuple[str, ...], dict[str, str]]
ZH = ("dbp15k_zh", "1%")
TIMES = "initial,neural,neural_sd,joint"
PUBLISHED = {
    "table1": (
        "hit@1,mrr,mr",
        ["dbp15k_zh,0.01,rrea,0.14,0.2,6.5", "dbp15k_zh,0.01,emea,0.517,,116.4"],
    ),
    "table4": (TIMES, [f"dbp15k_zh,{ratio},emea,250.4,100,2,90" for ratio in RATIOS]),
    "dual": ("hit@1", ["dbp15k_zh,0.01,Best,0.6", "dbp15k_zh,0.01,Second,0.5"]),
}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    for study, (titles, lines) in PUBLISHED.items():
        (tmp_path / study).mkdir()
        name = "published.csv" if study == "dual" else "paper.csv"
        text = "\n".join([f"data,ratio,method,{titles}", *lines]) + "\n"
        (tmp_path / study / name).write_text(text)
    return tmp_path


def report_of(name: str, runs: Iterable[RecordedRun], published: Path) -> Report:
    return made_report(STUDIES[name], run_table(runs), published)


def tables(report: Report) -> dict[str, Texts]:
    """The tables of a report by heading."""
    return {part.title: texts(part.table) for part in report.parts if part.table}


def test_times_are_means_over_iterations(published: Path) -> None:
    hits = ((0.1, 0.2), (0.3, 0.4), (0.5, 0.6))
    whole = made("whole", history=history(*hits, neural=(100.0, 20.0, 30.0)))
    taken = {"params": {"initial_from": "file"}, "split_seed": 1}
    later = made("later", history=history(*hits, neural=(0.0, 40.0, 50.0)), **taken)
    found = tables(report_of("table4", [whole, later], published))[""]
    # weights that were read took no training, and iteration 0 is the first training
    assert found[ZH] == {
        "first, paper": "250",
        "neural, paper": "100 ± 2",
        "joint, paper": "90",
        "first": "100.00",
        "neural": "35.00 ± 12.91",
        "joint": "0.75 ± 0.00",
        "machine": "some GPU",
    }
    own = made(
        "own", "table4", split_seed=2, history=history(*hits, neural=(9.0, 1.0, 1.0))
    )
    assert (
        tables(report_of("table4", [whole, own], published))[""][ZH]["first"] == "9.00"
    )


def dual(
    name: str, hit: float, params: dict[str, Any] | None = None, **more: Any
) -> RecordedRun:
    value = {**scores(hit), "hit@10": 0.9}
    costs = {
        "calibration": {"ece": 0.02},
        "peak_memory_mb": 100.0,
        "seconds": {"total": 5.0},
    }
    measured = {"final": value, "final_reverse": value, "em": "dual", **costs}
    return made(name, params=DUAL_PARTS | (params or {}), **(measured | more))


OFF = {"em.two_way.propagation": 0}


def test_paired_tests_use_the_splits_that_both_methods_have(published: Path) -> None:
    runs = [dual(f"d{seed}", 0.7 + seed / 100, split_seed=seed) for seed in range(5)]
    papers = [0.5, 0.52, 0.51]
    runs += [
        made(f"p{seed}", split_seed=seed, final=scores(hit))
        for seed, hit in enumerate(papers)
    ]
    found = tables(report_of("dual", runs, published))
    row = found["`em=dual` against `em=paper`, paired over splits"][ZH]
    assert (row["em=paper"], row["em=dual"], row["gain"]) == (
        "0.510",
        "0.710",
        "+0.200",
    )
    p = ttest_rel([0.7, 0.71, 0.72], papers).pvalue
    assert (row["p"], row["splits"]) == (shown_p([p]), "3")
    assert "One-to-one inference against `em=dual`, paired over splits" not in found


@pytest.mark.parametrize("turned", [False, True])
def test_changes_are_relative_to_the_complete_method(
    published: Path, turned: bool
) -> None:
    runs = [dual("s0", 0.7), dual("s1", 0.9, split_seed=1)]
    runs += [dual("early", 0.6, OFF, started=1), dual("late", 0.65, OFF, started=2)]
    runs += [dual("alone", 0.66, OFF, ratio=0.3)]
    for number, other in enumerate(
        (
            {"protocol": "released"},
            {"split_seed": 1},
            {"data": DBP15K[2]},
            {"em": "paper"},
        )
    ):
        runs.append(dual(f"other{number}", 0.1, {"em.two_way.memory": 0.5}, **other))
    found = tables(report_of("dual", runs[::-1] if turned else runs, published))
    changes = found["One setting changed"]
    assert set(changes) == {("nothing",), ("no propagation of candidates",)}
    row = changes["no propagation of candidates",]
    assert (row["1%"], row["change at 1%"]) == ("0.650", "-0.050")
    assert (row["30%"], row["change at 30%"], row["5%"]) == ("0.660", "", "")


def labelled(
    arm: str, asked: int, hit: float, iterations: int = 1, **changes: Any
) -> RecordedRun:
    """A run of the benchmark of suggested labels on ja."""
    marks = {"data.benchmark": f"labels {arm} {asked}", "data.benchmark_ratio": 0.01}
    kind = {"data": "dbp15k_ja", "em": "one_to_one", "split": "known", "ratio": None}
    kind |= {"final": scores(hit), "num_links": {"train": 150 + asked, "test": 9}}
    return made(
        f"{arm}-{asked}",
        params={"em.iterations": iterations, **marks},
        **(kind | changes),
    )


def test_runs_of_a_benchmark_are_in_no_other_table(published: Path) -> None:
    run = labelled("start", 0, 0.5, iterations=5)
    parts = report_of("dual", [run], published).parts
    shown = [part.title for part in parts if part.table and part.table.reduced().rows]
    assert shown == ["Suggested and random labels"]
