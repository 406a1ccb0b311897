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

from emea.record.mlflow_store import MlflowStore, load_mlflow
from emea.record.run_record import MetricPoint, RunClosing, RunHeader, read_series
from emea.record.settings import DEFAULT_STORE, MlflowSettings
from emea.record.store_uri import absolute_uri, shown_uri, sqlite_path, without_login
from emea.record.tracker import StoredRun, Tracker

logger = logging.getLogger(__name__)

T = TypeVar("T")


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
        self._call: Future[Any] = Future()
        self._call.set_result(None)

    def do(self, action: Callable[[], T]) -> T:
        """Wait for the call in progress, then make this one and wait for its result.

        Raises:
            TimeoutError: If the time is used up; a call may still be in progress.
        """
        self._wait()
        self.begin(action)
        result: T = self._wait()
        return result

    def begin(self, action: Callable[[], object]) -> None:
        """Make a call in the background; only allowed while no other is in progress."""
        self._call = Future()
        Thread(
            target=_settle, args=(self._call, action), name="mlflow", daemon=True
        ).start()

    def is_idle(self) -> bool:
        """Return whether no call is in progress; an error of the last one is raised here."""
        if not self._call.done():
            return False
        self._call.result()
        return True

    def _wait(self) -> Any:
        began = time.monotonic()
        wait([self._call], timeout=max(self._left, 0.0))
        self._left -= time.monotonic() - began
        # Checked separately, because the call itself may raise TimeoutError.
        if not self._call.done():
            raise TimeoutError(f"it kept the run waiting for {self._patience:g} s")
        return self._call.result()


def _settle(call: "Future[Any]", action: Callable[[], object]) -> None:
    """Make a call and keep its result, or its error, for the thread that waits for it."""
    try:
        call.set_result(action())
    # all errors: the waiting thread raises them again
    except BaseException as error:
        call.set_exception(error)


class MlflowTracker(Tracker):
    """Writes every record to the run's folder first and copies it to MLflow.

    An error of MLflow never stops a run: it is logged once, MLflow is not contacted again, and the
    records stay in the folder, from which `emea sync` imports them. Metrics are sent in the
    background; a run waits for MLflow only when it starts and when it ends.

    Args:
        uri: The store's address; a relative sqlite path counts from the working directory.
        artifact_root: The folder for the files of new experiments.
        patience_seconds: The total time that a run waits for MLflow.
    """

    flush_seconds = 5.0
    """Metrics are gathered for this long, because a call costs milliseconds."""

    def __init__(
        self,
        *,
        uri: str = DEFAULT_STORE,
        artifact_root: str = MlflowSettings.artifact_root,
        patience_seconds: float = MlflowSettings.patience_seconds,
    ) -> None:
        super().__init__()
        self._store = MlflowStore(uri, artifact_root)
        self._calls = BoundedCalls(patience_seconds)
        self._has_failed = False
        # None while no run is open in MLflow
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

    def recorded(self, fingerprint: str, folder: Path) -> StoredRun | None:
        """Return a finished run of the store; ``None`` if it has none or does not answer."""
        return self._attempt(
            self._asking(self._store.find_finished, fingerprint), folder
        )

    def start(self, header: RunHeader, folder: Path) -> None:
        """Write the header into the folder and open the MLflow run."""
        super().start(header, folder)
        # not empty if the run was resumed: the new MLflow run gets all points
        self._waiting = read_series(folder)
        self._last_flush = time.monotonic()
        self._mlflow_run = self._attempt(
            self._asking(self._store.create_run, header, folder), folder
        )

    def log(self, metrics: Mapping[str, float], step: int) -> MetricPoint:
        """Append metrics to the folder's series; they reach MLflow some seconds later."""
        point = super().log(metrics, step)
        run = self._mlflow_run
        if run is None or self._folder is None:
            return point
        self._waiting.append(point)
        if time.monotonic() - self._last_flush >= self.flush_seconds:
            self._attempt(partial(self._flush, run), self._folder)
        return point

    def finish(self, status: str, reason: str = "") -> RunClosing | None:
        """Write how the run ended and copy the folder's files to MLflow."""
        folder = self._folder
        run = self._mlflow_run
        points = self._waiting
        closing = super().finish(status, reason)
        self._mlflow_run = None
        self._waiting = []
        if folder is None or closing is None or run is None:
            return closing

        def close_run() -> None:
            self._store.log_points(run, points)
            self._store.finish_run(run, folder, closing)

        self._attempt(self._asking(close_run), folder)
        return closing

    def finish_sweep(self, study: str, sweep: str, folder: Path, status: str) -> None:
        """Close the parent run of a sweep with its summary."""
        work = self._asking(self._store.finish_sweep, study, sweep, folder, status)
        self._attempt(work, folder)

    def _asking(self, request: Callable[..., T], *arguments: object) -> Callable[[], T]:
        """Return a call that makes a request and waits for its result."""

        def ask() -> T:
            load_mlflow()  # before the clock starts, because it takes seconds
            return self._calls.do(partial(request, *arguments))

        return ask

    def _flush(self, run: str) -> None:
        """Send the metrics in the background, one batch at a time.

        While the store is slow, the next batch grows.
        """
        if self._calls.is_idle():
            points = self._waiting
            self._waiting = []
            self._calls.begin(partial(self._store.log_points, run, points))
            self._last_flush = time.monotonic()

    def _attempt(self, action: Callable[[], T], folder: Path) -> T | None:
        """Make a call; if it fails, log the error once and stop contacting MLflow.

        The result is ``None`` if this call failed, or another one before it. `emea sync` can import
        the folder later.
        """
        if self._has_failed:
            return None
        try:
            return action()
        # all errors, because a full disk, a locked file or a missing package must not stop the run
        except Exception as error:
            self._give_up(error, folder)
            return None

    def _give_up(self, error: Exception, folder: Path) -> None:
        """Stop contacting MLflow, and log why and how to import the records."""
        self._has_failed = True
        self._mlflow_run = None
        self._waiting = []
        self._store.leave()
        # SQLAlchemy's message may start with advice to programmers; the database's does not
        cause = getattr(error.__cause__, "orig", None) or error
        reason = str(cause).strip().partition("\n")[0]
        logger.warning(
            "MLflow at %s failed (%s). The records stay in the run folder; `emea sync %s%s` "
            "imports them later.",
            shown_uri(self._store.uri),
            without_login(f"{type(cause).__name__}: {reason}", self._store.uri),
            quote(str(folder)),
            self._uri_option(),
        )

    def _uri_option(self) -> str:
        uri = self._store.uri
        return (
            ""
            if uri == absolute_uri(DEFAULT_STORE)
            else f" --uri {quote(shown_uri(uri))}"
        )
