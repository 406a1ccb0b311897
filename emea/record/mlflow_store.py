"""Runs in an MLflow store: names, parameters, metrics and files."""

import json
import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from emea.record.description import describe_run
from emea.record.interrupted import place_tags
from emea.record.mlflow_client import open_client
from emea.record.mlflow_params import compared_params
from emea.record.mlflow_sweep import PARENT_TAG, close_sweep, sweep_parent
from emea.record.mlflow_view import chart_address, save_view
from emea.record.run_files import run_files
from emea.record.run_record import (
    COMMAND_TAG,
    SWEEP_TAG,
    USER_TAG,
    MetricPoint,
    RunClosing,
    RunHeader,
    read_header,
)
from emea.record.store_uri import (
    DEFAULT_ARTIFACT_ROOT,
    DEFAULT_URI,
    absolute_uri,
    artifact_location,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run

logger = logging.getLogger(__name__)


# The smallest limits among the MLflow versions in use; the sqlite store allows a little more.
MAX_NAME_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 5000

_FORBIDDEN = re.compile(r"[^\w./ -]")


def metric_name(name: str) -> str:
    """Return the MLflow name of a metric, parameter or tag, such as `hit_at_1` for `hit@1`."""
    allowed = _FORBIDDEN.sub("_", name.replace("@", "_at_"))
    # MLflow treats names as paths and rejects those that are not normalised
    parts = [part for part in allowed.split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[:MAX_NAME_LENGTH] or "_"


def cut(value: object, length: int) -> str:
    """Return the value as text; if it is too long, an ellipsis replaces its end."""
    text = str(value)
    return text if len(text) <= length else text[: length - 1] + "…"


T = TypeVar("T")

RUN_ID_TAG = "emea.run_id"
REASON_TAG = "emea.reason"
NOTE_TAG = "mlflow.note.content"
SKIPPED_TAG = "emea.skipped_files"
COMPLETE_TAG = "emea.complete"

PARAMS_PER_BATCH = 100  # MLflow refuses more
METRICS_PER_BATCH = 1000  # MLflow refuses more


def mlflow_tags(header: RunHeader) -> dict[str, str]:
    """Return the tags that fill MLflow's own columns: source, user and version."""
    named = {
        "mlflow.source.name": header.tags.get(COMMAND_TAG, "emea run"),
        "mlflow.source.type": "LOCAL",
        "mlflow.user": header.tags.get(USER_TAG, ""),
        "mlflow.source.git.commit": header.tags.get("commit", ""),
    }
    return {key: value for key, value in named.items() if value and value != "unknown"}


def dataset_input(header: RunHeader) -> "DatasetInput":
    """Return the pair of graphs of a run as a dataset of MLflow."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    name = header.tags.get("data") or str(header.params.get("data.name", "unknown"))
    checksum = header.tags.get("data_checksum", "unknown")
    places = {
        key: value
        for key, value in header.params.items()
        if key.startswith("data.") and key.rpartition(".")[2] in ("folder", "source", "target")
    }
    source = json.dumps({"uri": str(places.get("data.folder") or name), **places})
    dataset = Dataset(name, checksum[:36], "local", source, profile=json.dumps({"pair": name}))
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "align")])


class MlflowStore:
    """Reads and writes runs and their records in an MLflow store.

    Relative addresses become absolute, so that a later change of directory has no effect. The first
    call that needs the store opens it.

    Args:
        uri: The store's address.
        artifact_root: The folder for the files of new experiments.
        max_artifact_mb: Files larger than this stay in the run's folder only.
    """

    def __init__(
        self,
        uri: str = DEFAULT_URI,
        artifact_root: str = DEFAULT_ARTIFACT_ROOT,
        max_artifact_mb: float = 200.0,
    ) -> None:
        self.uri = absolute_uri(uri)
        self.max_artifact_mb = max_artifact_mb
        self._artifact_location = artifact_location(self.uri, artifact_root)
        self._client: MlflowClient | None = None
        self._is_left = False

    @property
    def client(self) -> "MlflowClient":
        """The MLflow client; the first use opens the store."""
        if self._is_left:
            raise RuntimeError("The store is closed for this run.")
        if self._client is None:
            self._client = open_client(self.uri)
        return self._client

    def leave(self) -> None:
        """Refuse all further calls, so that a call that hangs does not continue later."""
        self._is_left = True

    def experiment_id(self, name: str) -> str:
        """Return the experiment's id; a missing experiment is created."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                return self.client.create_experiment(name, self._artifact_location)
            except MlflowException:
                # another process may have created it between the two calls
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":  # deleted in the UI; its name is still in use
            self.client.restore_experiment(found.experiment_id)
        return found.experiment_id

    def find_runs(self, header: RunHeader) -> "list[Run]":
        """Return every run, complete or not, that was made from this header's run."""
        experiment = self.experiment_id(header.experiment)
        return list(
            self.client.search_runs([experiment], f"tags.`{RUN_ID_TAG}` = '{header.run_id}'")
        )

    def find_finished(self, tag: str, value: str) -> "Run | None":
        """Return a finished run of any experiment with this tag."""
        experiments = [found.experiment_id for found in self.client.search_experiments()]
        wanted = f"tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        return next(iter(self.client.search_runs(experiments, wanted, max_results=1)), None)

    def complete_copy(self, header: RunHeader, closing: RunClosing | None) -> str | None:
        """Return MLflow's id of a complete copy of the run; ``None`` if there is none.

        Args:
            header: The header of the run.
            closing: The end of the run. A copy from before the run was resumed has another end.
        """
        runs = self.find_runs(header)
        complete = [run for run in runs if run.data.tags.get(COMPLETE_TAG) == "true"]
        same = [run for run in complete if not closing or run.info.status == closing.status]
        return same[0].info.run_id if same else None

    def drop_copies(self, header: RunHeader, but: str | None = None) -> None:
        """Delete every copy of the run, except for the one with the given id."""
        for run in self.find_runs(header):
            if run.info.run_id != but:
                self.client.delete_run(run.info.run_id)

    def create_run(self, header: RunHeader, folder: Path | None = None) -> str:
        """Start the MLflow run; earlier copies of the same run are deleted.

        Args:
            header: The header of the run.
            folder: The folder in which this process carries out the run; ``None`` for an import.

        Returns:
            MLflow's id of the run.
        """
        from mlflow.entities import Param

        self.drop_copies(header)
        experiment = self.experiment_id(header.experiment)
        tags = header.tags | mlflow_tags(header)
        if folder is not None:
            tags |= place_tags(folder)
        sweep = header.tags.get(SWEEP_TAG)
        if sweep is not None:
            tags |= {PARENT_TAG: sweep_parent(self.client, experiment, sweep, header)}
        run = self.client.create_run(
            experiment,
            start_time=header.start_time,
            tags={metric_name(key): cut(value, MAX_TAG_LENGTH) for key, value in tags.items()}
            | {RUN_ID_TAG: header.run_id},
            run_name=header.name,
        )
        run_id: str = run.info.run_id
        self.client.log_inputs(run_id, [dataset_input(header)])
        params = [
            Param(metric_name(key), cut(value, MAX_PARAM_LENGTH))
            for key, value in compared_params(header.params).items()
        ]
        for batch in _batches(params, PARAMS_PER_BATCH):
            self.client.log_batch(run_id, params=batch)
        return run_id

    def log_points(self, run_id: str, points: Iterable[MetricPoint]) -> None:
        """Add points of the series, with their own steps and times."""
        from mlflow.entities import Metric

        metrics = [
            Metric(metric_name(name), value, point.time, point.step)
            for point in points
            for name, value in point.metrics.items()
        ]
        for batch in _batches(metrics, METRICS_PER_BATCH):
            self.client.log_batch(run_id, metrics=batch)

    def finish_run(self, run_id: str, folder: Path, closing: RunClosing, complete: bool) -> None:
        """Copy the run's files and close it.

        Args:
            run_id: MLflow's id of the run.
            folder: The run's folder.
            closing: The end of the run.
            complete: Whether the run has ended, so that a later import can skip it.
        """
        self._copy_files(run_id, folder)
        header = read_header(folder)
        chart = chart_address(run_id, self.experiment_id(header.experiment))
        note = cut(describe_run(header, closing, folder, chart), MAX_TAG_LENGTH)
        self.client.set_tag(run_id, NOTE_TAG, note)
        if closing.reason:
            self.client.set_tag(run_id, REASON_TAG, cut(closing.reason, MAX_TAG_LENGTH))
        self.client.set_terminated(run_id, closing.status, closing.end_time)
        # repeated requests to a slow server may have created the run twice
        self.drop_copies(header, but=run_id)
        # last: a run without this tag is incomplete, and an import may replace it
        if complete:
            self.client.set_tag(run_id, COMPLETE_TAG, "true")

    def finish_sweep(self, experiment: str, sweep: str, folder: Path | None, status: str) -> None:
        """Close the parent run of a sweep with its summary, and update the view of the study.

        Args:
            experiment: Name of the study.
            sweep: Name of the sweep.
            folder: The folder with its tables; ``None`` if only the runs are known.
            status: FINISHED or FAILED.
        """
        experiment_id = self.experiment_id(experiment)
        close_sweep(self.client, experiment_id, sweep, folder, status)
        save_view(self.client, experiment_id)

    def save_view(self, experiment: str) -> None:
        """Let the UI open the study on its results."""
        save_view(self.client, self.experiment_id(experiment))

    def _copy_files(self, run_id: str, folder: Path) -> None:
        small, large = run_files(folder, self.max_artifact_mb)
        for path in small:
            parent = path.parent.relative_to(folder).as_posix()
            self.client.log_artifact(run_id, str(path), None if parent == "." else parent)
        if large:
            names = ", ".join(path.relative_to(folder).as_posix() for path in large)
            logger.info("Not copied to MLflow, over %g MB: %s", self.max_artifact_mb, names)
            self.client.set_tag(run_id, SKIPPED_TAG, cut(names, MAX_TAG_LENGTH))


def _batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
