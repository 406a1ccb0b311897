"""Opens an MLflow store safely."""

import logging
import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from emea.record.store_uri import sqlite_path

if TYPE_CHECKING:
    from mlflow import MlflowClient


# Settings MLflow reads at import or per request; the user's own environment wins.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",  # no warning if git is missing
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # two lines for each imported run
    # MLflow's defaults are seven retries of 120 s. These end before the patience of a run does, so
    # that the run can report the cause.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
}
LOCK_SECONDS = 50.0  # ends before the patience of a run, too

# Loggers whose lines would hide those of the run. Errors are raised and reported as well.
LOG_LEVELS = {
    "alembic": logging.WARNING,  # older versions of MLflow log a line for each change of the tables
    "mlflow.store.db.utils": logging.CRITICAL,  # logs a traceback for each failed statement
    "urllib3.connectionpool": logging.ERROR,  # logs a line for each retry
}


def open_client(uri: str) -> "MlflowClient":
    """Return a client for the store, whose tables exist when this returns.

    Args:
        uri: The store's address; a relative sqlite path counts from the working directory.
    """
    set_environment()
    from mlflow import MlflowClient

    path = sqlite_path(uri)
    # Processes that create the tables of a fresh sqlite file together leave it unusable.
    with nullcontext() if path is None else FileLock(lock_path(path), LOCK_SECONDS):
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    return client


def lock_path(database: Path) -> Path:
    """Return the lock file next to a sqlite database."""
    return database.with_name(database.name + ".lock")


def load_mlflow() -> None:
    """Import MLflow, which takes several seconds, or longer on a busy machine."""
    set_environment()
    import mlflow  # noqa: F401


def set_environment() -> None:
    """Set MLflow's log levels and timeouts; call it before MLflow is imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
