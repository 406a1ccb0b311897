"""Pairs that are divided, aligned in parts and joined."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from emea.cli.main import main as emea
from emea.config.composition import composed
from emea.divide.division import Division, read_entities
from emea.errors import DataError
from emea.run.finished_run import load_run
from emea.run.job import run_job

from ..sweeping import ROOT, called

pytest.importorskip("pymetis")

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
GRAPHS = (str(EXAMPLES / "atlas.nt"), str(EXAMPLES / "karte.ttl"))
SYNTHETIC = (
    "data=synthetic",
    "data.num_entities=300",
    "ratio=0.3",
    "split.num_validation=40",
)
QUICK = ("model=lightea", "model.encoder.dim=64", "em=one_to_one", "em.iterations=1")
ALIKE = ("data=part", "tracking=none", "trainer=cpu")


def run_part(division: Path, number: int, *settings: str, folder: str = "") -> Path:
    place = division / "runs" / (folder or str(number))
    where = (f"data.division={division}", f"data.part={number}")
    run_job(composed([*ALIKE, *where, *settings]), place)
    return place


def joined(division: Path, num_parts: int, *settings: str) -> Path:
    for number in range(num_parts):
        run_part(division, number, *settings)
    assert emea(["join", str(division)]) == 0
    return division / "joined"


@pytest.fixture(scope="module")
def division(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("divided") / "division"
    assert emea(["divide", *SYNTHETIC, "--parts", "2", "--out", str(folder)]) == 0
    joined(folder, 2, *QUICK)
    return folder


def test_the_joined_run_answers_for_the_whole(
    division: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(division / "joined")
    assert run.pair.source.num_entities == 300 and len(run.split.test)
    assert run.metrics["final"]["hit@1"] > 0.25
    assert run.metrics["history"][-1]["parts"][1]["peak_memory_mb"] > 0
    pairs = run.beliefs.hardened().pairs().numpy()
    assert np.isin(run.labels.numpy() @ [1000, 1], pairs @ [1000, 1]).all()
    assert float(run.beliefs.probs.sum(1).max()) <= 1.001
    assert (
        emea(
            ["predict", str(run.folder), "--formats", "nt", "--target-precision", "0.5"]
        )
        == 0
    )
    source = run.pair.source.entity_name(int(run.split.test[0, 0]))
    assert emea(["explain", str(run.folder), "--entity", source]) == 0
    assert "candidate" in capsys.readouterr().out
    assert emea(["show", str(run.folder), "--no-open"]) == 0
    assert (
        emea(["report", "--runs", str(run.folder), "--out", str(division / "report")])
        == 0
    )


def test_a_second_round_is_guided_by_the_first(division: Path, tmp_path: Path) -> None:
    out = tmp_path / "second"
    command = [
        "divide",
        "--from-run",
        str(division / "joined"),
        "--parts",
        "3",
        "--out",
        str(out),
    ]
    assert emea(command) == 0
    record = Division.read(out)
    assert (
        len(record.parts) == 3 and record.checksum == Division.read(division).checksum
    )


def test_one_part_gives_the_answer_of_its_run(tmp_path: Path) -> None:
    assert (
        emea(["divide", *SYNTHETIC, "--parts", "1", "--out", str(tmp_path / "d")]) == 0
    )
    whole = load_run(joined(tmp_path / "d", 1, *QUICK))
    part = load_run(tmp_path / "d" / "runs" / "0")
    same = whole.beliefs.best_targets() == part.beliefs.best_targets()
    likely = part.beliefs.probs.max(1).values >= 0.5
    assert int(likely.sum()) > 150  # of 225 with a counterpart
    assert bool(
        same[likely].all()
    )  # calibrated marginals differ slightly from marginals


def test_several_runs_of_a_part_are_members(tmp_path: Path) -> None:
    assert (
        emea(["divide", *SYNTHETIC, "--parts", "1", "--out", str(tmp_path / "d")]) == 0
    )
    for name, em in {"a": "em=one_to_one", "b": "em=dual"}.items():
        place = run_part(
            tmp_path / "d", 0, *QUICK[:2], em, "em.iterations=1", folder=name
        )
        assert (place / "pair.npz").exists()
    assert emea(["join", str(tmp_path / "d")]) == 0
    assert len(load_run(tmp_path / "d" / "joined").metrics["history"][-1]["parts"]) == 2


@pytest.mark.parametrize("method", ["paris", "emea"])
def test_division_and_answers_do_not_depend_on_test_links(
    method: str, tmp_path: Path
) -> None:
    settings = (
        ("method=paris",)
        if method == "paris"
        else ("model=lightea", "em=none", "rule=none")
    )
    rows = (EXAMPLES / "test.tsv").read_text(encoding="utf-8").splitlines()
    links = [tuple(row.split("\t")) for row in rows[1:]]
    sources, targets = zip(*links, strict=True)
    moved = list(zip(sources, targets[1:] + targets[:1], strict=True))
    found = []
    for name, changed in {"true": links, "moved": moved, "deleted": links[:1]}.items():
        folder = tmp_path / name
        folder.mkdir()
        lines = ["\t".join(link) for link in [("source", "target"), *changed]]
        (folder / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        known = [
            "--links",
            str(EXAMPLES / "seeds.tsv"),
            "--test-links",
            str(folder / "test.tsv"),
        ]
        parts = ["--parts", "2", "--out", str(folder / "d")]
        assert emea(["divide", *GRAPHS, *known, *parts]) == 0
        run = joined(folder / "d", 2, *settings)
        assert load_run(run).metrics["num_links"]["test"] == len(changed)
        files = [
            *sorted((folder / "d").glob("part-*/*")),
            folder / "d" / "division.json",
        ]
        found.append([path.read_bytes() for path in [*files, run / "alignment.tsv"]])
    assert found[0] == found[1] == found[2]


def test_a_joined_run_can_be_updated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = [
        "--links",
        str(EXAMPLES / "seeds.tsv"),
        "--parts",
        "2",
        "--out",
        str(tmp_path / "d"),
    ]
    source = Path(shutil.copy(GRAPHS[0], tmp_path))
    assert emea(["divide", str(source), GRAPHS[1], *known]) == 0
    run = joined(tmp_path / "d", 2, *QUICK)
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "new.nt").write_text("".join(lines[5:]), encoding="utf-8")
    update = ["update", str(run), "--source", str(tmp_path / "new.nt")]
    assert emea([*update, "--out", str(tmp_path / "updated")]) == 0
    assert len((tmp_path / "updated" / "alignment.tsv").read_text().splitlines()) > 10
    again = ["divide", "--parts", "2", "--out", str(tmp_path / "again"), "--from-run"]
    assert "only its folder contains its graphs" in told(
        [*again, f"{tmp_path}/updated"], capsys
    )
    source.write_text("".join(lines[5:]), encoding="utf-8")
    assert "changed since the run" in told([*again, str(run)], capsys)


@pytest.mark.slow
def test_a_sweep_repeats_only_parts_without_a_finished_run(tmp_path: Path) -> None:
    assert (
        emea(["divide", *SYNTHETIC, "--parts", "2", "--out", str(tmp_path / "d")]) == 0
    )
    typed = [
        str(ROOT / "run.py"),
        "-m",
        *ALIKE,
        *QUICK,
        "data.division=d",
        "data.part=0,1",
        "skip_recorded=true",
    ]
    typed += ["hydra.sweep.dir=d/runs"]
    assert called(tmp_path, *typed).returncode == 0
    for name in ("metrics.json", "run.json"):  # as if it had been killed
        (tmp_path / "d" / "runs" / "1-data.part_1" / name).unlink()
    again = called(tmp_path, *typed)
    assert again.returncode == 0
    assert (again.stdout + again.stderr).count("Already recorded") == 1
    assert emea(["join", str(tmp_path / "d")]) == 0


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert emea(arguments) == 1
    return capsys.readouterr().err


def test_mistakes_are_refused_with_a_sentence(
    division: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(["divide", *SYNTHETIC, "--parts", "2", "--out", str(division)], capsys)
    assert "is not empty" in found
    found = told(
        ["divide", "a.nt", "--parts", "2", "--out", str(tmp_path / "x")], capsys
    )
    assert "Name two graph files" in found
    found = told(["join", str(tmp_path)], capsys)
    assert "contains no finished division" in found
    copy = tmp_path / "copy"
    shutil.copytree(division, copy)
    shutil.rmtree(copy / "runs" / "1")
    found = told(["join", str(copy), "--out", str(tmp_path / "j")], capsys)
    assert "Part 1 of 2 have no finished run" in found or "Part 1 of 2 has no" in found
    other = tmp_path / "other"
    changed = [one.replace("=300", "=320") for one in SYNTHETIC]
    assert emea(["divide", *changed, "--parts", "2", "--out", str(other)]) == 0
    found = told(
        ["join", str(other), str(division / "runs"), "--out", str(copy / "j")], capsys
    )
    assert "of another division" in found
    assert "run of a part" in told(
        ["join", str(division), "--out", f"{division}/runs/0"], capsys
    )
    shutil.copy(other / "part-0" / "entities.npz", copy / "part-0")
    with pytest.raises(DataError, match="entities"):
        read_entities(copy, 0, (300, 300))


def test_a_killed_division_can_be_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, command = (
        tmp_path / "d",
        ["divide", *SYNTHETIC, "--out", str(tmp_path / "d")],
    )
    # what a command that was to write more parts leaves
    for number in range(4):
        (folder / f"part-{number}").mkdir(parents=True)
        (folder / f"part-{number}" / "pair.npz").write_bytes(b"half")
    (folder / "config.yaml").touch()
    assert "is not empty" in told(
        [*command, "--parts", "2"], capsys
    )  # they may be the user's
    (folder / ".running").touch()
    with FileLock(folder / ".running"):
        assert "is in use" in told([*command, "--parts", "2"], capsys)
    assert emea([*command, "--parts", "2"]) == 0
    assert sorted(path.name for path in folder.glob("part-*")) == ["part-0", "part-1"]
    (folder / "division.json").unlink()
    (folder / "notes.txt").touch()
    assert "is not empty" in told([*command, "--parts", "2"], capsys)


def test_an_unfinished_join_names_the_command_to_repeat(
    division: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "joined"
    shutil.copytree(division / "joined", copy)
    content = json.loads((copy / "run.json").read_text())
    del content["sha256"]
    (copy / "run.json").write_text(
        json.dumps(content | {"status": "RUNNING", "end_time": None})
    )
    command = f"emea join {division}"
    assert command in told(["predict", str(copy)], capsys)
    assert f"Repeat: {command}" in told(["run", f"resume={copy}"], capsys)


def test_other_data_than_at_division_time_is_refused(
    division: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(division, copy)
    content = json.loads((copy / "division.json").read_text())
    del content["sha256"]
    content["checksum"] = "0" * 64
    (copy / "division.json").write_text(json.dumps(content))
    found = told(["join", str(copy), "--out", str(tmp_path / "j")], capsys)
    assert "changed since they were divided" in found
    assert not (tmp_path / "j" / "metrics.json").exists()
