"""Fig. 4 and Fig. 6 as tables."""

from pathlib import Path

from emea.reporting.em_tables import over_models, over_rules
from emea.reporting.records import load_records

from .fabricated import write_run


def test_models_that_were_not_run_keep_a_row(tmp_path: Path) -> None:
    write_run(tmp_path, "a", model="lightea")
    write_run(tmp_path, "b", rule="avoid_conflict")
    write_run(tmp_path, "c", training="semi")
    rows = over_models(load_records(tmp_path / "records"), ["lightea", "alinet"]).splitlines()
    assert rows[2:] == [
        "| dbp15k_zh | alinet | sup | paris | strict | no record |",
        "| dbp15k_zh | lightea | sup | paris | strict | 0.123 → 0.500 |",
    ]


def test_rules_in_both_training_modes(tmp_path: Path) -> None:
    write_run(tmp_path, "a", rule="paris_avoid_conflict")
    write_run(tmp_path, "b", training="semi", rule="avoid_conflict")
    write_run(tmp_path, "c", model="lightea")
    write_run(tmp_path, "d", protocol="released")
    rows = over_rules(load_records(tmp_path / "records")).splitlines()
    assert rows[2:] == [
        "| dbp15k_zh | rrea | sup | paris | strict | no record |",
        "| dbp15k_zh | rrea | sup | avoid_conflict | strict | no record |",
        "| dbp15k_zh | rrea | sup | paris_avoid_conflict | strict | 0.123 → 0.500 |",
        "| dbp15k_zh | rrea | semi | paris | strict | no record |",
        "| dbp15k_zh | rrea | semi, 100 steps a turn | avoid_conflict | strict | 0.123 → 0.500 |",
        "| dbp15k_zh | rrea | semi | paris_avoid_conflict | strict | no record |",
    ]
