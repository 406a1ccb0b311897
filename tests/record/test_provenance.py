"""Where a run came from."""

import os
import subprocess
from pathlib import Path

import pytest

from emea.record import provenance as module
from emea.record.provenance import provenance


@pytest.fixture(autouse=True)
def _no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMEA_COMMIT", raising=False)
    monkeypatch.delenv("EMEA_DIRTY", raising=False)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    monkeypatch.setattr(module, "_repository_root", lambda: tmp_path.resolve())
    return tmp_path


def test_commit_and_dirt(repository: Path) -> None:
    found = provenance()
    assert found["commit"] == git(repository, "rev-parse", "HEAD")
    assert found["dirty"] == "false"
    (repository / "alignment").mkdir()
    (repository / "alignment" / "run.json").write_text("{}")
    assert (
        provenance()["dirty"] == "false"
    )  # the result of a run does not change the code
    (repository / "emea").mkdir()
    (repository / "emea" / "new.py").write_text("1")
    assert provenance()["dirty"] == "true"


def test_overrides(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMEA_COMMIT", "abc")
    assert (provenance()["commit"], provenance()["dirty"]) == ("abc", "unknown")
    monkeypatch.setenv("EMEA_DIRTY", "True")
    assert (provenance()["commit"], provenance()["dirty"]) == ("abc", "true")


def test_somebody_elses_repository_says_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = repository / "site-packages"
    inner.mkdir()
    monkeypatch.setattr(module, "_repository_root", lambda: inner.resolve())
    assert (provenance()["commit"], provenance()["dirty"]) == ("unknown", "unknown")


def test_no_git_at_all(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert (provenance()["commit"], provenance()["dirty"]) == ("unknown", "unknown")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_counts_the_cpus_that_a_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert provenance()["cpu_count"] == "1"
    finally:
        os.sched_setaffinity(0, allowed)
    assert provenance()["cpu_count"] == str(len(allowed))
