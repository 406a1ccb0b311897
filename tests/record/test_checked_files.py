"""Files are replaced whole."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from emea.record import checked_files as atomic
from emea.record.checked_files import (
    open_atomic,
    remove_leftovers,
    write_atomic,
    write_json,
    write_lines,
)


@pytest.mark.parametrize(
    "content", ["naïve\n", b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff"), b""]
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


def test_chunks_of_text_are_an_error(tmp_path: Path) -> None:
    write_atomic(tmp_path / "file", "old")
    with pytest.raises(TypeError, match="bytes-like"):
        write_atomic(tmp_path / "file", ["new"])  # type: ignore[list-item]
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_json_reads_back(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"ä": [1, None, True]})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"ä": [1, None, True]}


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert (tmp_path / "file").read_text("utf-8") == "".join(f"{line}\n" for line in lines)


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
