"""Recorded runs of an MLflow store."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from emea.errors import DataError
from emea.record.mlflow_store import open_client
from emea.record.store_uri import DEFAULT_URI, shown_uri, sqlite_path, without_login
from emea.results.records import RUN_FILES, RecordedRun, load_run

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

FINISHED, PAGE = "attributes.status = 'FINISHED'", 1000


def load_store(uri: str) -> list[RecordedRun]:
    """Return every finished run of an MLflow store whose files are available.

    Raises:
        DataError: If the store does not exist or contains no such run.
    """
    file = sqlite_path(uri)
    if file is not None and not file.is_file():
        raise DataError(f"{uri}: the file {file} does not exist")
    try:
        urlsplit(uri)
    except ValueError as error:
        raise DataError(f"--store is not a valid address: {error}") from error
    shown = shown_uri(uri)
    try:
        finished = _finished(open_client(uri))
    # MLflow, its database and the HTTP client raise different errors
    except Exception as error:
        reason = without_login(str(error).split("\n")[0].split(". ")[0], uri)
        raise DataError(
            f"{shown} cannot be read as an MLflow store, such as {DEFAULT_URI}: {reason}"
        ) from error
    runs = [run for one in finished if (run := _recorded(one, uri)) is not None]
    if not runs:
        raise DataError(
            f"{shown} contains no finished run with its files ({' and '.join(RUN_FILES)})"
        )
    return sorted(runs, key=lambda run: run.header["start_time"])


def _finished(client: "MlflowClient") -> list["Run"]:
    experiments = [found.experiment_id for found in client.search_experiments()]
    pages = [client.search_runs(experiments, FINISHED, max_results=PAGE)]
    while pages[-1].token:
        token = pages[-1].token
        page = client.search_runs(experiments, FINISHED, max_results=PAGE, page_token=token)
        pages.append(page)
    return [run for page in pages for run in page]


def _recorded(run: "Run", uri: str) -> RecordedRun | None:
    """Return a run of a store; ``None`` if it has no files, such as the parent of a sweep."""
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        # files of a local store are read in place, others are downloaded
        folder = Path(download_artifacts(run_id=run.info.run_id, tracking_uri=uri))
    except (OSError, MlflowException):
        return None
    return load_run(folder) if all((folder / name).is_file() for name in RUN_FILES) else None
