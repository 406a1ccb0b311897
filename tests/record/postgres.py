"""A PostgreSQL cluster that lives as long as a test."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

USER = "postgres"


@contextmanager
def postgres_cluster() -> Iterator[str]:
    """The address of an empty database, reached through a socket in a private folder."""
    programs = _programs()
    # Not below pytest's own folder: that is closed to the user the cluster must belong to where
    # the tests are run by root, and its path is too long for a socket.
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        data, log = folder / "data", folder / "log"
        control = [str(programs / "pg_ctl"), "-D", str(data), "-w"]
        _run([str(programs / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-N"])
        settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -F"
        _run([*control, "-l", str(log), "-o", settings, "start"])
        try:
            yield f"postgresql+psycopg2://{USER}@/{USER}?host={folder}"
        finally:
            _run([*control, "-m", "immediate", "stop"])


def _programs() -> Path:
    """The folder of PostgreSQL's own programs; Debian keeps them off the path."""
    pytest.importorskip("psycopg2", reason="psycopg2 is not installed")
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    usable = [path for path in folders if (path / "initdb").exists() and (path / "pg_ctl").exists()]
    if not usable:
        pytest.skip("PostgreSQL is not installed")
    return usable[-1]


def _run(command: list[str]) -> None:
    done = subprocess.run(
        [*_as_other_user(), *command],
        cwd="/",
        # Not captured through pipes: the cluster inherits them and would keep them open.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}"


def _as_other_user() -> list[str]:
    """The cluster refuses to belong to root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("runuser") is None or not _exists(USER):
        pytest.skip(f"root cannot start PostgreSQL, and there is no runuser or no user {USER}")
    return ["runuser", "-u", USER, "--"]


def _exists(user: str) -> bool:
    import pwd

    return any(entry.pw_name == user for entry in pwd.getpwall())
