"""One process at a time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_SECONDS = 0.05


@contextmanager
def file_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold an exclusive lock on a file; it falls with the process, however that ends.

    Args:
        path: The lock file, created where missing and left behind.
        timeout: Seconds to wait for another holder.

    Raises:
        TimeoutError: If the lock did not become free in time.
    """
    try:
        import fcntl
    except ImportError:  # Windows: nothing to lock with, so go on without.
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout
    with open(path, "a", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{path} stayed locked for {timeout:.0f} s") from error
                time.sleep(POLL_SECONDS)
        # Closing the file releases the lock.
        yield


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock at this moment."""
    if not path.exists():
        return False
    try:
        with file_lock(path, timeout=0.0):
            return False
    except TimeoutError:
        return True
