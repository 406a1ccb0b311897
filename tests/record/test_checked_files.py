"""Files are replaced whole."""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emea.errors import UserError
from emea.record import checked_files as atomic
from emea.record.checked_files import (
    BackgroundWriter,
    open_atomic,
    read_checked_arrays,
    remove_leftovers,
    write_atomic,
    write_checked_arrays,
    write_lines,
)
from emea.record.run_folder import (
    read_config,
    read_metrics,
    read_ranks,
)
from emea.record.run_record import read_run_file

from ..unsigned_files import replace_in, unsigned
from ..written_runs import write_run_folder


@pytest.mark.parametrize(
    "content",
    ["naïve\n", b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff"), b""],
)
def test_content_arrives_and_nothing_else_stays(
    tmp_path: Path, content: str | bytes | bytearray | memoryview
) -> None:
    path = tmp_path / "new" / "file"
    write_atomic(path, "old")
    write_atomic(path, content)
    expected = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == expected
    assert os.listdir(path.parent) == ["file"]


def test_chunks_are_written_in_their_order(tmp_path: Path) -> None:
    numbers = memoryview(np.arange(3, dtype=np.uint16).reshape(3, 1))
    chunks = [b"ab", bytearray(b"c"), memoryview(b"de"), numbers, b""]
    for content in (chunks, tuple(chunks), iter(chunks)):
        write_atomic(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == b"abcde" + np.arange(
            3, dtype=np.uint16
        ).tobytes()


def test_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomic(path, "old")

    def fail(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(atomic.os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_lines_that_break_off_leave_the_old_file(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    write_lines(tmp_path / "file", ["ä", ""])
    with pytest.raises(KeyboardInterrupt):
        write_lines(tmp_path / "file", lines())
    assert (tmp_path / "file").read_text("utf-8") == "ä\n\n"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("num_lines", [0, 1, 3, 4, 7])
def test_lines_are_written_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_lines: int
) -> None:
    monkeypatch.setattr(atomic, "LINES_PER_BLOCK", 3)
    lines = [f"line {number} ä" for number in range(num_lines)]
    write_lines(tmp_path / "file", iter(lines))
    assert (tmp_path / "file").read_text("utf-8") == "".join(
        f"{line}\n" for line in lines
    )


def test_permissions_are_those_of_a_plain_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "b").stat().st_mode
    )
    (tmp_path / "a").chmod(0o640)
    write_atomic(tmp_path / "a", "y")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / "notes.tmp").write_text("the user's own")
    with open_atomic(tmp_path / "run.json"):
        (left,) = tmp_path.glob(".run.json.*")  # what a kill at this point leaves
        left.with_name(f".copy-{left.name[1:]}").write_bytes(b"half")
    remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hydra", "notes.tmp", "run.json"]


Read = Callable[[Path], Any]

READERS: dict[str, Read] = {
    "config.yaml": read_config,
    "metrics.json": read_metrics,
    "run.json": read_run_file,
    "ranks.npz": lambda folder: read_ranks(folder)[0],
    "beliefs.npz": lambda folder: read_checked_arrays(folder / "beliefs.npz"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_run_folder(tmp_path / "run")
    write_checked_arrays(
        folder / "beliefs.npz", targets=np.arange(6), joint_probs=np.linspace(0, 1, 6)
    )
    return folder


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether all expected values were read."""
    return all(
        key in found and np.array_equal(found[key], expected[key]) for key in expected
    )


@pytest.mark.parametrize("name", READERS)
def test_a_changed_byte_is_noticed_or_has_no_effect(folder: Path, name: str) -> None:
    path, read = folder / name, READERS[name]
    whole, expected = path.read_bytes(), read(folder)
    num_noticed = 0
    places = range(0, len(whole), max(1, len(whole) // 120))
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << (place % 7)
        path.write_bytes(changed)
        try:
            found = read(folder)
        except UserError as error:
            assert str(path) in str(
                error
            ) and "Restore the file or run it again." in str(error)
            num_noticed += 1
        else:
            assert same(found, expected), (name, place)
    assert num_noticed > len(places) / 2


@pytest.mark.parametrize("name", READERS)
def test_a_truncated_file_is_noticed(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for size in (
        len(whole) // 4,
        len(whole) // 2,
        whole.rindex(b"\n", 0, len(whole) - 3) + 1,
    ):
        (folder / name).write_bytes(whole[:size])
        with pytest.raises(
            UserError, match=f"{name} (is damaged|cannot be read): .* run it again"
        ):
            READERS[name](folder)


@pytest.mark.parametrize("name", ["config.yaml", "metrics.json", "run.json"])
def test_files_of_earlier_versions_have_no_checksum(folder: Path, name: str) -> None:
    expected = READERS[name](folder)
    (folder / name).write_bytes(unsigned(folder / name))
    assert "sha256" not in (folder / name).read_text()
    assert READERS[name](folder) == expected


def test_a_user_can_edit_the_configuration(folder: Path) -> None:
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    with pytest.raises(UserError, match="If you edited it, remove its first line"):
        read_config(folder)
    path.write_text(path.read_text().split("\n", 1)[1])
    assert read_config(folder)["seed"] == 1
    replace_in(path, "seed: 1", "seed: 2")
    assert read_config(folder)["seed"] == 2


def test_a_write_runs_while_the_caller_continues() -> None:
    may_end, done = threading.Event(), []

    def work() -> None:
        assert may_end.wait(10)
        done.append("written")

    with BackgroundWriter() as writer:
        writer.write(work)
        assert not done
        may_end.set()
        writer.wait()
        assert done == ["written"]


def test_writes_do_not_overlap() -> None:
    lines: list[str] = []

    def work(name: str) -> None:
        lines.extend([f"{name} begins", f"{name} ends"])

    with BackgroundWriter() as writer:
        for name in "abc":
            writer.write(lambda name=name: work(name))  # type: ignore[misc]
    assert lines == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


def fail() -> None:
    raise OSError("disk full")


def test_the_next_call_raises_the_error_of_a_write() -> None:
    with BackgroundWriter() as writer:
        writer.write(fail)
        with pytest.raises(OSError, match="disk full"):
            writer.write(lambda: None)
        writer.wait()  # it is raised once


def test_the_end_raises_the_error_of_the_last_write() -> None:
    with pytest.raises(OSError, match="disk full"), BackgroundWriter() as writer:
        writer.write(fail)


def test_an_error_of_the_caller_lets_the_last_write_end() -> None:
    may_end, done = threading.Event(), []

    def work() -> None:
        assert may_end.wait(10)
        done.append("written")

    with pytest.raises(KeyboardInterrupt), BackgroundWriter() as writer:
        writer.write(work)
        may_end.set()
        raise KeyboardInterrupt
    assert done == ["written"]


def test_an_error_of_the_caller_does_not_hide_that_of_the_last_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(KeyboardInterrupt), BackgroundWriter() as writer:
        writer.write(fail)
        raise KeyboardInterrupt
    assert "The last write failed, too: disk full" in caplog.text
