"""A file whose content has another format than its name says."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import (
    NUM_NAMED,
    UTF8_BOM,
    BadLines,
    byte_stream,
    content_format,
    file_format,
    graph_formats,
    link_formats,
)
from emea.data.formats.link_file import read_link_file
from emea.data.formats.ntriples import line_chunks
from emea.errors import ConfigError, DataError

NTRIPLES = "<http://e/a> <http://e/p> <http://e/b> .\n"
TURTLE = "# a graph\n\n@prefix e: <http://e/> .\ne:a e:p e:b .\n"
RDFXML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="http://e/a"><e:p rdf:resource="http://e/b"/></rdf:Description>
</rdf:RDF>
"""


@pytest.mark.parametrize("content", [NTRIPLES, TURTLE, RDFXML])
@pytest.mark.parametrize(
    "name", ["a.ttl", "a.nt", "a.b.rdf", "a.owl", "a.tsv", "a.parquet", "a"]
)
def test_the_content_decides_if_it_is_rdf(
    name: str, content: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        assert read_graph_file(path)[0].entity_names == ["http://e/a", "http://e/b"]
        assert read_link_file(path).links == []


def test_a_chosen_format_is_not_a_matter_of_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(TURTLE)
    for read in (read_graph_file, read_link_file):
        with pytest.raises(DataError, match=r"^a\.ttl, line 3: "):
            read(path, "ntriples")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ttl", NTRIPLES + "x\n"),
        ("a.ttl", TURTLE + "x\n"),
        ("a.nt", NTRIPLES + "x\n"),
        ("a.rdf", RDFXML + "x"),
        ("a.tsv", "<a>\t<b>\t<c>\nx\n"),
        ("a.csv", "prefix,base\n"),
        ("a.nt", "<a\n"),
    ],
)
def test_mistakes_are_named_with_their_line(
    name: str, content: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=rf"^{name}, line \d+: "):
        read_graph_file(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("PREFIX : <http://e/>\n", "turtle"),
        ("BASE <http://e/>\n", "turtle"),
        ("\ufeff<rdf:RDF xmlns='http://e/'>", "rdfxml"),
        ("<!DOCTYPE rdf:RDF [", "rdfxml"),
        ('_:a <http://e/p> "b"@en .\r\n', "ntriples"),
        ("<html>", None),
        ("prefix\tbase\n", None),
        ("#" * 5000, None),
        ("", None),
    ],
)
def test_first_bytes(content: str, expected: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(content)
    assert content_format(path) == expected


@pytest.mark.parametrize("name", ["a.nt", "a.nt.gz", "A.NT.GZ"])
@pytest.mark.parametrize("start", [b"", UTF8_BOM])
def test_packed_or_not(tmp_path: Path, name: str, start: bytes) -> None:
    content = start + b"one\ntwo"
    packed = gzip.compress(content) if name.lower().endswith(".gz") else content
    (tmp_path / name).write_bytes(packed)
    with byte_stream(tmp_path / name) as stream:
        assert stream.read() == b"one\ntwo"


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        list(line_chunks(tmp_path / "a.nt"))
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(line_chunks(tmp_path))
    with pytest.raises(DataError, match="is a folder, not a file"):
        file_format(tmp_path, None, graph_formats(), "data.format")


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


@given(
    st.lists(st.sampled_from([b"a", b"bc\n", b"\n", b"defghi", b"\r\n"])),
    st.integers(1, 9),
)
def test_chunks_are_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, parts, size
) -> None:
    path = tmp_path_factory.mktemp("chunks") / "a.nt"
    content = b"".join(parts)
    path.write_bytes(content)
    chunks = list(line_chunks(path, size))
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    expected = content if not content or content.endswith(b"\n") else content + b"\n"
    assert b"".join(chunks) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.nt", "ntriples"),
        ("A.TTL", "turtle"),
        ("a.b.rdf.gz", "rdfxml"),
        ("a.tsv", "tsv"),
        ("map.sssom.tsv", "tsv"),
        ("a.csv.GZ", "csv"),
        ("a.parquet", "parquet"),
    ],
)
def test_by_name(name: str, expected: str) -> None:
    assert file_format(Path(name), None, graph_formats(), "data.format") == expected
    assert file_format(Path(name), "tsv", graph_formats(), "data.format") == "tsv"


@pytest.mark.parametrize("name", ["a.json", "a", "a.gz", ".nt"])
def test_an_unknown_ending_is_reported_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        DataError, match=r"Known suffixes are \.nt, \.ttl.*data\.format="
    ):
        file_format(Path(name), None, graph_formats(), "data.format")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            gzip.compress(NTRIPLES.encode()),
            "is compressed with gzip. Its name must end in .gz",
        ),
        (bz2.compress(NTRIPLES.encode()), "bzip2"),
        (lzma.compress(NTRIPLES.encode()), "xz"),
        (NTRIPLES.encode("utf-16"), "UTF-16"),
    ],
    ids=["gzip", "bzip2", "xz", "utf-16"],
)
@pytest.mark.parametrize("suffix", [".nt", ".ttl", ".tsv"])
def test_other_bytes_than_text_are_named(
    content: bytes, fault: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"^a\{suffix} .*{fault}"):
        read_graph_file(path, on_error="skip")
    packed = tmp_path / f"a{suffix}.gz"
    packed.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=rf"^The content of a\{suffix}\.gz .*{fault}"):
        read_graph_file(packed, on_error="skip")


def test_formats_that_do_not_fit() -> None:
    with pytest.raises(DataError, match="unknown file format"):
        file_format(Path("a.parquet"), None, link_formats(), "data.links_format")
    with pytest.raises(DataError, match="already compressed"):
        file_format(Path("a.parquet.gz"), None, graph_formats(), "data.format")
    with pytest.raises(ConfigError, match="got 'nt'"):
        file_format(Path("a.nt"), "nt", graph_formats(), "data.format")


def test_stop_names_file_line_and_reason() -> None:
    with pytest.raises(
        DataError, match=r"^a\.nt, line 7: too short \(use data\.on_error=skip"
    ):
        BadLines("a.nt").add(7, "too short")


def test_skip_counts_and_names_the_first(caplog: pytest.LogCaptureFixture) -> None:
    bad = BadLines("a.nt", "skip", "row")
    for line in range(1, NUM_NAMED + 4):
        bad.add(line, "odd")
    bad.log_others()
    assert bad.num_lines == NUM_NAMED + 3
    assert f"a.nt, row {NUM_NAMED}: odd" in caplog.text
    assert f"row {NUM_NAMED + 1}:" not in caplog.text
    assert "3 more rows skipped" in caplog.text


def test_another_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="stop or skip, got 'ignore'"):
        BadLines("a.nt", "ignore")
