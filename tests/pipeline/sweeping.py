"""Sweeps and runs of the command line, small enough for a test."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TINY = ["data.num_entities=150", "ratio=0.2", "split.num_validation=10", "trainer=cpu"]
TINY += ["model.initial_epochs=2", "model.epochs_per_iteration=1", "em.iterations=1"]


def environment() -> dict[str, str]:
    """The user's own, but for a store that it may name."""
    kept = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    return {**kept, "PYTHONPATH": str(ROOT)}


@contextmanager
def going_on(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A single run, in `folder/run`, that is not waited for."""
    command = [sys.executable, str(ROOT / "run.py"), *TINY, *arguments, "hydra.run.dir=run"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def sweep(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the sweep in the folder."""
    return called(folder, str(ROOT / "run.py"), "-m", *TINY, *arguments)


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What Python made of these arguments, in the folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_folders(folder: Path) -> list[Path]:
    """The folders of the sweep's runs."""
    return sorted(path.parent for path in (folder / "multirun").rglob("run.json"))
