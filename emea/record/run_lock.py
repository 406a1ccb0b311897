"""The lock of a run folder, by which a running run differs from an interrupted one."""

from pathlib import Path

LOCK_FILE = ".running"
"""The lock that a process holds while it works in a run's folder."""


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock."""
    from filelock import FileLock, Timeout  # not needed by commands that only read records

    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
