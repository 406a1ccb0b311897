"""The report over models, trainings and rules."""

from pathlib import Path

from emea.reporting.models import report, summary

from .fabricated import scores, write_run

PAPER = "data,ratio,method,hit@1\ndbp15k_zh,0.01,rrea_semi,0.3\ndbp15k_zh,0.01,emea_semi,0.4\n"
REPORTED = "data,ratio,method,hit@1\ndbp15k_zh,0.3,alinet,0.5\n"


def test_a_row_per_setting_beside_the_papers(tmp_path: Path) -> None:
    study, other = tmp_path / "models", tmp_path / "other"
    write_run(study, "a")
    write_run(study, "b", model="lightea", ratio=0.05)
    write_run(study, "second-split", split_seed=1, final=scores(0.9))
    write_run(study, "neural", method="neural", model="alone")
    write_run(study, "other-code", tags={"dirty": "true"}, model="uncommitted")
    write_run(other, "c", protocol="released")
    (study / "paper.csv").write_text(PAPER)
    rows = summary(study, [other]).splitlines()
    assert rows[0].endswith("| 1% | 5% |")
    assert rows[2:] == [
        "| dbp15k_zh | lightea | sup | paris | strict | no record | 0.123 → 0.500 |",
        "| dbp15k_zh | rrea | sup | paris | released | 0.123 → 0.500 | no record |",
        "| dbp15k_zh | rrea | sup | paris | strict | 0.123 → 0.500 | no record |",
        "| dbp15k_zh | rrea | semi | paris | paper's Table 2 | 0.300 → 0.400 |  |",
    ]


def test_the_report_has_each_table_and_names_where_it_comes_from(tmp_path: Path) -> None:
    write_run(tmp_path, "a")
    (tmp_path / "paper.csv").write_text(PAPER)
    (tmp_path / "reported.csv").write_text(REPORTED)
    text = report(tmp_path)
    assert "1 recorded runs; commit cccccccccc (dirty: false), some GPU" in text
    alone, models, table2, rules = text.split("\n## ")[1:]
    assert "| alinet | dbp15k_zh | 30% | 0 | 0.500 | no record |" in alone
    assert "| dbp15k_zh | alinet | sup | paris | strict | no record |" in models
    assert "| dbp15k_zh | 1% | released |  | 0.300 | no record |" in table2
    assert "| dbp15k_zh | rrea | sup | paris | strict | 0.123 → 0.500 |" in rules
