"""Writing of files in a thread, while the run continues."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

logger = logging.getLogger(__name__)


class BackgroundWriter:
    """Runs one write at a time in a thread.

    An error of a write is raised by the next call. At the end of the context, the last write is
    finished even if an error ended the context; an error of the write is then logged.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> "BackgroundWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._threads.shutdown()
        if error is None:
            self.wait()
        elif self._pending is not None and (failure := self._pending.exception()):
            logger.warning("The last write failed, too: %s", failure)

    def write(self, work: Callable[[], None]) -> None:
        """Start a write after the previous one has ended.

        Args:
            work: Writes the files. What it reads must not change until then.
        """
        self.wait()
        self._pending = self._threads.submit(work)

    def wait(self) -> None:
        """Wait for the last write, and raise its error."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
