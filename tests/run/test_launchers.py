"""Sweeps in other processes, and searches: with Hydra's own plugins, for real."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from emea.record.mlflow_store import MlflowStore

from ..record.run_copies import assert_holds_only
from ..record.serving import mlflow_server
from ..sweeping import run_folders, sweep

pytestmark = pytest.mark.slow


def test_four_processes_lose_nothing_in_one_store(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    done = sweep(
        tmp_path, "hydra/launcher=joblib", "hydra.launcher.n_jobs=4", "seed=0,1,2,3"
    )
    assert done.returncode == 0, done.stderr
    assert "│    4 │" in done.stdout
    folders = run_folders(tmp_path)
    assert len(folders) == 4
    assert_holds_only(MlflowStore(f"sqlite:///{tmp_path}/mlflow.db"), "emea", folders)


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        ("submitit", ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"]),
        ("ray", ["hydra/launcher=ray", "+hydra.launcher.ray.init.num_cpus=2"]),
    ],
)
def test_launchers_run_jobs_of_their_own(
    plugin: str, arguments: list[str], tmp_path: Path
) -> None:
    pytest.importorskip(f"hydra_plugins.hydra_{plugin}_launcher")
    done = sweep(tmp_path, *arguments, "seed=0,1", "tracking=none")
    assert done.returncode == 0, done.stderr
    assert "│    2 │" in done.stdout


def test_a_search_maximises_a_number_of_the_validation_links(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    arguments = [
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=3",
        "hydra.sweeper.n_jobs=1",
    ]
    arguments += [
        "hydra.sweeper.direction=maximize",
        "em.ridge=tag(log,interval(0.001,1))",
    ]
    done = sweep(tmp_path, *arguments, "tracking=none")
    assert done.returncode == 0, done.stderr
    (told,) = (tmp_path / "multirun").rglob("optimization_results.yaml")
    best = float(told.read_text().split("best_value:")[1].split()[0])
    found = [
        json.loads(path.read_text())
        for path in (tmp_path / "multirun").rglob("metrics.json")
    ]
    assert best == max(metrics["history"][-1]["validation"]["mrr"] for metrics in found)


def test_a_search_continues_with_the_trials_that_are_missing(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    arguments = [
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_jobs=1",
        "hydra.sweeper.sampler.seed=1",
    ]
    arguments += [
        "hydra.sweeper.direction=maximize",
        "em.ridge=tag(log,interval(0.001,1))",
    ]
    for num_trials in (
        2,
        3,
    ):  # as if the search had been interrupted after two of its trials
        chosen = [
            f"hydra.sweeper.n_trials={num_trials}",
            "skip_recorded=true",
            "tracking=none",
        ]
        done = sweep(tmp_path, *arguments, *chosen)
        assert done.returncode == 0, done.stderr
    assert done.stderr.count("Already recorded") == 2
    assert len(list((tmp_path / "multirun").rglob("metrics.json"))) == 3
    found = (
        sorted((tmp_path / "multirun").rglob("results.csv"))[-1]
        .read_text()
        .splitlines()
    )
    assert len(found) == 4 and len({line.split(",")[5] for line in found[1:]}) == 3


SEEDS = "seed=0,1,2,3"
LAUNCHERS = {
    "basic": [],
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=4"],
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with mlflow_server(f"sqlite:///{folder}/mlflow.db", folder) as server:
        yield server.address


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_server_takes_the_whole_sweep(
    address: str, launcher: str, tmp_path: Path
) -> None:
    if launcher == "joblib":
        pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    arguments = [
        *LAUNCHERS[launcher],
        SEEDS,
        f"study={launcher}",
        f"tracking.uri={address}",
    ]
    done = sweep(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    folders = run_folders(tmp_path)
    assert len(folders) == 4
    assert_holds_only(MlflowStore(address), launcher, folders)
