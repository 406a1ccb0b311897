"""A run whose process is gone is interrupted, in its folder and in MLflow."""

from pathlib import Path

import pytest
from filelock import FileLock

from emea.errors import DataError
from emea.record.interrupted import HOST_TAG, close_interrupted
from emea.record.mlflow_store import MlflowStore
from emea.record.run_lock import LOCK_FILE
from emea.record.run_record import check_finished

from .conftest import MakeFolder, MakeHeader


def test_a_folder_tells_running_from_interrupted(make_folder: MakeFolder) -> None:
    folder = make_folder(status=None)
    with FileLock(folder / LOCK_FILE), pytest.raises(DataError, match="it is still running"):
        check_finished(folder)
    with pytest.raises(DataError, match=r"it was interrupted\. Continue it with: emea run resume="):
        check_finished(folder)


def test_mlflow_shows_a_gone_run_as_killed(
    store: MlflowStore, make_header: MakeHeader, tmp_path: Path
) -> None:
    here, gone, other, imported = (
        store.create_run(make_header(letter * 32), folder)
        for letter, folder in zip("abcd", (*map(tmp_path.joinpath, "abc"), None), strict=True)
    )
    store.client.set_tag(other, HOST_TAG, "another machine")
    (tmp_path / "a").mkdir()
    with FileLock(tmp_path / "a" / LOCK_FILE):
        assert close_interrupted(store.client) == 1
    runs = {run: store.client.get_run(run) for run in (here, gone, other, imported)}
    assert runs[gone].info.status == "KILLED"
    assert "its process ended" in runs[gone].data.tags["mlflow.note.content"]
    assert {runs[run].info.status for run in (here, other, imported)} == {"RUNNING"}
    assert close_interrupted(store.client) == 1  # the first one has ended, too
