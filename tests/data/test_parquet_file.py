"""Triples in Parquet."""

import sys
from pathlib import Path

import pytest

from emea.data.bad_lines import BadLines
from emea.data.parquet_file import parquet_rows
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
    with pytest.raises(DataError, match="has columns x, y: expected head, relation, tail"):
        read(write(tmp_path / "a.parquet", x=["a"], y=["r"]))


def test_a_missing_value(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", head=["a", None], relation=["r", "r"], tail=["b", "c"])
    with pytest.raises(DataError, match=r"a\.parquet, row 2: column 1 is empty"):
        read(path)
    assert read(path, "skip") == [(1, "a", "r", "b")]


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
    with pytest.raises(DataError, match=r"pip install 'emea\[parquet\]'"):
        read(tmp_path / "a.parquet")
