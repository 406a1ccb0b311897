"""What commands may write, and what they refuse to replace."""

import errno
import os
from pathlib import Path

import pytest

from emea.errors import DataError, UserError
from emea.record import outputs
from emea.record.outputs import (
    DECISIONS,
    MARKS,
    MERGED,
    PAGE,
    check_file,
    locked_file,
    locked_results,
)
from emea.results.page import html_document

NAMES = ("alignment.tsv", "prediction.json")


def test_devices_pipes_links_and_folders_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder").mkdir()
    for place, message in (
        ("/dev/null", "device"),
        (tmp_path / "pipe", "is a pipe"),
        (tmp_path / "link", "symbolic link"),
        (tmp_path / "folder", "is a folder"),
        (tmp_path / ("n" * 300), "cannot be written"),
        (tmp_path / "a\0b", "cannot be written"),
    ):
        for force in (False, True):
            with pytest.raises(DataError, match=message):
                check_file(Path(place), force)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("record", ["run.json", "division.json", "entities.npz"])
@pytest.mark.parametrize(
    "name",
    [
        "config.yaml",
        "alignment.tsv",
        "pair.npz",
        ".running",
        ".hydra/x",
        "a.safetensors",
    ],
)
def test_files_of_runs_and_divisions_are_not_replaced(
    record: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / record).write_text("{}")
    (tmp_path / ".hydra").mkdir()
    with pytest.raises(DataError, match="belongs to a run or a division"):
        check_file(tmp_path / name, force=True)
    check_file(tmp_path / "merged.nt")


def test_files_of_the_user_are_only_replaced_by_force(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(DataError, match=r"exists and was not written by emea.*--force"):
        check_file(path)
    check_file(path, force=True)
    check_file(path, is_default=True)
    path.write_text(html_document("t", "b", "s"))
    check_file(path, kind=PAGE)
    path.write_text("# Merged by emea: both\n")
    check_file(path, kind=MERGED)


def test_a_command_replaces_its_own_kind_of_file_only(tmp_path: Path) -> None:
    path = tmp_path / "decisions.tsv"
    path.write_text("source\ttarget\tdecision\tauthor\tdate\na\tb\trejected\tme\t\n")
    check_file(path, kind=DECISIONS)
    for kind in {*MARKS, ""} - {DECISIONS}:
        with pytest.raises(DataError, match="was not written by emea"):
            check_file(path, kind=kind)


def test_a_file_that_cannot_be_read_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_text("x")

    def failing(_: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(outputs, "open_regular", failing)
    with pytest.raises(DataError, match=r"page\.html cannot be written: Input/output"):
        check_file(path, kind=PAGE)


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/mem"])
def test_files_of_the_system_are_devices(place: str) -> None:
    with pytest.raises(DataError, match="is a pipe, socket or device"):
        check_file(Path(place), kind=PAGE)


def test_what_a_killed_command_left_is_removed(tmp_path: Path) -> None:
    digits = "0123456789abcdef"
    for name in (f".m.nt.{digits}.tmp", f".other.nt.{digits}.tmp", ".m.nt.mine.tmp"):
        (tmp_path / name).touch()
    with locked_file(tmp_path / "m.nt"):
        pass
    assert sorted(os.listdir(tmp_path)) == [".m.nt.mine.tmp", f".other.nt.{digits}.tmp"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_command_can_be_repeated(
    error: type[BaseException], tmp_path: Path
) -> None:
    with pytest.raises(error), locked_results(tmp_path / "p", NAMES[1], NAMES):
        (tmp_path / "p" / NAMES[0]).write_text("half")
        raise error
    with locked_results(tmp_path / "p", NAMES[1], NAMES):
        (tmp_path / "p" / NAMES[1]).write_text("{}")
    assert sorted(os.listdir(tmp_path / "p")) == sorted(NAMES)
    # files of the user, which were replaced by force, are not left to the next command
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / NAMES[0]).write_text("mine")
    with pytest.raises(error), locked_results(tmp_path / "q", NAMES[1], NAMES, True):
        raise error
    with (
        pytest.raises(DataError, match="was not written by emea"),
        locked_results(tmp_path / "q", NAMES[1], NAMES),
    ):
        pass


def test_two_commands_do_not_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    with locked_file(path):
        with pytest.raises(UserError, match=r"page\.html is in use"), locked_file(path):
            pass
        with locked_file(path.with_name("other.html")):
            pass
        path.write_text("x")
    assert os.listdir(path.parent) == [path.name]
    (path.parent / f".{path.name}.lock").touch()  # a killed command leaves it
    with locked_file(path, force=True):
        pass
    assert os.listdir(path.parent) == [path.name]


def test_a_failure_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError), locked_file(tmp_path / "a" / "b" / "c.html"):
        raise ValueError
    with (
        pytest.raises(ValueError),
        locked_results(tmp_path / "d" / "e", *NAMES[1:], NAMES),
    ):
        raise ValueError
    assert os.listdir(tmp_path) == []


def test_a_folder_of_results_is_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for _ in range(2):
        with locked_results(folder, "prediction.json", NAMES):
            (folder / "alignment.tsv").write_text("x")
            (folder / "prediction.json").write_text("{}")
            with (
                pytest.raises(UserError, match="is in use"),
                locked_results(folder, "prediction.json", NAMES),
            ):
                pass
    (folder / "prediction.json").unlink()
    with (
        pytest.raises(DataError, match=r"alignment\.tsv exists and was not.*--force"),
        locked_results(folder, "prediction.json", NAMES),
    ):
        pass
    with locked_results(folder, "prediction.json", NAMES, force=True):
        pass
    (folder / ".running").touch()  # a killed command leaves it
    with locked_results(folder, "prediction.json", NAMES):
        pass


def test_a_folder_of_results_is_no_run_and_no_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    for name, message in (
        ("run", "belongs to a run"),
        ("link", "link"),
        ("file", "is a file"),
    ):
        with (
            pytest.raises(DataError, match=message),
            locked_results(tmp_path / name, "prediction.json", NAMES, force=True),
        ):
            pass
