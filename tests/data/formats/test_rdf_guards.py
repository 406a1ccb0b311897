from pathlib import Path

import pytest

from emea.config.settings.data import ReadingLimits
from emea.data.formats.limits import reading_limits
from emea.data.formats.rdf_guards import TurtleGuard
from emea.errors import DataError

SHORT_DECOYS = r"""<http://a/it's#x> "<< \" << \\" "" # <<( " ' << """
TURTLE_DECOYS = (
    r"""ex:a\#b ex:it\'s '<< \' " <<' "" '' "\\" """
    '"""<<\n<< "" << \\""" << .\n \\\\""" '
    "'''<< ' '' << \n'''"
)


def nested(depth: int) -> bytes:
    """Return a statement with quoted triples in quoted triples."""
    return b"<a><b>" + b"<<(<a><b>" * depth + b"<o>" + b")>>" * depth + b".\n"


def is_refused(content: bytes, size: int, has_lines: bool) -> bool:
    """Return whether the guard refuses a file that it sees in blocks of a given size."""
    with reading_limits(ReadingLimits(depth=3)):
        guard = TurtleGuard(Path("a"), has_lines)
    try:
        for start in range(0, len(content), size):
            guard.check(content[start : start + size])
    except DataError:
        return True
    return False


@pytest.mark.parametrize("has_lines", [False, True])
@pytest.mark.parametrize("depth", [3, 4])
def test_the_size_of_blocks_does_not_matter(has_lines: bool, depth: int) -> None:
    decoys = SHORT_DECOYS if has_lines else f"{SHORT_DECOYS}\n{TURTLE_DECOYS}"
    content = f"{decoys}\n".encode() * 2 + nested(depth).replace(b".\n", b" ") + decoys.encode()
    for size in range(1, len(content) + 1):
        assert is_refused(content, size, has_lines) == (depth > 3), size


def test_closed_brackets_count_in_blocks_of_any_size() -> None:
    content = nested(3).replace(b".\n", b" ") * 3
    for size in range(1, len(content) + 1):
        assert not is_refused(content, size, has_lines=False), size


@pytest.mark.parametrize("mark", ['"""', "'''"])
def test_a_string_over_two_blocks_does_not_hide_brackets(mark: str) -> None:
    string = f"<a> <b> {mark}x\ny{mark} .\n".encode()
    content = string + nested(4) + string
    for size in range(1, len(content) + 1):
        assert is_refused(content, size, has_lines=False), size


@pytest.mark.parametrize("mark", ['"""', "'''"])
def test_ntriples_have_no_strings_of_several_lines(mark: str) -> None:
    assert is_refused(f"<a> <b> {mark} .\n".encode() + nested(4), 1 << 10, has_lines=True)
