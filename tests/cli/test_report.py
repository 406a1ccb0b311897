"""``emea report`` with arguments that cannot be used."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from emea.cli.main import main as emea

from ..experiments.report.fabricated import made, write_folder


def main(arguments: Sequence[str]) -> int:
    return emea(["report", *arguments])


def test_the_usual_folders_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "multirun").mkdir()
    assert main([]) == 1
    assert "multirun and outputs contain no finished run" in capsys.readouterr().err
    write_folder(tmp_path / "outputs" / "mine", "a", seconds={"total": 1.0})
    assert main([]) == 0
    assert capsys.readouterr().out == "1 run: wrote report/report.html\n"


def test_an_unwritable_out_is_reported_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "emea.results.recorded_run.load_record_folders", lambda _: [made()]
    )
    (tmp_path / "file").touch()
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "file")]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"error: {tmp_path / 'file'} cannot be written: ")
