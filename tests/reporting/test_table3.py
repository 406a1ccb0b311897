"""Table 3 from fabricated runs."""

from pathlib import Path

import pytest

from emea.reporting.records import RecordedRun
from emea.reporting.study import Study
from emea.reporting.table3 import study

from .fabricated import alone, made, rows_of, scores

PAPER = """data,ratio,method,hit@1,mrr
dbp15k_zh,0.3,rsn_sup,0.508,0.591
dbp15k_zh,0.3,rrea_sup,0.715,0.794
dbp15k_zh,0.3,dual_amn_semi,0.808,
"""


@pytest.fixture
def reported(tmp_path: Path) -> Study:
    (tmp_path / "paper.csv").write_text(PAPER)
    reverse = {"final_reverse": scores(0.79)}
    runs: list[RecordedRun] = [
        alone(0.8, "dual_amn", model="dual_amn", training="semi", ratio=0.3, **reverse),
        alone(0.1, "other", model="dual_amn", ratio=0.3, **reverse),
        alone(0.6, "lightea", model="lightea", ratio=0.3, data="dbp15k_fr", **reverse),
        made("em", ratio=0.3, initial=scores(0.72)),
        alone(0.9, "few labels", model="dual_amn", training="semi"),
    ]
    return study(runs, tmp_path)


def rows(reported: Study, title: str) -> list[list[str]]:
    parts = reported.parts
    number = next(i for i, part in enumerate(parts) if part.startswith(f"## {title}"))
    return rows_of(parts[number + 1])


def test_models_that_are_only_reported_were_not_run(reported: Study) -> None:
    first = rows(reported, "Hit@1")[0]
    assert first[:4] == ["dbp15k_zh", "30%", "RSN (sup)", "0.508"]
    assert first[7:] == ["not run", "", "", ""]


def test_ours_stand_beside_what_was_reported(reported: Study) -> None:
    found = {(row[0], row[2]): row for row in rows(reported, "Hit@1")}
    assert set(found) == {
        ("dbp15k_zh", "RSN (sup)"),
        ("dbp15k_zh", "RREA (sup)"),
        ("dbp15k_zh", "Dual-AMN (semi)"),
        ("dbp15k_fr", "LightEA (sup)"),
    }
    dual = found["dbp15k_zh", "Dual-AMN (semi)"]
    assert dual[7:10] == ["0.800 (1 split)", "-0.008", "within"]
    assert found["dbp15k_fr", "LightEA (sup)"][3:8] == ["", "", "", "", "0.600 (1 split)"]


def test_the_first_model_of_an_em_run_counts(reported: Study) -> None:
    rrea = next(row for row in rows(reported, "Hit@1") if row[2] == "RREA (sup)")
    assert rrea[3:-1] == ["0.715", "", "", "", "0.720 (1 split)", "+0.005", "within"]


def test_the_other_direction_is_of_models_alone(reported: Study) -> None:
    assert rows(reported, "The other direction") == [
        ["dbp15k_zh", "Dual-AMN (semi)", "0.808", "0.790 (1 split)", "-0.018"],
        ["dbp15k_fr", "LightEA (sup)", "", "0.790 (1 split)", ""],
    ]
