"""Sweeps and runs of the command line, small enough for a test."""

import io
import logging
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hydra.core.singleton import Singleton

import emea.run.sweep  # noqa: F401 (its resolver belongs to the state that `_restored` keeps)

ROOT = Path(__file__).resolve().parents[1]
TINY = ["data.num_entities=150", "ratio=0.2", "split.num_validation=10", "trainer=cpu"]
TINY += ["model.initial_epochs=2", "model.epochs_per_iteration=1", "em.iterations=1"]


def environment() -> dict[str, str]:
    """The user's own, but for a store that it may name."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "MLFLOW_TRACKING_URI"
    }
    return {**kept, "PYTHONPATH": str(ROOT)}


@contextmanager
def going_on(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A single run, in `folder/run`, that is not waited for."""
    command = [
        sys.executable,
        str(ROOT / "run.py"),
        *TINY,
        *arguments,
        "hydra.run.dir=run",
    ]
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


def called_here(
    folder: Path, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """What ``run.py`` makes of these arguments, in the folder and in this process.

    A process of its own takes seconds to load torch. Hydra's state and log handlers are put back.
    """
    output, errors = io.StringIO(), io.StringIO()
    status = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(output),
        redirect_stderr(errors),
        _restored(),
    ):
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        for name, value in environ.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.setattr(sys, "argv", [str(ROOT / "run.py"), *arguments])
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as left:
            status = (
                left.code if isinstance(left.code, int) else int(left.code is not None)
            )
            if isinstance(left.code, str):
                print(left.code, file=errors)
    return subprocess.CompletedProcess(
        list(arguments), status, output.getvalue(), errors.getvalue()
    )


@contextmanager
def _restored() -> Iterator[None]:
    """Hydra configures logging and keeps its settings for the whole process."""
    root, state = logging.getLogger(), Singleton.get_state()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        for handler in root.handlers:
            if handler not in handlers:
                handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        Singleton.set_state(state)


def run_folders(folder: Path) -> list[Path]:
    """The folders of the sweep's runs."""
    return sorted(path.parent for path in (folder / "multirun").rglob("run.json"))
