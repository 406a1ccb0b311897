"""Addresses of stores, and their logins, which no file of a run contains."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from emea.record.store_uri import (
    absolute_uri,
    artifact_location,
    clean_hydra_files,
    shown_uri,
    sqlite_path,
    without_login,
)

from ..sweeping import TINY, called_here

STORE = "tracking.uri=http://bob:hunter2@127.0.0.1:9"  # no server listens there
QUICK = ("model=lightea", "em=none", "rule=none", "em.iterations=0", "tracking.patience_seconds=1")


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
    assert absolute_uri("sqlite:///m.db?timeout=5") == f"sqlite:///{tmp_path}/m.db?timeout=5"
    assert absolute_uri("http://host") == "http://host"
    assert artifact_location("sqlite:///m.db", "a b") == (tmp_path / "a b").as_uri()
    assert artifact_location("sqlite:///m.db", "s3://bucket/x") == "s3://bucket/x"
    assert artifact_location("http://host:5000", "mlruns") is None, "the server chooses it"


def test_an_address_without_login_is_unchanged() -> None:
    for uri in ("sqlite:////srv/a@b.db", "http://host:5000/a@b"):
        assert shown_uri(uri) == uri


@pytest.mark.parametrize("password", ["p w", "p/w", "p#w", "p?w", "p'w", "p:w", "p/1:2#"])
def test_passwords_are_not_shown(password: str) -> None:
    uri = f"postgresql://me:{password}@host:5432/db"
    assert shown_uri(uri) == "postgresql://host:5432/db"
    assert without_login(f"no {uri}", uri) == "no postgresql://host:5432/db"


def test_a_login_of_the_command_line_is_not_in_the_folder(tmp_path: Path) -> None:
    settings = [one for one in TINY if not one.startswith(("model.", "em."))]
    done = called_here(tmp_path, *settings, *QUICK, STORE, "hydra.run.dir=run")
    assert done.returncode == 0, done.stderr
    found = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert {"overrides.yaml", "hydra.yaml", "metrics.json"} <= {file.name for file in found}
    assert not [file for file in found if b"hunter2" in file.read_bytes()]
    typed = OmegaConf.load(tmp_path / "run" / ".hydra" / "overrides.yaml")
    assert "tracking.uri=http://127.0.0.1:9" in typed


@pytest.mark.parametrize(
    ("uri", "typed", "left"),
    [
        ("http://me:p,w@host", r"tracking.uri=http://me:p\,w@host", "tracking.uri=http://host"),
        ("http://me:p'w@host/a@b", "x='http://me:p''w@host/a@b'", "x='http://host/a@b'"),
        ("http://me:p w@host", "'x=http://me:p w@host'", "'x=http://host'"),
        ("db://me:p#'w@host", "'x=db://me:p#''w@host'", "'x=db://host'"),
        ("http://host", "data.links=http://me@other", "data.links=http://me@other"),
        ("sqlite:///mlflow.db", "x=sqlite:///a@b", "x=sqlite:///a@b"),
    ],
)
def test_a_login_is_removed_in_any_quotes(uri: str, typed: str, left: str, tmp_path: Path) -> None:
    of_job = tmp_path / "run" / ".hydra" / "overrides.yaml"
    of_job.parent.mkdir(parents=True)
    files = (of_job, tmp_path / "multirun.yaml")
    for file in files:
        file.write_text(f"- {typed}\n- seed=1\n")
    folders = {"runtime": {"output_dir": str(tmp_path / "run")}, "sweep": {"dir": str(tmp_path)}}
    hydra = OmegaConf.create({**folders, "output_subdir": ".hydra"})
    clean_hydra_files(OmegaConf.create({"tracking": {"uri": uri}}), hydra)
    for file in files:
        assert file.read_text() == f"- {left}\n- seed=1\n"
