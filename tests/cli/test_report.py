"""``emea report`` with arguments that cannot be used."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from emea.cli.main import main as emea
from emea.reporting.study import Study


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
        (a_folder, "there is no file "),
        (without_its_driver, "127.0.0.1:9/db cannot be read as an MLflow store"),
        (no_address, "what was given as store is no address: "),
    ],
)
def test_what_is_no_store_is_told_in_a_sentence(
    store: Callable[[Path], str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", store(tmp_path), "--out", str(tmp_path / "report")]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert sentence in told
    assert "hunter2" not in told
    assert not (tmp_path / "report").exists()


def test_an_out_that_cannot_be_written_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study("table1", "A table", ("no numbers",))
    monkeypatch.setattr("emea.reporting.records.load_studies", lambda _: [])
    monkeypatch.setattr("emea.reporting.studies.made_studies", lambda _: [study])
    (tmp_path / "file").touch()
    assert main(["--out", str(tmp_path / "file")]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"error: {tmp_path / 'file'} cannot be written: ")
