"""Runs in an MLflow store: names, parameters, metrics and files."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from emea.config.files import OPTIONAL
from emea.record.mlflow_client import open_client
from emea.record.run_record import MetricPoint, ParamValue, RunClosing, RunHeader, read_header
from emea.record.store_uri import (
    DEFAULT_ARTIFACT_ROOT,
    DEFAULT_URI,
    absolute_uri,
    artifact_location,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

logger = logging.getLogger(__name__)


HIDDEN = (
    "data.download",
    "data.root",
    "export.formats",
    "export.top_k",
    "hydra",
    "initial_from",
    "method.label",
    "method.uses",
    "split.ratio",
    "split.seed",
    "study",
    "tracking",
    "trainer",
)
"""Places on a machine, repetitions of other keys, and how a run is carried out and recorded."""


def compared_params(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """The parameters that can make one run's numbers differ from another's.

    Args:
        params: The complete ones, as `run.json` holds them.
    """
    hidden = (*HIDDEN, *_unused_groups(params))
    return {key: value for key, value in params.items() if not _is_hidden(key, hidden)}


def _is_hidden(key: str, hidden: tuple[str, ...]) -> bool:
    # _target_ and _partial_ tell Hydra what an option's name tells a person
    is_machinery = key.rpartition(".")[2].startswith("_")
    return is_machinery or any(key == name or key.startswith(f"{name}.") for name in hidden)


def _unused_groups(params: Mapping[str, ParamValue]) -> list[str]:
    """Groups that the run's method has no use for; records keep the list as text."""
    uses = params.get("method.uses")
    return [] if uses is None else [group for group in OPTIONAL if f"'{group}'" not in str(uses)]


# The smallest limits among the MLflow versions in use; the sqlite store allows a little more.
MAX_NAME_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 5000

_FORBIDDEN = re.compile(r"[^\w./ -]")


def metric_name(name: str) -> str:
    """The name under which MLflow keeps a metric, parameter or tag: `hit@1` is `hit_at_1`."""
    allowed = _FORBIDDEN.sub("_", name.replace("@", "_at_"))
    # MLflow takes names for paths and refuses those that are not in normal form.
    parts = [part for part in allowed.split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[:MAX_NAME_LENGTH] or "_"


def cut(value: object, length: int) -> str:
    """The value as text, its end replaced by an ellipsis where it is too long."""
    text = str(value)
    return text if len(text) <= length else text[: length - 1] + "…"


RUN_FILES = (
    "config.yaml",
    "metrics.json",
    "run.json",
    "series.jsonl",
    "alignment.tsv",
    "alignment.nt",
    "alignment.sssom.tsv",
    "alignment.jsonl",
    "unmatched.tsv",
    "ranks.npz",
    "beliefs.npz",
    "pair.npz",
    "checkpoint.safetensors",
    "run.log",
    ".hydra/*.yaml",
)
"""What a run leaves behind."""


def run_files(folder: Path, max_mb: float) -> tuple[list[Path], list[Path]]:
    """The run's own files, sorted, as those to copy and those that are too large.

    Args:
        folder: The run's folder; whatever else lies in it is left alone.
        max_mb: Files larger than this many megabytes stay behind.
    """
    small: list[Path] = []
    large: list[Path] = []
    for path in sorted(_own_files(folder)):
        fits = path.stat().st_size <= max_mb * 1e6
        (small if fits else large).append(path)
    return small, large


def _own_files(folder: Path) -> list[Path]:
    # By name: the folder may be one in which the user keeps other things, too.
    found = [path for pattern in RUN_FILES for path in folder.glob(pattern)]
    # A broken link, or a pipe, has nothing to copy.
    return [path for path in found if path.is_file()]


T = TypeVar("T")

RUN_ID_TAG = "emea.run_id"
REASON_TAG = "emea.reason"
SKIPPED_TAG = "emea.skipped_files"
COMPLETE_TAG = "emea.complete"

PARAMS_PER_BATCH = 100  # MLflow refuses more
METRICS_PER_BATCH = 1000  # MLflow refuses more


class MlflowStore:
    """An MLflow store in terms of runs and their records.

    Addresses are made absolute here, so that a later change of directory moves nothing. The store
    is opened by the first call that needs it.

    Args:
        uri: The store's address.
        artifact_root: Where experiments that do not exist yet will keep their files.
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
            raise RuntimeError("The store was left.")
        if self._client is None:
            self._client = open_client(self.uri)
        return self._client

    def leave(self) -> None:
        """Ask nothing more of the store: a call that hangs must not go on when it wakes up."""
        self._is_left = True

    def experiment_id(self, name: str) -> str:
        """The experiment's id; it is created where missing."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                return self.client.create_experiment(name, self._artifact_location)
            except MlflowException:
                # Another process may have been faster between the two calls.
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":  # in the UI; its name stays taken
            self.client.restore_experiment(found.experiment_id)
        return found.experiment_id

    def find_runs(self, header: RunHeader) -> "list[Run]":
        """Every run, complete or not, that was made from this header's run."""
        experiment = self.experiment_id(header.experiment)
        return list(
            self.client.search_runs([experiment], f"tags.`{RUN_ID_TAG}` = '{header.run_id}'")
        )

    def find_finished(self, tag: str, value: str) -> "Run | None":
        """A finished run of any experiment with this tag."""
        experiments = [found.experiment_id for found in self.client.search_experiments()]
        wanted = f"tags.`{tag}` = '{value}' and attributes.status = 'FINISHED'"
        return next(iter(self.client.search_runs(experiments, wanted, max_results=1)), None)

    def complete_copy(self, header: RunHeader, closing: RunClosing | None) -> str | None:
        """MLflow's id of a copy that tells everything about the run; None: there is none.

        Args:
            header: of the run.
            closing: how it ended; a copy of before it went on tells of another end.
        """
        runs = self.find_runs(header)
        complete = [run for run in runs if run.data.tags.get(COMPLETE_TAG) == "true"]
        same = [run for run in complete if not closing or run.info.status == closing.status]
        return same[0].info.run_id if same else None

    def drop_copies(self, header: RunHeader, but: str | None = None) -> None:
        """Delete every copy of the run, except for one where its id is given."""
        for run in self.find_runs(header):
            if run.info.run_id != but:
                self.client.delete_run(run.info.run_id)

    def create_run(self, header: RunHeader) -> str:
        """Begin the MLflow run, in place of earlier copies of the same run.

        Returns:
            MLflow's id of the run.
        """
        from mlflow.entities import Param

        self.drop_copies(header)
        tags = {metric_name(key): cut(value, MAX_TAG_LENGTH) for key, value in header.tags.items()}
        run = self.client.create_run(
            self.experiment_id(header.experiment),
            start_time=header.start_time,
            tags=tags | {RUN_ID_TAG: header.run_id},
            run_name=header.name,
        )
        run_id: str = run.info.run_id
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
            closing: How the run ended.
            complete: Whether nothing is to come any more, so that no import need look again.
        """
        self._copy_files(run_id, folder)
        if closing.reason:
            self.client.set_tag(run_id, REASON_TAG, cut(closing.reason, MAX_TAG_LENGTH))
        self.client.set_terminated(run_id, closing.status, closing.end_time)
        # A server that is slow to answer is asked again, and may have made the run twice.
        self.drop_copies(read_header(folder), but=run_id)
        # Last of all: a run without this tag is a torn copy that an import may replace.
        if complete:
            self.client.set_tag(run_id, COMPLETE_TAG, "true")

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
