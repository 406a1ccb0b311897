"""Damaged files for tests of readers: what is nearly right goes deeper into a reader than noise.

``damaged(content)`` draws mostly mutations of a valid file and sometimes arbitrary bytes.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emea.errors import MOST_CHARACTERS, UserError

Draw = Callable[[st.SearchStrategy[Any]], Any]
Mutation = Callable[[Draw, bytes], bytes]

SEPARATORS = (
    b"\t",
    b",",
    b" ",
    b"\n",
    b"\r\n",
    b"\r",
    b";",
    b"|",
    b"",
    b"\t\t",
    b"\n\n",
)
TOKENS = (
    *(b"0", b"-1", b"-9223372036854775809", b"1e999", b"1.5", b"1_0", b"NaN", b"null"),
    *(b"[]", b"{}", b'""', b"'", b"${x}", b"???"),
    b"9" * 5000,  # more digits than Python turns into a number
    b"\xef\xbc\x91",  # a digit, but not of ASCII
)
PIECES = (
    *TOKENS,
    *(
        b"\r",
        b"\n",
        b"\t",
        b'"',
        b"<",
        b">",
        b"#",
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"&x;",
        b"_:b",
    ),
    b"\xef\xbb\xbf",  # byte order mark
    b"\xc3",  # half of a character
    b"\xed\xa0\x80",  # a surrogate
    b"\xc2\x85",  # what Python's splitlines takes for the end of a line
    *(b"\x00", b"\x0c", b"[" * 3000, b'{"a":' * 3000, b"x" * 70_000),
)
WHOLE_FILES = (
    *(
        b"",
        b"\n",
        b"\x00",
        b"\xef\xbb\xbf",
        b"# only\n# comments\n",
        b"\r\n\r\n",
        b"{}",
    ),
    *(
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ),  # deeper than a parser that calls itself can go
)
WORD = re.compile(rb"[A-Za-z0-9_.]+")


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """Eight of ten are mutations, the others have nothing to do with the file."""
    kinds = [
        st.sampled_from(WHOLE_FILES),
        *[st.binary(max_size=80)] * 3,
        *[mutated(content)] * 16,
    ]
    return st.integers(0, len(kinds) - 1).flatmap(kinds.__getitem__)


@st.composite
def mutated(draw: Draw, content: bytes) -> bytes:
    """A file after one to four mutations."""
    for _ in range(draw(st.integers(1, 4))):
        content = draw(st.sampled_from(MUTATIONS))(draw, content)
    return content


@st.composite
def changed_json(draw: Draw, content: Any) -> bytes:
    """A JSON text in which one to three values are others, or missing."""
    for _ in range(draw(st.integers(1, 3))):
        content = _changed(draw, content)
    return json.dumps(content).encode()


def _changed(draw: Draw, node: Any) -> Any:
    """The node with something inside it changed; another value where it has no inside."""
    if not isinstance(node, dict | list) or not node:
        return draw(JSON_VALUES)
    changed = dict(node) if isinstance(node, dict) else list(node)
    place = draw(
        st.sampled_from(list(node) if isinstance(node, dict) else range(len(node)))
    )
    what = draw(st.integers(0, 5))
    if what == 0:
        del changed[place]
    elif what == 1:
        changed[place] = draw(JSON_VALUES)
    else:
        changed[place] = _changed(draw, node[place])
    return changed


JSON_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [-1, 0, 2**31, 2**63, -(2**70), 10**400, 1.5, float("nan"), float("inf")]
    ),
    st.sampled_from(
        ["", "x", "\ud800", "\x00", "9" * 5000, [], {}, [[]], [None], {"x": None}]
    ),
)


def fuzz(
    contents: st.SearchStrategy[Any], read: Callable[[Any], None], num_examples: int
) -> None:
    """Read so many inputs, half of them distinct at least; each ends well or by our own error.

    Args:
        contents: what to read.
        read: reads one of them and checks what it got.
        num_examples: how many.
    """
    inputs: list[int] = []

    def ends_well_or_by_our_error(content: Any) -> None:
        inputs.append(hash(repr(content)))
        try:
            read(content)
        except UserError as error:
            assert str(error).strip()
            assert len(str(error).splitlines()) == 1, "a sentence is one line"
            assert len(str(error)) <= MOST_CHARACTERS, "a sentence is short"

    few = settings(
        max_examples=num_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    few(given(contents)(ends_well_or_by_our_error))()
    assert len(inputs) >= num_examples
    assert len(set(inputs)) >= num_examples // 2, "drawn again and again"


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Gives a test ``num_examples``: few of them always, many where slow tests run."""
    both = [
        pytest.param(few, id="few"),
        pytest.param(many, id="many", marks=pytest.mark.slow),
    ]
    return pytest.mark.parametrize("num_examples", both)


def _cut(draw: Draw, content: bytes) -> bytes:
    return content[: draw(st.integers(0, len(content)))]


def _flip(draw: Draw, content: bytes) -> bytes:
    start = draw(st.integers(0, max(0, len(content) - 1)))
    changed = bytes(
        byte ^ draw(st.integers(1, 255)) for byte in content[start : start + 1]
    )
    return content[:start] + changed + content[start + 1 :]


def _insert(draw: Draw, content: bytes) -> bytes:
    start = draw(st.integers(0, len(content)))
    return content[:start] + draw(st.sampled_from(PIECES)) + content[start:]


def _swap_separator(draw: Draw, content: bytes) -> bytes:
    """One separator for another, in one place or everywhere."""
    there = [
        separator for separator in SEPARATORS if separator and separator in content
    ]
    if not there:
        return content
    old, new = draw(st.sampled_from(there)), draw(st.sampled_from(SEPARATORS))
    if draw(st.booleans()):
        return content.replace(old, new)
    before, _, after = content.partition(old)
    return before + new + after


def _replace_word(draw: Draw, content: bytes) -> bytes:
    words = list(WORD.finditer(content))
    if not words:
        return content
    word = draw(st.sampled_from(words))
    other = draw(st.sampled_from([*TOKENS, draw(st.sampled_from(words)).group()]))
    return content[: word.start()] + other + content[word.end() :]


def _move_line(draw: Draw, content: bytes) -> bytes:
    """A line put elsewhere, once more or instead of another."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    line = draw(st.sampled_from(lines))
    place = draw(st.integers(0, len(lines) - 1))
    lines[place : place + draw(st.integers(0, 1))] = [line]
    return b"".join(lines)


MUTATIONS: tuple[Mutation, ...] = (
    *(
        _cut,
        _flip,
        _insert,
        _insert,
        _swap_separator,
        _replace_word,
        _replace_word,
        _move_line,
    ),
)
