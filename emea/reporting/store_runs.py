"""Recorded runs from an MLflow store."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from emea.errors import DataError
from emea.record.mlflow_store import MlflowStore
from emea.record.store_uri import DEFAULT_URI, shown_uri, sqlite_path, without_login
from emea.reporting.records import RecordedRun, ranks_in

if TYPE_CHECKING:
    from mlflow.entities import Run

FILES = ("metrics.json", "run.json")
FINISHED, PAGE = "attributes.status = 'FINISHED'", 1000


def load_store(uri: str) -> list[RecordedRun]:
    """Every finished run of a store that kept its files, of whatever code.

    Raises:
        DataError: there is no such store, or no such run in it.
    """
    file = sqlite_path(uri)
    if file is not None and not file.is_file():
        raise DataError(f"{uri}: there is no file {file}")
    try:
        urlsplit(uri)
    except ValueError as error:
        raise DataError(f"what was given as store is no address: {error}") from error
    shown = shown_uri(uri)
    try:
        finished = _finished(MlflowStore(uri))
    # MLflow, the database below it and what speaks to it each have errors of their own
    except Exception as error:
        # after the first sentence comes advice on other matters
        told = without_login(str(error).split("\n")[0].split(". ")[0], uri)
        raise DataError(
            f"{shown} cannot be read as an MLflow store, such as {DEFAULT_URI}: {told}"
        ) from error
    runs = [run for one in finished if (run := _recorded(one, uri)) is not None]
    if not runs:
        raise DataError(f"{shown} holds no finished run with its files ({', '.join(FILES)})")
    return sorted(runs, key=lambda run: run.header["start_time"])


def _finished(store: MlflowStore) -> list["Run"]:
    experiments = [found.experiment_id for found in store.client.search_experiments()]
    pages = [store.client.search_runs(experiments, FINISHED, max_results=PAGE)]
    while pages[-1].token:
        token = pages[-1].token
        page = store.client.search_runs(experiments, FINISHED, max_results=PAGE, page_token=token)
        pages.append(page)
    return [run for page in pages for run in page]


def _recorded(run: "Run", uri: str) -> RecordedRun | None:
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        # a local store's files are read where they lie, others are fetched
        folder = Path(download_artifacts(run_id=run.info.run_id, tracking_uri=uri))
        metrics, header = (json.loads((folder / name).read_text("utf-8")) for name in FILES)
    except (OSError, MlflowException):
        return None
    return RecordedRun(folder, metrics, header, read_ranks=partial(ranks_in, folder))
