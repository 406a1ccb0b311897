"""Folders that cannot be written are refused in a sentence, before anything is loaded."""

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from emea.config.paths import check_modules, check_writable
from emea.errors import ConfigError, DataError, UserError
from emea.run.resuming import locked_folder

from ..sweeping import called_here


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a_file"
    path.touch()
    return path


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_without_permission_is_refused(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "mkdir", refused)
    with pytest.raises(DataError, match=f"{tmp_path}: {os.strerror(code)}"):
        check_writable(tmp_path / "new" / "run")
    sentence = f"cannot be written: {os.strerror(code)}"
    with pytest.raises(UserError, match=sentence), locked_folder(tmp_path / "new"):
        pass


def test_a_run_cannot_be_held_below_a_file(file: Path) -> None:
    for folder in (file, file / "run"):
        with pytest.raises(UserError, match="cannot be written"), locked_folder(folder):
            pass


@pytest.mark.parametrize("flags", [[], ["-m", "seed=1,2"]])
def test_the_command_ends_with_one_sentence(flags: list[str], file: Path) -> None:
    key = "hydra.sweep.dir" if flags else "hydra.run.dir"
    done = called_here(file.parent, *flags, f"{key}={file}/run")
    assert done.returncode == 1
    assert (
        done.stderr.startswith("error: The run folder") and done.stderr.count("\n") == 1
    )


def test_an_error_of_hydra_ends_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "outputs").touch()
    done = called_here(tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: The run folder cannot be created: ")
    assert done.stderr.endswith(
        "Choose another with hydra.run.dir=FOLDER or, in a sweep, hydra.sweep.dir=FOLDER.\n"
    )
    done = called_here(tmp_path, "hydra/launcher=nobody")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert (
        "Could not find 'hydra/launcher/nobody'. Install it: docs/sweeps.md"
        in done.stderr
    )


@pytest.mark.parametrize(
    "trust", [["not_there"], ["os", "not_there.inside"], [".a"], [""]]
)
def test_a_missing_module_is_reported(trust: list[str]) -> None:
    with pytest.raises(ConfigError, match=f"trust names {trust[-1]}, .* PYTHONPATH"):
        check_modules(trust)


def test_modules_are_found_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_written.py").write_text("def\n")
    monkeypatch.syspath_prepend(tmp_path)
    check_modules(["half_written", "os.path", "__main__"])


@pytest.mark.parametrize("arguments", [["seed=1"], ["-m", "seed=1,2"], ["resume=."]])
def test_a_missing_module_is_reported_before_the_data_are_read(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> NoReturn:
        raise AssertionError("the data were read")

    monkeypatch.setattr("emea.cli.run.load_pair", read)
    done = called_here(tmp_path, *arguments, "trust=[not_there]")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: trust names not_there, but Python does not find it."
    )
    assert not list(tmp_path.iterdir())
