"""``emea explain`` from the arguments to the files."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from emea.cli.main import main as emea
from emea.explain.explainer import Explainer
from emea.explain.explanation import (
    Case,
    Claim,
    Contribution,
    Entity,
    Explanation,
    Relation,
    Term,
    Unmatched,
)
from emea.explain.text import SCHEMA

from ..finished_runs import Finished


def main(arguments: Sequence[str]) -> int:
    return emea(["explain", *arguments])


@pytest.mark.parametrize(
    "kind", ["paper", "both_rules", "avoid_conflict", "dual", "none", "paris", "prase"]
)
def test_every_kind_of_run_is_explained(
    kind: str, finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(finished(kind).folder)
    files = [
        "--json",
        str(tmp_path / "a" / "why.json"),
        "--html",
        str(tmp_path / "why.html"),
    ]
    assert main([folder, "--pair", "3", "5", *files]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("3 → 5\n") and "why.json" in err
    assert ("no influence" in " ".join(out.split())) == (
        kind in ("none", "avoid_conflict")
    )
    content = json.loads((tmp_path / "a" / "why.json").read_text())
    assert content["schema"] == SCHEMA and content["run"]["data"] == "synthetic"
    assert content["explanations"][0]["source"] == {"id": 3, "name": "3"}
    assert (tmp_path / "why.html").read_text().startswith("<!DOCTYPE html>")


def test_the_json_has_everything(finished: Finished, tmp_path: Path) -> None:
    run, path = finished("dual"), tmp_path / "why.json"
    explainer = Explainer(run)
    source = int(run.split.test[1, 0])
    assert main([str(run.folder), "--entity", str(source), "--json", str(path)]) == 0
    told = json.loads(path.read_text())["explanations"][0]
    asked = explainer(source, explainer.best_target(source) or 0).asked
    assert told["asked"]["target"]["id"] == asked.target.id and told["is_matched"]
    assert [one["share"] for one in told["asked"]["contributions"]] == [
        one.share for one in asked.contributions
    ]


TOLD = (Entity, Relation, Contribution, Unmatched, Claim, Term, Case, Explanation)


@pytest.mark.parametrize("kind", TOLD, ids=lambda kind: kind.__name__)
def test_every_field_of_the_json_is_documented(kind: type) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explain.md").read_text(
        encoding="utf-8"
    )
    for one in fields(kind):
        assert f"`{one.name}`" in text or f"`{one.name}[]`" in text


def test_pairs_of_a_file(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished("paper").folder
    lines = (folder / "alignment.tsv").read_text().splitlines()
    asked = tmp_path / "asked.tsv"
    asked.write_text("\n".join([*lines[:3], "", "3\t5"]) + "\n")
    assert main([str(folder), "--pairs", str(asked)]) == 0
    out = capsys.readouterr().out
    assert out.count("The run matches") == 3 and "3 → 5" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--pair", "1500", "5"],
            "there is no source entity '1500'; the nearest names are",
        ),
        (["--pair", "3", "x"], "there is no target entity 'x'"),
        (["--entity", "nobody"], "there is no source entity 'nobody'"),
        (["--pairs", "nowhere.tsv"], "nowhere.tsv cannot be read"),
        (
            ["--pair", "3", "5", "--json", "/proc/why.json"],
            "/proc/why.json cannot be written",
        ),
    ],
)
def test_mistakes_are_reported_in_one_sentence(
    arguments: list[str],
    said: str,
    finished: Finished,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(finished("paper").folder), *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == "" and said in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3 5\n", "line 1: a tab must separate source and target"),
        ("3\t5\n3\tx\n", "line 2: there is no target entity 'x'"),
        ("source\ttarget\n\n", "contains no pairs"),
        (b"\xff\xfe\t3\n", "is encoded in UTF-16"),
        (b"\xff\t3\n", "line 1: byte 0xff is not UTF-8"),
    ],
)
def test_mistakes_of_a_file_have_their_line(
    text: str | bytes,
    said: str,
    finished: Finished,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = tmp_path / "asked.tsv"
    asked.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main([str(finished("paper").folder), "--pairs", str(asked)]) == 1
    assert said in capsys.readouterr().err
