"""Recorded runs from an MLflow store."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from emea.errors import DataError
from emea.reporting.records import RecordedRun
from emea.tracking.mlflow_store import MlflowStore

if TYPE_CHECKING:
    from mlflow.entities import Run

FILES = ("metrics.json", "run.json")
FINISHED, PAGE = "attributes.status = 'FINISHED'", 1000


def load_store(uri: str) -> list[RecordedRun]:
    """Every finished run of a store that kept its files, of whatever code."""
    store = MlflowStore(uri)
    experiments = [found.experiment_id for found in store.client.search_experiments()]
    pages = [store.client.search_runs(experiments, FINISHED, max_results=PAGE)]
    while pages[-1].token:
        token = pages[-1].token
        page = store.client.search_runs(experiments, FINISHED, max_results=PAGE, page_token=token)
        pages.append(page)
    runs = [run for page in pages for one in page if (run := _recorded(one, uri)) is not None]
    if not runs:
        raise DataError(f"{uri} holds no finished run with its files ({', '.join(FILES)})")
    return sorted(runs, key=lambda run: run.header["start_time"])


def _recorded(run: "Run", uri: str) -> RecordedRun | None:
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        # a local store's files are read where they lie, others are fetched
        folder = Path(download_artifacts(run_id=run.info.run_id, tracking_uri=uri))
        metrics, header = (json.loads((folder / name).read_text("utf-8")) for name in FILES)
    except (OSError, MlflowException):
        return None
    return RecordedRun(folder, metrics, header)
