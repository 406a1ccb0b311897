"""Shared run folders and stores."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from emea.record.mlflow_store import MlflowStore
from emea.record.mlflow_tracker import MlflowTracker
from emea.record.run_record import RunHeader
from emea.record.tracker import NoTracker

MakeHeader = Callable[..., RunHeader]
MakeFolder = Callable[..., Path]


def make_tracker(
    uri: str,
    flush_seconds: float = 5.0,
    patience_seconds: float = 60.0,
    files: str = "files",
) -> MlflowTracker:
    """A live tracker whose store keeps files in the working folder."""
    tracker = MlflowTracker(
        uri=uri, artifact_root=files, patience_seconds=patience_seconds
    )
    tracker.flush_seconds = flush_seconds
    return tracker


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores keep files in the working folder by default, which must not be the user's."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def store(store_template: Path, tmp_path: Path) -> MlflowStore:
    """An empty store of the test's own."""
    database = tmp_path / "store" / "mlflow.db"
    database.parent.mkdir()
    shutil.copy(store_template, database)
    return MlflowStore(f"sqlite:///{database}", str(tmp_path / "store" / "art ifacts"))


@pytest.fixture
def make_header() -> MakeHeader:
    """Headers that differ in their run id and in the given fields."""

    def make(run_id: str = "a" * 32, **changes: object) -> RunHeader:
        values: dict[str, object] = {
            "name": "emea-rrea-dbp15k_zh-1%-strict-s0",
            "experiment": "tests",
            "params": {
                "em.k": 10,
                "ratio": 0.01,
                "split_seed": None,
                "em.two_way": True,
            },
            "tags": {"commit": "abc", "protocol": "strict"},
            "start_time": 1_700_000_000_000,
        }
        return RunHeader(run_id=run_id, **(values | changes))  # type: ignore[arg-type]

    return make


@pytest.fixture
def make_folder(tmp_path: Path, make_header: MakeHeader) -> MakeFolder:
    """Folders of runs that were made without MLflow."""

    def make(
        name: str = "run", status: str | None = "FINISHED", run_id: str = "a" * 32
    ) -> Path:
        folder = tmp_path / "outputs" / name
        tracker = NoTracker()
        tracker.start(make_header(run_id), folder)
        tracker.log({"hit@1": 0.25, "loss": 2.0}, step=0)
        tracker.log({"hit@1": 0.5}, step=10)
        (folder / ".hydra").mkdir()
        (folder / "metrics.json").write_text("{}")
        (folder / ".hydra" / "config.yaml").write_bytes(b"1" * 50)
        if status is not None:
            tracker.finish(status, reason="because")
        return folder

    return make
