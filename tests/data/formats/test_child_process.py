"""A crash of a native parser ends in one sentence."""

import ctypes
import os
import signal
from pathlib import Path

import pytest

from emea.data.formats.child_process import tried_first
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.limits import current_limits, reading_limits
from emea.data.sources import own_files
from emea.errors import DataError

TURTLE = "<http://a/a> <http://a/r> <http://a/b> .\n"
PARENT = "PARENT_OF_THE_TEST"


def in_parent() -> bool:
    return os.environ[PARENT] == str(os.getpid())


def read_crashing(path: Path, *_: object) -> str:
    """Crash in the child process, as a native parser would, and never in this one."""
    if in_parent():
        pytest.fail("the file was read in the parent")
    ctypes.string_at(0)
    return path.name


def read_killed(path: Path, *_: object) -> str:
    if not in_parent():
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def read_failing(path: Path, given: str, *, depth: int = 0) -> str:
    """Fail in both processes, with the limits that it sees."""
    path.with_suffix(".parent" if in_parent() else ".child").write_text(
        f"{given} {depth} {current_limits().depth}"
    )
    raise DataError("as usual")


@pytest.fixture(autouse=True)
def parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PARENT, str(os.getpid()))


def test_a_crash_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "read_graph_file", read_crashing)
    file = tmp_path / "a.ttl"
    file.write_text(TURTLE)
    sentence = r"a\.ttl: the process that read this file crashed \(SIGSEGV\)\. Check the file"
    with pytest.raises(DataError, match=sentence):
        own_files.read_own_files(file, file, file, guarded=True)


def test_errors_are_those_of_the_reader(tmp_path: Path) -> None:
    with reading_limits({"depth": 7}), pytest.raises(DataError, match="as usual"):
        tried_first(read_failing)(tmp_path / "a.ttl", "turtle", depth=3)
    assert (tmp_path / "a.child").read_text() == "turtle 3 7"
    assert (tmp_path / "a.parent").read_text() == "turtle 3 7"


@pytest.mark.slow
def test_a_killed_child_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"SIGKILL, probably because memory ran out"):
        tried_first(read_killed)(tmp_path / "a.ttl")


@pytest.mark.slow
def test_the_result_is_that_of_the_reader(tmp_path: Path) -> None:
    file = tmp_path / "a.ttl"
    file.write_text(TURTLE)
    tried, _ = tried_first(read_graph_file)(file, None, "stop", False, False, ())
    graph, _ = read_graph_file(file)
    assert tried.entity_names == graph.entity_names == ["http://a/a", "http://a/b"]
    assert tried.triples.tolist() == graph.triples.tolist()
