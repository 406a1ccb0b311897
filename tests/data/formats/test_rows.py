"""Rows of tables: headers, quotes and what is refused."""

import time
from pathlib import Path

import pytest

from emea.data.formats.input_file import BadLines
from emea.data.formats.rows import rows, wanted_cells
from emea.errors import DataError

NAMES = (("head", "subject"), ("relation",), ("tail", "object"))


def read(path: Path, content: str | bytes, file_format: str, on_error: str = "stop"):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    bad = BadLines(path.name, on_error)
    rows = wanted_cells(path, file_format, NAMES, bad)
    return [(row.line, *row.cells) for row in rows], bad


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\tr\tb\nc\tr\td", [(1, "a", "r", "b"), (2, "c", "r", "d")]),
        ("Head\tRelation\tTail\r\na\tr\tb\r\n", [(2, "a", "r", "b")]),
        ("tail\tscore\tsubject\trelation\nb\t1\ta\tr\n", [(2, "a", "r", "b")]),
        ("head\ttail\tlink\n", [(1, "head", "tail", "link")]),  # no relation: no header
        (
            "\na\tr\tb\n\n\nc\t\u2028\td\n\n",
            [(2, "a", "r", "b"), (5, "c", "\u2028", "d")],
        ),
        ('a\t"r\tb,c\n', [(1, "a", '"r', "b,c")]),
        ("\ufeffa\tr\tb\n", [(1, "a", "r", "b")]),
        ("", []),
    ],
)
def test_tabs(tmp_path: Path, content: str, expected: list[tuple[int, ...]]) -> None:
    assert read(tmp_path / "a.tsv", content, "tsv")[0] == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,r,b\n", [(1, "a", "r", "b")]),
        ('head,relation,tail\r\n"a, or ""A""",r,b\r\n', [(2, 'a, or "A"', "r", "b")]),
        ("subject,note,relation,object\na,,r,b\n", [(2, "a", "r", "b")]),
    ],
)
def test_commas(tmp_path: Path, content: str, expected: list[tuple[int, ...]]) -> None:
    assert read(tmp_path / "a.csv", content, "csv")[0] == expected


@pytest.mark.parametrize(
    ("content", "file_format", "reason"),
    [
        (b"a\tr\tb\na\tr\n", "tsv", "line 2: expected 3 columns, found 2"),
        (b"a\tr\tb\na\t\tb\n", "tsv", "line 2: column 2 is empty"),
        (b"a\tr\tb\na\tr\t\xff\n", "tsv", "line 2: column 3 is not UTF-8"),
        (b"a,r,b\na,r,b,c\n", "csv", "line 2: expected 3 columns, found 4"),
        (
            b"a,r,b\na;r;b\n",
            "csv",
            "line 2: expected 3 columns, found 1; .csv files .* the line has semicolons",
        ),
        (
            b'a,r,b\n"a\nx",r,b\n',
            "csv",
            "line 3: column 1 contains a tab or a line break",
        ),
        (b'a,r,b\n"a"x,r,b\n', "csv", "line 2: "),
        (
            b'a,r,b\n"a,r,b\n',
            "csv",
            "line 2: a quote is opened in this row and not closed",
        ),
    ],
)
def test_bad_rows(
    tmp_path: Path, content: bytes, file_format: str, reason: str
) -> None:
    path = tmp_path / f"a.{file_format}"
    with pytest.raises(DataError, match=reason):
        read(path, content, file_format)
    rows, bad = read(
        path,
        content + b"c\tr\td\n".replace(b"\t", b"," if "c" in file_format else b"\t"),
        file_format,
        "skip",
    )
    assert bad.num_lines >= 1
    assert (1, "a", "r", "b") in rows


@pytest.mark.parametrize(
    "content",
    [
        'a,r,b\nc,"r,d\ne,r,f\ng,r,h\n',  # open to the end of the file
        'a,r,b\nc,"r,d\n"e",r,f\ng,r,h\n',  # closed by the next quote, in the midst of a cell
        'a,r,b\r\nc,"r,d\r\ne,r,f\r\n"g",r,h',
        'a,r,b\nc,r,"d\ne,r,f\ng,r,h',
    ],
)
def test_an_open_quote_is_reported_where_it_is_opened(
    tmp_path: Path, content: str
) -> None:
    with pytest.raises(
        DataError, match=r"a\.csv, line 2: a quote is opened in this row"
    ):
        read(tmp_path / "a.csv", content, "csv")
    rows, bad = read(tmp_path / "a.csv", content, "csv", "skip")
    assert rows == [(1, "a", "r", "b"), (3, "e", "r", "f"), (4, "g", "r", "h")]
    assert bad.num_lines == 1


def test_a_column_that_is_not_read_may_hold_lines(tmp_path: Path) -> None:
    content = 'head,relation,tail,note\na,r,b,"one\n\ntwo"\n\nc,"r,d,x\ne,r,f,y\n'
    rows, bad = read(tmp_path / "a.csv", content, "csv", "skip")
    assert rows == [(4, "a", "r", "b"), (7, "e", "r", "f")]
    assert bad.num_lines == 1


def test_quotes_that_open_and_open_again_cost_a_bounded_number_of_lines(
    tmp_path: Path,
) -> None:
    """Each line would otherwise read all that follows it, and go back."""
    path = tmp_path / "stripped.csv"
    path.write_text("a,b\n" + 'x","y\n' * 3000 + "c,d\n")
    bad = BadLines(path.name, "skip")
    began = time.perf_counter()
    found = [row.cells for row in rows(path, "csv", bad)]
    assert time.perf_counter() - began < 20
    assert found[0] == ["a", "b"] and found[-1] == ["c", "d"]
    assert bad.num_lines >= 2900


@pytest.mark.parametrize(
    "header", ["head,relation,tail,Tail", "head,relation,tail,name,name"]
)
def test_a_column_that_is_named_twice_is_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n" + ",".join("abcde"[: header.count(",") + 1]) + "\n")
    bad = BadLines(path.name)
    with pytest.raises(DataError, match=r"more than one column (tail|name)"):
        list(wanted_cells(path, "csv", NAMES, bad, attributes=["name"]))


def test_attributes_must_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"head,relation,tail,Name,name\na,r,b,,caf\xe9\nc,r,d,\xe9,x\n")
    with pytest.raises(DataError, match=r"a\.csv, line 2: column name is not UTF-8"):
        list(wanted_cells(path, "csv", NAMES, BadLines(path.name), attributes=["name"]))
    found = list(
        wanted_cells(
            path, "csv", NAMES, BadLines(path.name, "skip"), attributes=["name"]
        )
    )
    assert [(row.line, row.attributes) for row in found] == [(3, [("name", "x")])]
