"""Triples in Parquet."""

import sys
from pathlib import Path

import pytest

from emea.data.formats.input_file import BadLines
from emea.data.formats.parquet import parquet_rows
from emea.errors import DataError

NAMES = (("head",), ("relation",), ("tail",))


def write(path: Path, **columns: list[object]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    return path


def read(path: Path, on_error: str = "stop") -> list[tuple[int, str, str, str]]:
    rows = parquet_rows(path, NAMES, BadLines(path.name, on_error, "row"))
    return [(row.line, *row.cells) for row in rows]


def test_columns_by_name(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet", tail=[1, 2, 3], note=[0, 0, 0], head=[*"abc"], relation=[*"rst"]
    )
    assert read(path) == [(1, "a", "r", "1"), (2, "b", "s", "2"), (3, "c", "t", "3")]


def test_columns_by_place(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.parquet", x=["a"], y=["r"], z=["b"])) == [(1, "a", "r", "b")]


def test_other_columns(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="has the columns x, y, but head, relation, tail are expected"
    ):
        read(write(tmp_path / "a.parquet", x=["a"], y=["r"]))


def test_a_missing_value(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", head=["a", None], relation=["r", "r"], tail=["b", "c"])
    with pytest.raises(DataError, match=r"a\.parquet, row 2: column 1 is empty"):
        read(path)
    assert read(path, "skip") == [(1, "a", "r", "b")]


def test_text_that_is_not_said_to_be_text(tmp_path: Path) -> None:
    columns = {"head": [b"a", b"\xff"], "relation": [b"r", b"r"], "tail": [b"\xc3\xa9", b"b"]}
    path = write(tmp_path / "a.parquet", **columns)
    assert read(path, "skip") == [(1, "a", "r", "é")]
    with pytest.raises(DataError, match=r"a\.parquet, row 2: column 1 is not UTF-8"):
        read(path)


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_cells_that_are_no_single_value(tmp_path: Path, value: object) -> None:
    path = write(tmp_path / "a.parquet", head=[value], relation=["r"], tail=["b"])
    with pytest.raises(
        DataError, match=r"a\.parquet: column head contains (list|struct)<.*, but each"
    ):
        read(path)


def test_columns_of_one_name(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = ["head", "relation", "tail", "head"]
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 4, names)
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet has more than one column head"):
        read(tmp_path / "a.parquet")


def test_a_date_that_python_has_no_room_for(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    dates = pyarrow.array([2**62], pyarrow.timestamp("us"))
    path = write(tmp_path / "a.parquet", head=["a"], relation=["r"], tail=dates)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parquet: date value"):
        read(path)


def test_text_that_is_not_what_it_is_said_to_be(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    offsets, text = (pyarrow.py_buffer(part) for part in (b"\0\0\0\0\1\0\0\0", b"\xff"))
    broken = pyarrow.StringArray.from_buffers(1, offsets, text)
    path = write(tmp_path / "a.parquet", head=broken, relation=["r"], tail=["b"])
    with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parquet: .*byte 0xff"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"what"])
def test_what_is_no_parquet(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "a.parquet")


def test_no_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "a.parquet")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install '\.\[parquet\]'"):
        read(tmp_path / "a.parquet")


def test_a_number_that_is_missing_is_not_a_name_or_a_value(tmp_path: Path) -> None:
    nan = float("nan")
    columns = {"head": [1.0, nan, 3.0], "relation": [*"rrr"], "tail": [*"abc"]}
    path = write(tmp_path / "a.parquet", **columns, size=[nan, 1.0, 2.5])
    rows = list(parquet_rows(path, NAMES, BadLines(path.name, "skip", "row"), ["size"]))
    assert [(row.line, row.attributes) for row in rows] == [(1, []), (3, [("size", "2.5")])]


def test_attributes_must_be_utf8(tmp_path: Path) -> None:
    columns = {"head": [*"ab"], "relation": [*"rr"], "tail": [*"cd"], "name": [b"\xff", b"x"]}
    path = write(tmp_path / "a.parquet", **columns)
    with pytest.raises(DataError, match=r"a\.parquet, row 1: column name is not UTF-8"):
        list(parquet_rows(path, NAMES, BadLines(path.name, "stop", "row"), ["name"]))
    rows = list(parquet_rows(path, NAMES, BadLines(path.name, "skip", "row"), ["name"]))
    assert [(row.line, row.attributes) for row in rows] == [(2, [("name", "x")])]


def test_heads_and_tails_are_numbers_of_the_same_kind(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", head=[1, 2], relation=[*"rr"], tail=[2.0, 1.0])
    with pytest.raises(DataError, match="Convert tail to integers"):
        read(path)
