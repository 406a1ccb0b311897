"""The report of two-way compatibility."""

from pathlib import Path
from typing import Any

import pytest

from emea.reporting.dual import NAMES, changed_setting, changes, study, summary
from emea.reporting.methods import DUAL_PARTS
from emea.reporting.records import RecordedRun

from .fabricated import alone, line_of, made, rows_of, scores

PUBLISHED = "data,ratio,method,hit@1\ndbp15k_zh,0.01,Best,0.6\ndbp15k_zh,0.01,Second,0.5\n"
COSTS = {"calibration": {"ece": 0.02}, "peak_memory_mb": 100.0, "seconds": {"total": 5.0}}


def dual(name: str, hit: float, params: dict[str, Any] | None = None, **more: Any) -> RecordedRun:
    value = {**scores(hit), "hit@10": 0.9}
    measured = {"final": value, "final_reverse": value, "em": "dual", **COSTS}
    return made(name, params=DUAL_PARTS | (params or {}), **(measured | more))


def other(key: str, value: Any) -> dict[str, Any]:
    return {f"em.two_way.{key}": value}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dual").mkdir()
    (tmp_path / "dual" / "published.csv").write_text(PUBLISHED)
    return tmp_path / "dual"


def runs() -> list[RecordedRun]:
    found = [dual("s0", 0.7), dual("s1", 0.72, split_seed=1), alone(0.15)]
    found += [alone(0.15, split_seed=1), made("em", final=scores(0.46))]
    found += [made("released", final=scores(0.52), protocol="released")]
    return [*found, dual("no_propagation", 0.66, other("propagation", 0))]


@pytest.mark.parametrize(
    ("params", "metrics", "told"),
    [
        ({}, {}, None),
        (other("features", "['similarity', 'noisy_or', 'coverage']"), {}, "without evidence"),
        (other("features", "['noisy_or']"), {}, "without similarity, evidence, coverage"),
        (other("both_directions", False), {}, "one direction"),
        (other("sweeps", 1), {}, "one sweep"),
        (other("sweeps", 7), {}, "two_way.sweeps=7"),
        (other("memory", 0.5), {}, "similarities remembered"),
        (other("fused_answer", False), {}, "the encoder's answer"),
        ({"em.iterations": 3}, {}, "iterations=3"),
        ({}, {"model": "lightea"}, "model=lightea"),
        ({}, {"training": "semi"}, "training=semi"),
        (other("sweeps", 1), {"model": "lightea"}, None),
        (other("sweeps", 1) | {"seed": 1}, {}, None),
        (other("sweeps", 1) | other("propagation", 0), {}, None),
        ({}, {"model": "lightea", "training": "semi"}, None),
    ],
)
def test_the_one_thing_that_is_changed(
    params: dict[str, Any], metrics: dict[str, Any], told: str | None
) -> None:
    assert changed_setting(dual("a", 0.5, params, **metrics)) == told


def test_every_part_has_a_name_for_being_off() -> None:
    assert {key for key, _ in NAMES} == set(DUAL_PARTS) - {"em.two_way.features"}
    for key, value in NAMES:
        assert value != str(DUAL_PARTS[key])


def test_changes_are_told_from_the_whole_of_the_same_split() -> None:
    link = f"[1](../study/runs.jsonl#L{line_of('no_propagation')})"
    assert rows_of(changes(runs())) == [
        ["nothing", "0.700", "", "", ""],
        ["no propagation of candidates", "0.660 (-0.040)", "", "", link],
    ]


def test_changes_without_a_whole_have_no_difference() -> None:
    run = dual("a", 0.66, other("propagation", 0), ratio=0.3)
    assert rows_of(changes([run])) == [
        ["nothing", "", "", "", ""],
        [
            "no propagation of candidates",
            "",
            "",
            "0.660",
            f"[1](../study/runs.jsonl#L{line_of('a')})",
        ],
    ]


@pytest.mark.parametrize(
    "elsewhere",
    [{"protocol": "released"}, {"split_seed": 1}, {"data": "dbp15k_ja"}, {"em": "paper"}],
)
def test_changes_are_of_one_cell(elsewhere: dict[str, Any]) -> None:
    run = dual("a", 0.66, other("propagation", 0), **elsewhere)
    assert len(rows_of(changes([run]))) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_runs_of_a_change_the_latest_counts(turned: bool) -> None:
    off = other("propagation", 0)
    found = [dual("early", 0.6, off, started=1), dual("late", 0.65, off, started=2)]
    row = rows_of(changes(found[::-1] if turned else found))[1]
    assert row[1:] == ["0.650", "", "", f"[1](../study/runs.jsonl#L{line_of('late')})"]


def test_beside_the_papers_em_and_the_best_published(folder: Path) -> None:
    first, second, *_ = rows_of(summary(runs(), folder).split("\n\n")[0])
    assert first == [
        "dbp15k_zh",
        "1%",
        "0.150",
        "0.460 (1 split)",
        "0.500",
        "0.710 ± 0.014 (2 splits)",
        "0.600 Best",
        "+0.110",
    ]
    assert second[2:] == ["", "", "", "not run", "", ""]


def test_the_readme_links_from_where_it_lies(folder: Path) -> None:
    link = f"({folder.parent.name}/study/runs.jsonl#L{line_of('no_propagation')})"
    assert link in summary(runs(), folder)


def test_other_pairs_tell_what_they_cost(folder: Path) -> None:
    run = dual("a", 0.7, data="contea_fr_en", ratio=0.2)
    rows = rows_of(summary([run], folder).split("\n\n")[1])
    assert rows[-1] == [
        "contea_fr_en",
        "20%",
        "",
        "0.123",
        "0.700 (1 split)",
        "0.350",
        "5",
        "100",
    ]
    assert rows[0][2:] == ["", "", "not run", "", "", ""]


def test_the_report_has_every_part(folder: Path) -> None:
    report = study(runs(), folder)
    assert report.parts[0].startswith("3 recorded runs")
    rest = rows_of(report.parts[report.parts.index("## The rest of it") + 1])
    assert [row[:9] for row in rest] == [
        ["dbp15k_zh", "1%", "2", "0.710", "0.900", "0.355", "0.710", "0.020", "5"]
    ]
    assert [entry.verdict for entry in report.entries].count("") == 1
