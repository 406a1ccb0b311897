"""Explanations name the values that count against a pair."""

from pathlib import Path

import pytest

from emea.cli.align import main as align
from emea.cli.explain import main as explain
from emea.explain.explainer import Explainer
from emea.run.finished_run import load_run


def test_differing_values_are_named_with_their_weight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for side in "ab":
        rows = ["id,name,phone,born"]
        for number in range(40):
            # phones differ often, dates of birth once
            phone = f"55{side if number % 3 == 0 else 'x'}{number:05}"
            born = 1900 + number if (side, number) != ("b", 7) else 2020
            rows.append(f"{side}{number},Person {number},{phone},{born}-01-01")
        files.append(tmp_path / f"{side}.csv")
        files[-1].write_text("\n".join(rows) + "\n")
    out = tmp_path / "out"
    settings = ["method=paris", "literals=equal"]
    assert align([*map(str, files), *settings, "--out", str(out)]) == 0
    explainer = Explainer(load_run(out))
    source, target = explainer.source, explainer.target
    cases = {
        number: explainer(source.find(f"a{number}"), target.find(f"b{number}"))
        for number in (4, 6, 7)
    }
    found = {number: case.asked.differing for number, case in cases.items()}
    assert not found[4]
    (born,), (phone,) = found[7], found[6]
    values = born.value.name, born.target_value.name
    assert (born.relation.name, values) == ("born", ('"1907-01-01"', '"2020-01-01"'))
    assert phone.relation.name == phone.target_relation.name == "phone"
    assert 0 < born.factor < phone.factor < 1, (
        "different dates are rarer, and count more"
    )
    capsys.readouterr()
    assert explain([str(out), "--pair", "a7", "b7"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        '"1907-01-01" differs from born → "2020-01-01" (odds multiplied by' in printed
    )
