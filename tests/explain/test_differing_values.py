"""Explanations name the values that count against a pair."""

import random
from pathlib import Path

import pytest

from emea.cli.align import main as align
from emea.cli.explain import main as explain
from emea.explain.explainer import Explainer
from emea.run.finished_run import load_run


def test_matches_that_decoys_judge_are_explained_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdeghiklmnoprstu", k=6)) for _ in range(60)]
    people = [
        f"{rng.choice(words)} {rng.choice(words)},{rng.randrange(1900, 2000)},{rng.choice(words)}"
        for _ in range(300)
    ]
    files = []
    # a hundred people of each table are not in the other one
    for side, first in (("a", 0), ("b", 100)):
        rows = [f"{side}{n},{people[n]}" for n in range(first, first + 200)]
        files.append(tmp_path / f"{side}.csv")
        files[-1].write_text("\n".join(["id,name,born,town", *rows]) + "\n")
    out = tmp_path / "out"
    assert align([*map(str, files), "--out", str(out)]) == 0
    assert load_run(out).metrics["decoys"] is not None
    capsys.readouterr()
    assert explain([str(out), "--pair", "a150", "b160"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "all words" not in printed
    assert "words in common: none; words only in the source: " in printed
    assert "compared with those of decoys" in printed
    assert "odds multiplied" not in printed  # these weights did not decide


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
