"""What Hydra writes down of a command: no login."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from emea.record.secrets import clean_hydra_files

from ..sweeping import ROOT, TINY, called, called_here

STORE = "tracking.uri=http://bob:hunter2@127.0.0.1:9"  # where nobody listens
QUICK = ("model=lightea", "em=none", "rule=none", "em.iterations=0", "tracking.patience_seconds=1")


def written(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_login_of_the_command_line_is_nowhere_in_the_folder(tmp_path: Path) -> None:
    settings = [one for one in TINY if not one.startswith(("model.", "em."))]
    done = called_here(tmp_path, *settings, *QUICK, STORE, "hydra.run.dir=run")
    assert done.returncode == 0, done.stderr
    found = written(tmp_path / "run")
    assert {"overrides.yaml", "hydra.yaml", "metrics.json"} <= {file.name for file in found}
    assert not [file for file, content in found.items() if b"hunter2" in content]
    composed = OmegaConf.load(tmp_path / "run" / ".hydra" / "config.yaml")
    assert composed.tracking.uri == "http://127.0.0.1:9"
    typed = OmegaConf.load(tmp_path / "run" / ".hydra" / "overrides.yaml")
    assert "tracking.uri=http://127.0.0.1:9" in typed


@pytest.mark.slow
def test_nor_in_that_of_a_sweep(tmp_path: Path) -> None:
    settings = [one for one in TINY if not one.startswith(("model.", "em."))]
    done = called(tmp_path, str(ROOT / "run.py"), "-m", *settings, *QUICK, STORE, "seed=0,1")
    assert done.returncode == 0, done.stderr
    found = written(tmp_path / "multirun")
    assert {"multirun.yaml", "overrides.yaml", "metrics.json"} <= {file.name for file in found}
    assert not [file for file, content in found.items() if b"hunter2" in content]
    (file,) = (tmp_path / "multirun").rglob("multirun.yaml")
    assert "tracking.uri=http://127.0.0.1:9" in OmegaConf.load(file).hydra.overrides.task


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
def test_a_login_is_known_in_any_quotes(uri: str, typed: str, left: str, tmp_path: Path) -> None:
    file = tmp_path / "run" / ".hydra" / "overrides.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"- {typed}\n- seed=1\n")
    folders = {"runtime": {"output_dir": str(tmp_path / "run")}, "sweep": {"dir": str(tmp_path)}}
    hydra = OmegaConf.create({**folders, "output_subdir": ".hydra"})
    clean_hydra_files(OmegaConf.create({"tracking": {"uri": uri}}), hydra)
    assert file.read_text() == f"- {left}\n- seed=1\n"
