"""Figure 6 from fabricated runs."""

from pathlib import Path

import pytest

from emea.reporting.figure6 import study, with_rule

from .fabricated import made, rows_of, scores


def test_rows_tell_the_lift_of_every_set_of_rules(tmp_path: Path) -> None:
    runs = [made("paris"), made("paris1", split_seed=1, final=scores(0.6))]
    runs += [made("semi", training="semi", rule="avoid_conflict", ratio=0.3, final=scores(0.1))]
    runs += [made("released", rule="avoid_conflict", protocol="released")]
    _, _, table, remark, released = study(runs, tmp_path).parts
    rows = rows_of(table)
    assert len(rows) == 2 * 3 * 5
    told = {tuple(row[:3]): row[3:] for row in rows}
    sup = told["supervised", "PARIS", "1%"]
    assert sup[:3] == ["0.123 ± 0.000", "0.550 ± 0.071", "+0.427"]
    assert sup[3].count("runs.jsonl#L") == 2
    semi = told["semi-supervised", "AvoidConf", "30%"]
    assert semi[:3] == ["0.123 (1 split)", "0.100 (1 split)", "-0.023"]
    assert told["supervised", "AvoidConf", "1%"] == ["not run", "not run", "", ""]
    assert "protocol=released" in remark
    [row] = rows_of(released)
    assert row[:4] == ["supervised", "AvoidConf", "1%", "0.123 (1 split)"]


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("avoid_conflict", "rule.num_neighbours"),
        ("paris_avoid_conflict", "rule.rules.avoid_conflict.num_neighbours"),
    ],
)
def test_runs_with_more_neighbours_belong_to_another_figure(rule: str, key: str) -> None:
    usual = made("usual", rule=rule, params={key: 5})
    more = made("more", rule=rule, params={key: 20}, started=9)
    assert [one.run for one in with_rule([usual, more], "sup", rule)[0.01]] == [usual]


def test_a_panel_per_training_mode(tmp_path: Path) -> None:
    conflict = {"rule": "avoid_conflict", "final": scores(0.3)}
    runs = [made(), made("b", **conflict), made("c", training="semi", ratio=0.05, **conflict)]
    figure = study(runs, tmp_path).figure
    assert figure is not None
    sup, semi = figure.axes
    assert [sup.get_title(), semi.get_title()] == ["(a) supervised", "(b) semi-supervised"]
    lines = {line.get_label(): line[0].get_xydata().tolist() for line in sup.containers}
    assert lines == {
        "RREA alone": [[0, 0.1234]],
        "PARIS": [[0, 0.5]],
        "AvoidConf": [[0, 0.3]],
        "both (not run)": [],
    }
    assert semi.containers[2][0].get_xydata().tolist() == [[1, 0.3]]
