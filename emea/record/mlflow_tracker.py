"""Tracks a run in MLflow while it runs; a failing store does not stop the run."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from shlex import quote
from threading import Thread
from typing import TypeVar

from emea.config.settings.execution import DEFAULT_STORE
from emea.record.mlflow_store import MlflowStore, load_mlflow
from emea.record.run_record import MetricPoint, RunClosing, RunHeader, read_series
from emea.record.store_uri import absolute_uri, shown_uri, sqlite_path, without_login
from emea.record.tracker import Tracker

logger = logging.getLogger(__name__)

T = TypeVar("T")


class BoundedCalls:
    """Makes calls in threads that do not keep the process alive.

    MLflow's own timeouts do not limit a call: it retries, sleeps as long as a server asks it to,
    accepts any byte as a sign of life, and waits for locks without a limit.

    Args:
        patience: Seconds that may be spent waiting, over all calls together.
    """

    def __init__(self, patience: float) -> None:
        self._patience = self._left = patience

    def do(self, action: Callable[[], T]) -> T:
        """Make a call and wait for its result.

        Raises:
            TimeoutError: If the time is used up; the call may still be in progress.
        """
        call, began = Future[T](), time.monotonic()

        def make() -> None:
            try:
                call.set_result(action())
            # all errors: the waiting thread raises them again
            except BaseException as error:
                call.set_exception(error)

        Thread(target=make, name="mlflow", daemon=True).start()
        wait([call], timeout=max(self._left, 0.0))
        self._left -= time.monotonic() - began
        # Checked separately, because the call itself may raise TimeoutError.
        if not call.done():
            raise TimeoutError(f"it kept the run waiting for {self._patience:g} s")
        return call.result()


class MlflowTracker(Tracker):
    """Writes every record to the run's folder first and copies it to MLflow.

    An error of MLflow never stops a run: it is logged once, MLflow is not contacted again, and the
    records stay in the folder, from which `emea sync` imports them.

    Args:
        uri: The store's address; a relative sqlite path counts from the working directory.
        artifact_root: The folder for the files of new experiments.
    """

    flush_seconds = 5.0
    """Metrics are gathered for this long, because a call costs milliseconds."""

    patience_seconds = 60.0
    """The total time that a run waits for MLflow."""

    def __init__(self, *, uri: str, artifact_root: str) -> None:
        super().__init__()
        self._store = MlflowStore(uri, artifact_root)
        self._calls = BoundedCalls(self.patience_seconds)
        self._has_failed = False
        self._mlflow_run: str | None = None
        self._waiting: list[MetricPoint] = []
        self._last_flush = 0.0

    @property
    def ui_hint(self) -> str | None:
        """The command that opens the MLflow UI; ``None`` if the store failed."""
        uri = self._store.uri
        if self._has_failed:
            return None
        if sqlite_path(uri) is None:
            return f"open {shown_uri(uri)}" if uri.startswith("http") else None
        return f"emea ui{self._uri_option()}"

    def start(self, header: RunHeader, folder: Path) -> None:
        """Write the header into the folder and open the MLflow run."""
        super().start(header, folder)
        # not empty if the run was resumed: the new MLflow run gets all points
        self._waiting = read_series(folder)
        self._last_flush = time.monotonic()
        self._mlflow_run = self._attempt(partial(self._store.create_run, header), folder)

    def log(self, metrics: Mapping[str, float], step: int) -> MetricPoint:
        """Append metrics to the folder's series; they reach MLflow some seconds later."""
        point = super().log(metrics, step)
        run = self._mlflow_run
        if run is None or self._folder is None:
            return point
        self._waiting.append(point)
        if time.monotonic() - self._last_flush >= self.flush_seconds:
            points, self._waiting, self._last_flush = self._waiting, [], time.monotonic()
            self._attempt(lambda: self._store.log_points(run, points), self._folder)
        return point

    def finish(self, status: str, reason: str = "") -> RunClosing | None:
        """Write how the run ended and copy the folder's files to MLflow."""
        folder, run, points = self._folder, self._mlflow_run, self._waiting
        closing = super().finish(status, reason)
        self._mlflow_run, self._waiting = None, []
        if folder is None or closing is None or run is None:
            return closing

        def close_run() -> None:
            self._store.log_points(run, points)
            self._store.finish_run(run, folder, closing)

        self._attempt(close_run, folder)
        return closing

    def _attempt(self, action: Callable[[], T], folder: Path) -> T | None:
        """Make a call; if it fails, log the error once and stop contacting MLflow.

        The result is ``None`` if this call failed, or another one before it. `emea sync` can import
        the folder later.
        """
        if self._has_failed:
            return None
        try:
            load_mlflow()  # before the clock starts, because it takes seconds
            return self._calls.do(action)
        # all errors, because a full disk, a locked file or a missing package must not stop the run
        except Exception as error:
            self._has_failed, self._mlflow_run, self._waiting = True, None, []
            # SQLAlchemy's message may start with advice to programmers; the database's does not
            error = getattr(error.__cause__, "orig", None) or error
            reason = str(error).strip().partition("\n")[0]
            logger.warning(
                "MLflow at %s failed (%s). The records stay in the run folder; `emea sync %s%s` "
                "imports them later.",
                shown_uri(self._store.uri),
                without_login(f"{type(error).__name__}: {reason}", self._store.uri),
                quote(str(folder)),
                self._uri_option(),
            )
            return None

    def _uri_option(self) -> str:
        uri = self._store.uri
        return "" if uri == absolute_uri(DEFAULT_STORE) else f" --uri {quote(shown_uri(uri))}"
