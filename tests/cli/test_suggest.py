"""``emea suggest`` from the arguments to the next run."""

from itertools import pairwise
from pathlib import Path

import pytest

from emea import Aligner, graph_of
from emea.cli.main import main as emea


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
    assert emea(["suggest", str(folder), "--count", "3", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "best candidate" in out and str(tmp_path / "out" / "review.html") in out
    rows = (tmp_path / "out" / "suggestions.tsv").read_text().splitlines()
    assert len(rows) == 4 and not {row.split("\t")[0] for row in rows[1:]} & set("abcop")
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
    assert "--count: must be a whole number of at least 1, got 0" in capsys.readouterr().err
    assert emea(["suggest", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert emea(["suggest", str(folder), "--out", str(tmp_path / "file" / "x")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_the_library_suggests_the_same(folder: Path, tmp_path: Path) -> None:
    assert emea(["suggest", str(folder), "--count", "3", "--out", str(tmp_path)]) == 0
    rows = [line.split("\t") for line in (tmp_path / "suggestions.tsv").read_text().splitlines()]
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
        "source.tsv": "".join(f"s{n}\tr{n % 3}\ts{(n * 7 + 1) % 40}\n" for n in range(40)),
        "target.tsv": "".join(f"t{n}\tr{n % 3}\tt{(n * 7 + 1) % 40}\n" for n in range(40)),
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
