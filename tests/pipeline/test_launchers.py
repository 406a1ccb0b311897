"""Sweeps in other processes, and searches: with Hydra's own plugins, for real."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
TINY = ["data.num_entities=150", "ratio=0.2", "split.num_validation=10", "trainer=cpu"]
TINY += ["model.initial_epochs=2", "model.epochs_per_iteration=1", "em.iterations=1"]


def sweep(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "run.py"), "-m", *TINY, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_four_processes_lose_nothing_in_one_store(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    done = sweep(tmp_path, "hydra/launcher=joblib", "hydra.launcher.n_jobs=4", "seed=0,1,2,3")
    assert done.returncode == 0, done.stderr
    assert "│    4 │" in done.stdout

    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'emea'")
    runs = client.search_runs([experiment.experiment_id])
    assert len(runs) == 4
    folders = [path.parent for path in (tmp_path / "multirun").rglob("metrics.json")]
    kept = {json.loads((folder / "run.json").read_text())["run_id"]: folder for folder in folders}
    for run in runs:
        folder = kept[run.data.tags["emea.run_id"]]
        points = [json.loads(line) for line in (folder / "series.jsonl").read_text().splitlines()]
        names = {name for point in points for name in point["metrics"]}
        assert len(run.data.metrics) == len(names)
        assert run.data.params["seed"] == str(
            json.loads((folder / "metrics.json").read_text())["seed"]
        )
        there = {item.path for item in client.list_artifacts(run.info.run_id)}
        assert {"metrics.json", "alignment.tsv", "config.yaml"} <= there


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        ("submitit", ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"]),
        ("ray", ["hydra/launcher=ray", "+hydra.launcher.ray.init.num_cpus=2"]),
    ],
)
def test_launchers_run_jobs_of_their_own(plugin: str, arguments: list[str], tmp_path: Path) -> None:
    pytest.importorskip(f"hydra_plugins.hydra_{plugin}_launcher")
    done = sweep(tmp_path, *arguments, "seed=0,1", "tracking=none")
    assert done.returncode == 0, done.stderr
    assert "│    2 │" in done.stdout


def test_a_search_maximises_a_number_of_the_validation_links(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    arguments = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=3", "hydra.sweeper.n_jobs=1"]
    arguments += ["hydra.sweeper.direction=maximize", "em.ridge=tag(log,interval(0.001,1))"]
    done = sweep(tmp_path, *arguments, "tracking=none")
    assert done.returncode == 0, done.stderr
    (told,) = (tmp_path / "multirun").rglob("optimization_results.yaml")
    best = float(told.read_text().split("best_value:")[1].split()[0])
    found = [json.loads(path.read_text()) for path in (tmp_path / "multirun").rglob("metrics.json")]
    assert best == max(metrics["history"][-1]["validation"]["mrr"] for metrics in found)
