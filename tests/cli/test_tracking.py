"""The command line, as a person uses it."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.cli.main import main
from emea.record.mlflow_store import MlflowStore

MakeFolder = Callable[..., Path]


@pytest.mark.slow
def test_sync_reports_what_it_did(
    store: MlflowStore, make_folder: MakeFolder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = make_folder()
    make_folder("open", status=None, run_id="b" * 32)
    arguments = ["sync", str(folder.parent), "--uri", store.uri]
    assert main(arguments) == 0
    assert main(arguments) == 0
    told = [record.getMessage() for record in caplog.records]
    assert "imported 1, already there 0, unfinished 1, failed 0" in told
    assert "imported 0, already there 1, unfinished 1, failed 0" in told


def test_failures_show_in_the_exit_status(
    store: MlflowStore, make_folder: MakeFolder
) -> None:
    folder = make_folder()
    (folder / "run.json").write_text("{")
    assert main(["sync", str(folder), "--uri", store.uri]) == 1


def test_unusable_store_is_one_sentence(
    tmp_path: Path, make_folder: MakeFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.db").write_bytes(b"this is no database" * 100)
    assert (
        main(["sync", str(make_folder()), "--uri", f"sqlite:///{tmp_path}/bad.db"]) == 1
    )
    assert "cannot be opened" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "0", "65536", "http"])
def test_a_port_out_of_range_is_one_sentence(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["ui", "--port", port])
    assert (
        f"must be a whole number from 1 to 65,535, got {port}"
        in capsys.readouterr().err
    )
