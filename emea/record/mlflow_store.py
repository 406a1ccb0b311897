"""Runs in an MLflow store: names, parameters, metrics and files."""

import json
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock

from emea.config.groups import OPTIONAL
from emea.errors import UserError
from emea.record.description import describe_run
from emea.record.interrupted import NOTE_TAG, REASON_TAG, RUN_ID_TAG, place_tags
from emea.record.mlflow_sweep import PARENT_TAG, close_sweep, sweep_parent
from emea.record.run_folder import METRICS_FILE, read_metrics, run_files
from emea.record.run_record import (
    COMMAND_TAG,
    FINGERPRINT_TAG,
    SWEEP_TAG,
    USER_TAG,
    DataPart,
    MetricPoint,
    ParamValue,
    RunClosing,
    RunHeader,
    read_header,
)
from emea.record.settings import MlflowSettings
from emea.record.store_uri import absolute_uri, artifact_location, sqlite_path
from emea.record.tracker import StoredRun

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Run

logger = logging.getLogger(__name__)

T = TypeVar("T")

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
"""Settings that MLflow reads at import or per request; the user's own environment wins."""

LOCK_SECONDS = 50.0
"""How long to wait for another process that opens the store; ends before the patience of a run."""

LOG_LEVELS = {
    "alembic": logging.WARNING,  # older versions of MLflow log a line for each change of the tables
    "mlflow.store.db.utils": logging.CRITICAL,  # logs a traceback for each failed statement
    "urllib3.connectionpool": logging.ERROR,  # logs a line for each retry
}
"""Loggers whose lines would hide those of the run. Errors are raised and reported as well."""

COMPLETE_TAG, SKIPPED_TAG = "emea.complete", "emea.skipped_files"

# The smallest limits among the MLflow versions in use; the sqlite store allows a little more.
MAX_NAME_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 5000
MAX_DIGEST_LENGTH = 36
PARAMS_PER_BATCH = 100
MAX_ARTIFACT_MB = 200.0
"""Larger files stay in the run folder only, which keeps the store small."""

METRICS_PER_BATCH = 1000

PREFIX = "run/"
"""Beginning of the names of results in the series of a run; MLflow's columns are too narrow."""

OF_ITERATIONS = ("seconds", "counterparts")
"""Sections that also have a series over the iterations, so that their results keep the prefix."""

HIDDEN = (
    "data.download",
    "data.root",
    "export.formats",
    "export.top_k",
    "hydra",
    "initial_from",
    "method.label",
    "method.uses",
    "skip_recorded",
    "split.ratio",
    "split.seed",
    "study",
    "tracking",
    "trainer",
    "trust",
)
"""Places on a machine, repetitions of other keys, and how a run is carried out and recorded."""

_FORBIDDEN = re.compile(r"[^\w./ -]")


def load_mlflow() -> None:
    """Import MLflow, which takes several seconds, or longer on a busy machine."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    import mlflow  # noqa: F401


def open_client(uri: str) -> "MlflowClient":
    """Return a client for the store, whose tables exist when this returns.

    Args:
        uri: The store's address; a relative sqlite path counts from the working directory.
    """
    load_mlflow()
    from mlflow import MlflowClient

    path = sqlite_path(uri)
    # Processes that create the tables of a fresh sqlite file together leave it unusable.
    with nullcontext() if path is None else FileLock(f"{path}.lock", LOCK_SECONDS):
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    return client


def metric_name(name: str) -> str:
    """Return the MLflow name of a metric, parameter or tag, such as `hit_at_1` for `hit@1`."""
    allowed = _FORBIDDEN.sub("_", name.replace("@", "_at_"))
    # MLflow treats names as paths and rejects those that are not normalised
    parts = [part for part in allowed.split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[:MAX_NAME_LENGTH] or "_"


def stored_name(name: str) -> str:
    """Return the MLflow name of a metric of a run's series, such as `final/hit_at_1`."""
    short = name.removeprefix(PREFIX)
    section = short.partition("/")[0]
    return metric_name(name if section in OF_ITERATIONS else short)


def compared_params(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return the parameters that can make the numbers of one run differ from those of another.

    Args:
        params: All parameters, as in ``run.json``; ``method.uses`` is a list as text.
    """
    uses = params.get("method.uses")
    unused = (
        []
        if uses is None
        else [group for group in OPTIONAL if f"'{group}'" not in str(uses)]
    )
    hidden = tuple(f"{name}." for name in (*HIDDEN, *unused))
    # _target_ and _partial_ are for Hydra; the name of the option contains the same information
    return {
        key: value
        for key, value in params.items()
        if not f"{key}.".startswith(hidden)
        and not key.rpartition(".")[2].startswith("_")
    }


def cut(value: object, length: int = MAX_TAG_LENGTH) -> str:
    """Return the value as text; if it is too long, an ellipsis replaces its end."""
    text = str(value)
    return text if len(text) <= length else text[: length - 1] + "…"


class MlflowStore:
    """Reads and writes runs and their records in an MLflow store.

    Relative addresses become absolute, so that a later change of directory has no effect. The first
    call that needs the store opens it.

    Args:
        uri: The store's address.
        artifact_root: The folder for the files of new experiments.
    """

    def __init__(
        self, uri: str, artifact_root: str = MlflowSettings.artifact_root
    ) -> None:
        self.uri = absolute_uri(uri)
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
        """Refuse all further requests, so that a call that hung does not continue later."""
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
        if (
            found.lifecycle_stage == "deleted"
        ):  # deleted in the UI; its name is still in use
            self.client.restore_experiment(found.experiment_id)
        return found.experiment_id

    def find_runs(self, header: RunHeader) -> "list[Run]":
        """Return every run, complete or not, that was made from this header's run."""
        experiment = self.experiment_id(header.experiment)
        return list(
            self.client.search_runs(
                [experiment], f"tags.`{RUN_ID_TAG}` = '{header.run_id}'"
            )
        )

    def find_finished(self, fingerprint: str) -> StoredRun | None:
        """Return a finished run of any study with this fingerprint."""
        experiments = [
            found.experiment_id for found in self.client.search_experiments()
        ]
        wanted = f"tags.`{FINGERPRINT_TAG}` = '{fingerprint}' and attributes.status = 'FINISHED'"
        found = list(self.client.search_runs(experiments, wanted, max_results=1))
        if not found:
            return None
        run = found[0].info
        return StoredRun(
            f"MLflow run {run.run_name} ({run.run_id})", self._metrics(run.run_id)
        )

    def _metrics(self, run_id: str) -> dict[str, Any]:
        """Return the content of a run's ``metrics.json``; nothing if the file is not available."""
        from mlflow.exceptions import MlflowException

        with tempfile.TemporaryDirectory() as folder:
            try:
                self.client.download_artifacts(run_id, METRICS_FILE, folder)
                return read_metrics(Path(folder))
            except (MlflowException, OSError, UserError) as error:
                logger.info(
                    "The numbers of MLflow run %s are not available: %s", run_id, error
                )
                return {}

    def has_copy(self, header: RunHeader, closing: RunClosing) -> bool:
        """Return whether the store has the whole run, with this end or a later one.

        A finished run is never replaced: a folder that ends in another way is an older copy of it.
        """
        complete = [
            run for run in self.find_runs(header) if COMPLETE_TAG in run.data.tags
        ]
        return any(
            run.info.status == "FINISHED" or run.info.end_time >= closing.end_time
            for run in complete
        )

    def create_run(self, header: RunHeader, folder: Path | None = None) -> str:
        """Start the MLflow run and return its id; earlier copies of the same run are deleted.

        Args:
            header: The header of the run.
            folder: The folder in which this process carries out the run; ``None`` for an import.
        """
        from mlflow.entities import Param

        self._delete(self.find_runs(header))
        experiment = self.experiment_id(header.experiment)
        tags = header.tags | _mlflow_tags(header)
        if folder is not None:
            tags |= place_tags(folder)
        if SWEEP_TAG in header.tags:
            sweep_folder = None if folder is None else folder.parent
            tags[PARENT_TAG] = sweep_parent(
                self.client, experiment, header, sweep_folder
            )
        run = self.client.create_run(
            experiment,
            start_time=header.start_time,
            tags={metric_name(key): cut(value) for key, value in tags.items()}
            | {RUN_ID_TAG: header.run_id},
            run_name=header.name,
        )
        run_id: str = run.info.run_id
        if header.data:
            self.client.log_inputs(
                run_id, [_dataset_input(part) for part in header.data]
            )
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
            Metric(stored_name(name), value, point.time, point.step)
            for point in points
            for name, value in point.metrics.items()
        ]
        for batch in _batches(metrics, METRICS_PER_BATCH):
            self.client.log_batch(run_id, metrics=batch)

    def finish_run(self, run_id: str, folder: Path, closing: RunClosing) -> None:
        """Copy the run's files, and close the run."""
        small, large = run_files(folder, MAX_ARTIFACT_MB)
        for path in small:
            parent = path.parent.relative_to(folder).as_posix()
            self.client.log_artifact(
                run_id, str(path), None if parent == "." else parent
            )
        if large:
            names = ", ".join(path.relative_to(folder).as_posix() for path in large)
            logger.info("Not copied to MLflow, over %g MB: %s", MAX_ARTIFACT_MB, names)
            self.client.set_tag(run_id, SKIPPED_TAG, cut(names))
        header = read_header(folder)
        self.client.set_tag(
            run_id, NOTE_TAG, cut(describe_run(header, closing, folder))
        )
        if closing.reason:
            self.client.set_tag(run_id, REASON_TAG, cut(closing.reason))
        self.client.set_terminated(run_id, closing.status, closing.end_time)
        # repeated requests to a slow server may have created the run twice
        self._delete(run for run in self.find_runs(header) if run.info.run_id != run_id)
        # last: a run without this tag is incomplete, and an import may replace it
        self.client.set_tag(run_id, COMPLETE_TAG, "true")

    def finish_sweep(
        self, study: str, sweep: str, folder: Path | None, status: str
    ) -> None:
        """Close the parent run of a sweep with its summary.

        Args:
            study: Name of the study.
            sweep: Name of the sweep.
            folder: The folder with the tables of the sweep; ``None`` if only its runs are known.
            status: FINISHED, FAILED or KILLED.
        """
        found = self.client.get_experiment_by_name(study)
        if found is not None:
            close_sweep(self.client, found.experiment_id, sweep, folder, status)

    def _delete(self, runs: "Iterable[Run]") -> None:
        for run in runs:
            self.client.delete_run(run.info.run_id)


def _mlflow_tags(header: RunHeader) -> dict[str, str]:
    """Return the tags that fill MLflow's own columns: source, user and version."""
    named = {
        "mlflow.source.name": header.tags.get(COMMAND_TAG, "emea run"),
        "mlflow.source.type": "LOCAL",
        "mlflow.user": header.tags.get(USER_TAG, ""),
        "mlflow.source.git.commit": header.tags.get("commit", ""),
    }
    return {key: value for key, value in named.items() if value and value != "unknown"}


def _dataset_input(part: DataPart) -> "DatasetInput":
    """Return a graph, or the links of one role, as an input of MLflow."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(
        name=part.name,
        digest=part.digest[:MAX_DIGEST_LENGTH],
        source_type="local",
        source=json.dumps({"uri": part.place}),
        profile=json.dumps(part.sizes),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", part.role)])


def _batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
