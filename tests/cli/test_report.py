"""``emea report`` with arguments that cannot be used."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from emea.cli.main import main as emea

from ..experiments.report.fabricated import made, write_folder


def main(arguments: Sequence[str]) -> int:
    return emea(["report", *arguments])


def a_text(folder: Path) -> str:
    (folder / "notes.txt").write_text("no database\n")
    return f"sqlite:///{folder / 'notes.txt'}"


def a_folder(folder: Path) -> str:
    return f"sqlite:///{folder}"


def without_its_driver(folder: Path) -> str:
    return "mssql+nothing://me:hunter2@127.0.0.1:9/db"


def no_address(folder: Path) -> str:
    return "http://me:hunter2@[x"


@pytest.mark.parametrize(
    ("store", "sentence"),
    [
        (a_text, "notes.txt cannot be read as an MLflow store, such as sqlite:///mlflow.db: "),
        (a_folder, " does not exist"),
        (without_its_driver, "127.0.0.1:9/db cannot be read as an MLflow store"),
        (no_address, "--store is not a valid address: "),
    ],
)
def test_an_invalid_store_is_reported_in_one_sentence(
    store: Callable[[Path], str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", store(tmp_path), "--out", str(tmp_path / "report")]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert sentence in told
    assert "hunter2" not in told
    assert not (tmp_path / "report").exists()


def test_an_unwritable_out_is_reported_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emea.results.recorded_run.load_run_folders", lambda _: [made()])
    (tmp_path / "file").touch()
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "file")]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"error: {tmp_path / 'file'} cannot be written: ")


def test_run_folders_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_folder(tmp_path / "mine", "a", seconds={"total": 1.0})
    assert main(["--runs", str(tmp_path / "mine"), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("1 run: wrote ")
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_folder_without_runs_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert f"{tmp_path} contains no finished run" in capsys.readouterr().err
