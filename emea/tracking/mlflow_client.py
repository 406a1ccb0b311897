"""Opening an MLflow store safely."""

import logging
import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from emea.tracking.file_lock import file_lock
from emea.tracking.store_uri import sqlite_path

if TYPE_CHECKING:
    from mlflow import MlflowClient

# Settings MLflow reads at import or per request; the user's own environment wins.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",  # no warning where git is missing
    # MLflow's own seven retries of 120 s would hold a run up for minutes when a server is away.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


def open_client(uri: str) -> "MlflowClient":
    """A client for the store, whose tables exist when this returns.

    Args:
        uri: The store's address; a relative sqlite path counts from the working directory.
    """
    set_environment()
    from mlflow import MlflowClient

    path = sqlite_path(uri)
    # Processes that create the tables of a fresh sqlite file together leave it unusable.
    with nullcontext() if path is None else file_lock(lock_path(path)):
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    return client


def lock_path(database: Path) -> Path:
    """The lock file beside a sqlite database."""
    return database.with_name(database.name + ".lock")


def set_environment() -> None:
    """Keep MLflow quiet and prompt; to be called before its first import."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Lines about the tables of a fresh store (in older MLflow one per migration) would bury the
    # run's own log.
    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
