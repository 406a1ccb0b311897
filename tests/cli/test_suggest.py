"""``emea suggest`` from the arguments to the next run."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from emea import Aligner, graph_of
from emea.cli.main import main as emea
from emea.run.finished_run import load_run


def aligned(**more: list[tuple[str, str]]) -> Aligner:
    """Align chains of named entities; three leaves of one of them cannot be distinguished."""
    chain = [(one, "next", other) for one, other in pairwise("abcdefghijklmnop")]
    chain += [("d", "has", leaf) for leaf in "xyz"]
    other = [(one.upper(), kind, two.upper()) for one, kind, two in chain]
    links = [(name, name.upper()) for name in "abcop"]
    settings = ["em.iterations=1", "split.num_validation=1"]
    aligner = Aligner(model="lightea", settings=settings)
    return aligner.fit(graph_of(chain), graph_of(other), links, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("chain") / "run"
    aligned().save(place)
    return place


def test_files_and_table_are_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        emea(["suggest", str(folder), "--count", "3", "--out", str(tmp_path / "out")])
        == 0
    )
    out = capsys.readouterr().out
    assert "best candidate" in out and str(tmp_path / "out" / "review.html") in out
    rows = (tmp_path / "out" / "suggestions.tsv").read_text().splitlines()
    assert len(rows) == 4 and not {row.split("\t")[0] for row in rows[1:]} & set(
        "abcop"
    )
    assert len((tmp_path / "out" / "suggestions.jsonl").read_text().splitlines()) == 3


def test_certain_matches_are_not_suggested(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert emea(["suggest", str(folder), "--count", "12", "--out", str(tmp_path)]) == 0
    rows = (tmp_path / "suggestions.tsv").read_text().splitlines()[1:]
    assert rows and all(float(row.split("\t")[2]) <= 0.99 for row in rows)
    assert "or a match with a probability above 0.99." in capsys.readouterr().out


def test_mistakes_are_reported(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        emea(["suggest", str(folder), "--count", "0"])
    assert (
        "--count: must be a whole number of at least 1, got 0"
        in capsys.readouterr().err
    )
    assert emea(["suggest", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert emea(["suggest", str(folder), "--out", str(tmp_path / "file" / "x")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_the_library_suggests_the_same(folder: Path, tmp_path: Path) -> None:
    assert emea(["suggest", str(folder), "--count", "3", "--out", str(tmp_path)]) == 0
    rows = [
        line.split("\t")
        for line in (tmp_path / "suggestions.tsv").read_text().splitlines()
    ]
    found = Aligner.load(folder).suggest(3)
    assert [one.source for one in found] == [row[0] for row in rows[1:]]
    assert [one.candidates[0][0] for one in found] == [row[1] for row in rows[1:]]


def test_a_rejected_pair_is_not_a_candidate(folder: Path) -> None:
    aligner = aligned(rejected=[("d", "D"), ("d", "E")])
    found = {one.source: one for one in aligner.predict(top_k=16)}
    assert not {"D", "E"} & {target for target, _ in found["d"].candidates}
    before = {one.source: one for one in Aligner.load(folder).predict(top_k=16)}
    assert {"D", "E"} <= {target for target, _ in before["d"].candidates}


@pytest.mark.slow
def test_decisions_start_the_next_run(tmp_path: Path) -> None:
    files = {
        "source.tsv": "".join(
            f"s{n}\tr{n % 3}\ts{(n * 7 + 1) % 40}\n" for n in range(40)
        ),
        "target.tsv": "".join(
            f"t{n}\tr{n % 3}\tt{(n * 7 + 1) % 40}\n" for n in range(40)
        ),
        "links.tsv": "".join(f"s{n}\tt{n}\n" for n in range(12)),
        "rejected.tsv": "source\ttarget\ns20\tt20\ns20\tt21\nunknown\tt1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    command = ["align", *paths[:2], "--links", paths[2], "--rejected", paths[3]]
    assert emea([*command, "em.iterations=1", "--out", str(tmp_path / "run")]) == 0
    rows = (tmp_path / "run" / "alignment.tsv").read_text().splitlines()
    assert not {"s20\tt20", "s20\tt21"} & {row.rpartition("\t")[0] for row in rows}


def questions(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().split("\n") if line]


def test_questions_about_unsure_pairs_are_answered(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["suggest", str(folder), "--out", str(tmp_path), "--between", "0.05", "0.9"]
    assert emea([*ask, "--format", "jsonl", "--count", "4"]) == 0
    assert "Questions: 4 (probability from 0.05 to 0.9)" in capsys.readouterr().out
    file = tmp_path / "questions.jsonl"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    asked = questions(file)
    assert len(asked) == 4
    for one in asked:
        assert 0.05 <= one["probability"] <= 0.9
        assert not {one["source"]} & set("abcop")  # their links are known
        assert one["source_facts"] and one["target_facts"]
    # a script answers: the right target has the same letter
    for one in asked:
        is_same = one["source"].upper() == one["target"]
        one |= {"answer": "yes" if is_same else "no", "author": "script", "cost": 1}
    file.write_text("".join(json.dumps(one) + "\n" for one in asked))
    assert emea([*ask, "--format", "jsonl"]) == 1
    assert "contains answers" in capsys.readouterr().err
    updated = tmp_path / "updated"
    command = ["update", str(folder), "--decisions", str(file), "--out", str(updated)]
    assert emea(command) == 0
    shown = capsys.readouterr().out
    assert "cost: 4" in shown and "Matches:" in shown
    rows = (updated / "alignment.tsv").read_text().splitlines()[1:]
    answer = {tuple(row.split("\t")[:2]) for row in rows}
    for one in asked:
        assert ((one["source"], one["target"]) in answer) == (one["answer"] == "yes")
    assert {one.author for one in load_run(updated).decisions} == {"script"}


def test_only_entities_with_a_candidate_in_a_range(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["suggest", str(folder), "--out", str(tmp_path)]
    assert emea([*ask, "--between", "0.3", "0.5"]) == 0
    assert "has a candidate from 0.3 to 0.5" in capsys.readouterr().out
    found = questions(tmp_path / "suggestions.jsonl")
    # the leaves, which cannot be distinguished
    assert {one["source"] for one in found} == set("xyz")
    assert emea([*ask, "--between", "0.5", "0.9"]) == 0
    assert questions(tmp_path / "suggestions.jsonl") == []
    with pytest.raises(SystemExit):
        emea([*ask, "--between", "0.5", "0.3"])
    assert "LOW must not be larger" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        emea([*ask, "--between", "0", "1.5"])
