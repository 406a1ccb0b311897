"""Folders that cannot be written are refused in a sentence, before anything is loaded."""

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from emea.config.paths import check_modules, check_run_folder
from emea.errors import ConfigError, DataError, UserError
from emea.run.resuming import locked_folder

from ..sweeping import called_here


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a_file"
    path.touch()
    return path


@pytest.mark.parametrize("below", ["", "/run", "/deep/run", "/${now:%Y}/run"])
@pytest.mark.parametrize(
    ("flags", "key"), [([], "hydra.run.dir"), (["-m"], "hydra.sweep.dir"), ([], "+hydra.run.dir")]
)
def test_a_file_in_the_path_is_refused(flags: list[str], key: str, below: str, file: Path) -> None:
    plain = key.lstrip("+")
    with pytest.raises(DataError, match=rf"{file} is not a folder. Choose .* {plain}=FOLDER"):
        check_run_folder([*flags, f"{key}={file}{below}", "data=zh"])


@pytest.mark.parametrize(("flags", "folder"), [([], "outputs"), (["-m"], "multirun")])
def test_the_default_folder_is_checked(
    flags: list[str], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_run_folder(flags)
    assert not list(tmp_path.iterdir())  # nothing is left behind
    Path(folder).touch()
    with pytest.raises(DataError, match=f"The run folder {folder} cannot be created"):
        check_run_folder(flags)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_without_permission_is_refused(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "mkdir", refused)
    with pytest.raises(DataError, match=f"{tmp_path}: {os.strerror(code)}. Choose another"):
        check_run_folder([f"hydra.run.dir={tmp_path}/new/run"])
    with pytest.raises(DataError, match="Resume a copy of it"):
        check_run_folder([f"resume={tmp_path}"])
    sentence = f"cannot be written: {os.strerror(code)}"
    with pytest.raises(UserError, match=sentence), locked_folder(tmp_path / "new"):
        pass


def test_good_folders_pass(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "new" / "run", f"'{tmp_path}/quoted'"):
        check_run_folder([f"hydra.run.dir={folder}"])
    check_run_folder(["resume=nowhere"])  # refused where the run is read
    assert not list(tmp_path.iterdir())


def test_a_run_cannot_be_held_below_a_file(file: Path) -> None:
    for folder in (file, file / "run"):
        with pytest.raises(UserError, match="cannot be written"), locked_folder(folder):
            pass


def test_the_command_ends_with_one_sentence(file: Path) -> None:
    done = called_here(file.parent, f"hydra.run.dir={file}/run")
    assert done.returncode == 1
    assert done.stderr.startswith("error: The run folder") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("trust", [["not_there"], ["os", "not_there.inside"], [".a"], [""]])
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
    assert done.stderr.startswith("error: trust names not_there, but Python does not find it.")
    assert not list(tmp_path.iterdir())
