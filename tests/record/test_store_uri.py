"""Addresses of stores."""

from pathlib import Path

import pytest

from emea.record.store_uri import (
    absolute_uri,
    artifact_location,
    shown_uri,
    sqlite_path,
    without_login,
)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("sqlite:///mlflow.db", Path("mlflow.db")),
        ("sqlite:////srv/a.db?timeout=5", Path("/srv/a.db")),
        ("sqlite:///:memory:", None),
        ("sqlite://", None),
        ("http://host:5000", None),
    ],
)
def test_sqlite_path(uri: str, path: Path | None) -> None:
    assert sqlite_path(uri) == path


def test_relative_paths_count_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_uri("sqlite:///m.db?timeout=5") == f"sqlite:///{tmp_path}/m.db?timeout=5"
    assert absolute_uri("http://host") == "http://host"
    assert artifact_location("sqlite:///m.db", "a b") == (tmp_path / "a b").as_uri()


def test_a_server_chooses_its_own_artifact_root() -> None:
    assert artifact_location("http://host:5000", "mlruns") is None
    assert artifact_location("sqlite:///m.db", "s3://bucket/x") == "s3://bucket/x"


def test_passwords_are_not_shown() -> None:
    assert shown_uri("https://me:secret@host:5000/x") == "https://host:5000/x"
    assert shown_uri("sqlite:////srv/a@b.db") == "sqlite:////srv/a@b.db"
    assert shown_uri("http://host:5000/a@b") == "http://host:5000/a@b"


@pytest.mark.parametrize("password", ["p w", "p/w", "p#w", "p?w", "p'w", "p:w", "p/1:2#"])
def test_a_password_may_have_any_sign(password: str) -> None:
    uri = f"postgresql://me:{password}@host:5432/db"
    assert shown_uri(uri) == "postgresql://host:5432/db"
    assert without_login(f"no {uri}", uri) == "no postgresql://host:5432/db"


def test_passwords_leave_errors() -> None:
    error = "no answer from http://me:pw@host:5000/api"
    assert without_login(error, "http://me:pw@host:5000") == "no answer from http://host:5000/api"
    assert without_login(error, "sqlite:///mlflow.db") == error
