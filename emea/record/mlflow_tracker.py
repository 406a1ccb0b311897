"""Tracks a run in MLflow while it runs; a failing store does not stop the run."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from shlex import quote
from threading import Thread
from typing import Any, TypeVar

from emea.record.mlflow_client import load_mlflow
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import (
    FINGERPRINT_TAG,
    MetricPoint,
    RunHeader,
    RunRecord,
    read_series,
)
from emea.record.store_uri import (
    DEFAULT_ARTIFACT_ROOT,
    DEFAULT_URI,
    absolute_uri,
    shown_uri,
    sqlite_path,
    without_login,
)

logger = logging.getLogger(__name__)


T = TypeVar("T")

PROJECT = Path(__file__).resolve().parents[2]
"""The folder of the clone that emea is used from, unless it is installed elsewhere."""


class BoundedCalls:
    """Makes one call after the other, in threads that do not keep the process alive.

    MLflow's own timeouts do not limit a call: it retries, sleeps as long as a server asks it to,
    accepts any byte as a sign of life, and waits for locks without a limit.

    Args:
        patience: Seconds that may be spent waiting, over all calls together.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._left = patience
        self._began = 0.0
        self._call: Future[Any] = Future()
        self._call.set_result(None)

    def do(self, action: Callable[[], T]) -> T:
        """Wait for the call in progress, then make this one and wait for its result.

        Raises:
            TimeoutError: If the time is used up; the call may still be in progress.
        """
        self._wait()
        self.begin(action)
        result: T = self._wait()
        return result

    def begin(self, action: Callable[[], object]) -> None:
        """Make a call in the background; only allowed while no other is in progress."""
        self._call, self._began = Future(), time.monotonic()
        Thread(target=_settle, args=(self._call, action), name="mlflow", daemon=True).start()

    def is_idle(self) -> bool:
        """Return whether the last call has ended; if it raised an error, raise that error.

        Raises:
            TimeoutError: If it has taken longer than the patience.
        """
        if self._call.done():
            self._call.result()
            return True
        if time.monotonic() - self._began > self._patience:
            raise self._too_slow()
        return False

    def _wait(self) -> Any:
        began = time.monotonic()
        wait([self._call], timeout=max(self._left, 0.0))
        self._left -= time.monotonic() - began
        # Checked separately, because the call itself may raise TimeoutError.
        if not self._call.done():
            raise self._too_slow()
        return self._call.result()

    def _too_slow(self) -> TimeoutError:
        return TimeoutError(f"it kept the run waiting for {self._patience:g} s")


def _settle(call: "Future[Any]", action: Callable[[], object]) -> None:
    try:
        call.set_result(action())
    # catch all errors: the waiting thread raises them again
    except BaseException as error:
        call.set_exception(error)


class MlflowTracker:
    """Writes every record to the run's folder first and copies it to MLflow.

    An error of MLflow never stops a run: it is logged once, MLflow is not contacted again, and the
    records stay in the folder, from which `emea sync` imports them. Metrics are sent in the
    background; only the start and the end of a run wait for MLflow.

    Args:
        uri: The store's address; a relative sqlite path counts from the working directory.
        artifact_root: The folder for the files of new experiments.
        max_artifact_mb: Files larger than this stay in the run's folder only.
        flush_seconds: Metrics are gathered for this long, because a call costs milliseconds.
        patience_seconds: The total time that a run waits for MLflow.
    """

    def __init__(
        self,
        uri: str = DEFAULT_URI,
        artifact_root: str = DEFAULT_ARTIFACT_ROOT,
        max_artifact_mb: float = 200.0,
        flush_seconds: float = 5.0,
        patience_seconds: float = 60.0,
    ) -> None:
        self._store = MlflowStore(uri, artifact_root, max_artifact_mb)
        self._calls = BoundedCalls(patience_seconds)
        self._has_failed = False
        self._flush_seconds = flush_seconds
        self._record: RunRecord | None = None
        # None while no run is open in MLflow, and permanently after MLflow has failed.
        self._mlflow_run: str | None = None
        self._waiting: list[MetricPoint] = []
        self._last_flush = 0.0

    @property
    def ui_hint(self) -> str | None:
        """The command that opens the MLflow UI; ``None`` if the store failed."""
        if self._has_failed:
            return None
        uri = self._store.uri
        if sqlite_path(uri) is None:
            return f"open {shown_uri(uri)}" if uri.startswith("http") else None
        # the make target exists only in the project folder and opens the default store
        in_project = Path.cwd() == PROJECT and Path("Makefile").exists()
        if uri == absolute_uri(DEFAULT_URI) and in_project:
            return "make ui"
        return f"emea ui --uri {quote(uri)}"

    def recorded(self, fingerprint: str) -> str | None:
        """Return a finished run of the store; ``None`` if the store does not answer."""
        question = partial(self._store.find_finished, FINGERPRINT_TAG, fingerprint)
        try:
            found = self._ask(question)
        except Exception as error:  # errors of the store must not stop the run
            self._give_up("cannot be searched", error, "the run's folder", "FOLDER")
            return None
        return f"{found.info.run_name} ({found.info.run_id})" if found else None

    def start(self, header: RunHeader, folder: Path) -> None:
        """Write the header into the folder and open the MLflow run."""
        record = RunRecord(folder)
        record.start(header)
        self._record, self._mlflow_run = record, None
        # not empty if the run was resumed: the new MLflow run gets all points
        self._waiting = read_series(folder)
        self._last_flush = time.monotonic()

        def open_run() -> None:
            self._mlflow_run = self._ask(partial(self._store.create_run, header, record.folder))

        # MLflow failed before the run started
        if not self._has_failed:
            self._attempt(open_run, record.folder)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Append metrics to the folder's series; they reach MLflow some seconds later."""
        if self._record is None:
            raise RuntimeError("log() needs a run that was started and not yet finished.")
        point = self._record.log(metrics, step)
        run = self._mlflow_run
        if run is None:
            return
        self._waiting.append(point)
        if time.monotonic() - self._last_flush >= self._flush_seconds:
            self._attempt(lambda: self._flush(run), self._record.folder)

    def finish(self, status: str, reason: str = "") -> None:
        """Write how the run ended and copy the folder's files to MLflow."""
        if self._record is None:
            return
        record, run, points = self._record, self._mlflow_run, self._waiting
        closing = record.close(status, reason)
        self._record = self._mlflow_run = None
        if run is None:
            return

        def close_run() -> None:
            self._store.log_points(run, points)
            self._store.finish_run(run, record.folder, closing, complete=True)

        self._attempt(lambda: self._ask(close_run), record.folder)

    def finish_sweep(self, experiment: str, sweep: str, folder: Path, status: str) -> None:
        """Close the parent run of a sweep with its summary."""
        if not self._has_failed:
            work = partial(self._store.finish_sweep, experiment, sweep, folder, status)
            self._attempt(lambda: self._ask(work), folder)

    def _ask(self, action: Callable[[], T]) -> T:
        # import before the clock starts, because it takes seconds
        load_mlflow()
        return self._calls.do(action)

    def _flush(self, run: str) -> None:
        # one batch at a time: while the store is slow, the next batch grows
        if self._calls.is_idle():
            points, self._waiting = self._waiting, []
            self._calls.begin(partial(self._store.log_points, run, points))
            self._last_flush = time.monotonic()

    def _attempt(self, action: Callable[[], None], folder: Path) -> None:
        """Make a call; if it fails, log the error once and stop contacting MLflow in this run."""
        try:
            action()
        # all errors, because a full disk, a locked file or a missing package must not stop the run
        except Exception as error:
            self._mlflow_run = None
            self._waiting = []
            self._give_up("failed", error, folder, folder)

    def _give_up(self, trouble: str, error: Exception, place: object, folder: object) -> None:
        self._has_failed = True
        self._store.leave()
        logger.warning(
            "MLflow at %s %s (%s). The records stay in %s; `emea sync %s%s` imports them later.",
            shown_uri(self._store.uri),
            trouble,
            without_login(_first_line(error), self._store.uri),
            place,
            quote(str(folder)),
            self._uri_option(),
        )

    def _uri_option(self) -> str:
        uri = self._store.uri
        return "" if uri == absolute_uri(DEFAULT_URI) else f" --uri {quote(shown_uri(uri))}"


def _first_line(error: Exception) -> str:
    # SQLAlchemy's message may start with advice to programmers; use the database's own error.
    error = getattr(error.__cause__, "orig", None) or error
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
