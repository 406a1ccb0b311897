"""A sweep whose runs reach MLflow through a server: nothing is lost on the way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from emea.record.mlflow_store import MlflowStore

from ..record.run_copies import assert_holds_only
from ..record.serving import mlflow_server
from ..sweeping import run_folders, sweep

pytestmark = pytest.mark.slow
SEEDS = "seed=0,1,2,3"
LAUNCHERS = {"basic": [], "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=4"]}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with mlflow_server(f"sqlite:///{folder}/mlflow.db", folder) as server:
        yield server.address


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_server_takes_the_whole_sweep(address: str, launcher: str, tmp_path: Path) -> None:
    if launcher == "joblib":
        pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    arguments = [*LAUNCHERS[launcher], SEEDS, f"study={launcher}", f"tracking.uri={address}"]
    done = sweep(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    folders = run_folders(tmp_path)
    assert len(folders) == 4
    assert_holds_only(MlflowStore(address), launcher, folders)
