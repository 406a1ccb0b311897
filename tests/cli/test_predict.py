"""``emea predict`` as a person calls it."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from emea.cli.main import main as emea
from emea.config.composition import composed
from emea.run.job import run_job

QUICK = ("variant=tiny", "em=none", "rule=none", "tracking=none", "ratio=0.2")


def main(arguments: Sequence[str]) -> int:
    return emea(["predict", *arguments])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    run_job(composed([*QUICK, "export.formats=[nt]", "export.threshold=0.01"]), folder)
    return folder


def refused(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    return capsys.readouterr().err


FORMATS = ("--formats", "sssom", "jsonl", "--top-k", "2", "--threshold", "0")
WRITTEN = {"alignment.tsv", "unmatched.tsv", "alignment.sssom.tsv", "alignment.jsonl"}
WRITTEN |= {"prediction.json", "relations.tsv", "classes.tsv", "schema.sssom.tsv"}


def test_formats_and_numbers_can_be_chosen(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), *FORMATS, "--out", str(tmp_path / "out")]) == 0
    assert set(os.listdir(tmp_path / "out")) == WRITTEN
    told = capsys.readouterr().out
    lines = (tmp_path / "out" / "alignment.tsv").read_text().splitlines()
    num_given = sum(line.split("\t")[2] == "1.000000" for line in lines)
    assert (
        f"Matched {len(lines) - 1 - num_given} of 128 source entities without a given"
        in told
    )
    assert "[protocol strict: saw no test links]" in told
    assert "alignment.sssom.tsv" in told
    recorded = json.loads((tmp_path / "out" / "prediction.json").read_text())
    assert recorded["protocol"] == "strict"


def test_files_of_another_time_are_removed_or_named(
    run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    assert main([str(run), "--out", str(out), "--formats", "nt", "jsonl"]) == 0
    assert "earlier prediction" not in caplog.text
    assert (
        main([str(run), "--out", str(out), "--threshold", "0.5", "--formats", "tsv"])
        == 0
    )
    assert (
        "Removed files of an earlier prediction: alignment.jsonl, alignment.nt"
        in caplog.text
    )
    assert not (out / "alignment.nt").exists()
    # a file that no prediction wrote stays, but is named
    (out / "alignment.rdf").write_text("mine")
    assert main([str(run), "--out", str(out)]) == 0
    assert (
        "also contains alignment.rdf, which this prediction did not write"
        in caplog.text
    )
    assert (out / "alignment.rdf").read_text() == "mine"


def test_what_is_not_given_is_as_the_run_had_it(run: Path) -> None:
    assert main([str(run)]) == 0
    for file in ("alignment.tsv", "unmatched.tsv", "alignment.nt"):
        assert (run / "predictions" / file).read_bytes() == (run / file).read_bytes()


def test_errors_are_one_sentence(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 1
    assert "is not a run's folder" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main([str(run), "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    assert "not allowed with" in refused(
        [str(run), "--threshold", "0.5", "--target-precision", "0.9"], capsys
    )
    assert "must be a number from 0 to 1" in refused(
        [str(run), "--threshold", "5"], capsys
    )
    assert "above 0 and at most 1" in refused(
        [str(run), "--least-inclusion", "x"], capsys
    )
    assert "from 1 to 100,000" in refused([str(run), "--top-k", "0"], capsys)
    assert "invalid choice" in refused([str(run), "--decoding", "magic"], capsys)
