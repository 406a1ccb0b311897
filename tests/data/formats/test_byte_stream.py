"""Plain and packed files give the same bytes; damage is reported in one sentence."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.formats.input_file import UTF8_BOM, byte_stream
from emea.data.formats.ntriples import line_chunks
from emea.errors import DataError


@pytest.mark.parametrize("name", ["a.nt", "a.nt.gz", "A.NT.GZ"])
@pytest.mark.parametrize("start", [b"", UTF8_BOM])
def test_packed_or_not(tmp_path: Path, name: str, start: bytes) -> None:
    content = start + b"one\ntwo"
    packed = gzip.compress(content) if name.lower().endswith(".gz") else content
    (tmp_path / name).write_bytes(packed)
    with byte_stream(tmp_path / name) as stream:
        assert stream.read() == b"one\ntwo"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        list(line_chunks(tmp_path / "a.nt"))


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(line_chunks(tmp_path))


@pytest.mark.parametrize("damage", ["cut", "flipped", "plain"])
def test_damaged_gzip(tmp_path: Path, damage: str) -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 999))
    if damage == "cut":
        packed = packed[: len(packed) // 2]
    elif damage == "flipped":
        packed[len(packed) // 2] ^= 0xFF
    else:
        packed = bytearray(b"this was never packed")
    (tmp_path / "a.nt.gz").write_bytes(packed)
    with pytest.raises(DataError, match=r"a\.nt\.gz is damaged or not a gzip file"):
        list(line_chunks(tmp_path / "a.nt.gz"))


@given(st.lists(st.sampled_from([b"a", b"bc\n", b"\n", b"defghi", b"\r\n"])), st.integers(1, 9))
def test_chunks_are_whole_lines(tmp_path_factory: pytest.TempPathFactory, parts, size) -> None:
    path = tmp_path_factory.mktemp("chunks") / "a.nt"
    content = b"".join(parts)
    path.write_bytes(content)
    chunks = list(line_chunks(path, size))
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    expected = content if not content or content.endswith(b"\n") else content + b"\n"
    assert b"".join(chunks) == expected
