"""Addresses of stores, and their logins, which no file of a run contains."""

from pathlib import Path

import pytest

from emea.config.checks import check_config
from emea.config.composition import composed
from emea.errors import ConfigError
from emea.record.store_uri import (
    absolute_uri,
    artifact_location,
    shown_uri,
    sqlite_path,
    without_login,
)

from ..sweeping import TINY, called_here

STORE = "tracking.uri=http://bob:hunter2@127.0.0.1:9"  # no server listens there
QUICK = ("model=lightea", "em=none", "rule=none", "em.iterations=0")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("sqlite:///mlflow.db", Path("mlflow.db")),
        ("sqlite:////srv/a.db?timeout=5", Path("/srv/a.db")),
        ("sqlite:///:memory:", None),
        ("http://host:5000", None),
    ],
)
def test_sqlite_path(uri: str, path: Path | None) -> None:
    assert sqlite_path(uri) == path


def test_relative_paths_count_from_the_working_directory(tmp_path: Path) -> None:
    assert (
        absolute_uri("sqlite:///m.db?timeout=5")
        == f"sqlite:///{tmp_path}/m.db?timeout=5"
    )
    assert absolute_uri("http://host") == "http://host"
    assert artifact_location("sqlite:///m.db", "a b") == (tmp_path / "a b").as_uri()
    assert artifact_location("sqlite:///m.db", "s3://bucket/x") == "s3://bucket/x"
    assert artifact_location("http://host:5000", "mlruns") is None, (
        "the server chooses it"
    )


def test_an_address_without_login_is_unchanged() -> None:
    for uri in ("sqlite:////srv/a@b.db", "http://host:5000/a@b"):
        assert shown_uri(uri) == uri


@pytest.mark.parametrize(
    "password", ["p w", "p/w", "p#w", "p?w", "p'w", "p:w", "p/1:2#"]
)
def test_passwords_are_not_shown(password: str) -> None:
    uri = f"postgresql://me:{password}@host:5432/db"
    assert shown_uri(uri) == "postgresql://host:5432/db"
    assert without_login(f"no {uri}", uri) == "no postgresql://host:5432/db"


def test_a_login_on_the_command_line_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    done = called_here(tmp_path, STORE, "hydra.run.dir=run")
    assert done.returncode == 1
    assert "Set the variable MLFLOW_TRACKING_URI instead" in done.stderr
    assert "hunter2" not in done.stderr and not list(tmp_path.iterdir())


def test_a_login_of_the_environment_is_in_no_file(tmp_path: Path) -> None:
    settings = [
        one for one in TINY if not one.startswith(("model.", "em.", "tracking"))
    ]
    done = called_here(
        tmp_path,
        *(*settings, *QUICK, "tracking=mlflow", "hydra.run.dir=run"),
        MLFLOW_TRACKING_URI=STORE.partition("=")[2],
    )
    assert done.returncode == 0, done.stderr
    found = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert {"overrides.yaml", "hydra.yaml", "metrics.json"} <= {
        file.name for file in found
    }
    assert not [file for file in found if b"hunter2" in file.read_bytes()]
    assert b"uri: http://127.0.0.1:9" in (tmp_path / "run" / "config.yaml").read_bytes()


def test_addresses_without_a_login_and_variables_are_accepted() -> None:
    for uri in (
        "sqlite:////srv/a@b.db",
        "http://host:5000",
        "${oc.env:X,http://a:b@c}",
    ):
        config = composed(["tracking=mlflow"])
        config.tracking.uri = uri
        check_config(config)
    config.tracking.uri = "postgresql://me:pw@host/db"
    with pytest.raises(ConfigError, match=r"must not contain a user or password"):
        check_config(config)
