"""The name of a file determines its format."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import GRAPH_FORMATS, LINK_FORMATS, file_format
from emea.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.nt", "ntriples"),
        ("a.nt.gz", "ntriples"),
        ("A.TTL", "turtle"),
        ("a.b.rdf.gz", "rdfxml"),
        ("a.owl", "rdfxml"),
        ("a.tsv", "tsv"),
        ("map.sssom.tsv", "tsv"),
        ("a.csv.GZ", "csv"),
        ("a.parquet", "parquet"),
    ],
)
def test_by_name(name: str, expected: str) -> None:
    assert file_format(Path(name), None, GRAPH_FORMATS, "data.format") == expected


def test_what_is_given_goes_first() -> None:
    assert file_format(Path("rel_triples_1"), "tsv", GRAPH_FORMATS, "data.format") == "tsv"


@pytest.mark.parametrize("name", ["a.json", "a", "a.gz", ".nt"])
def test_an_unknown_ending_is_reported_with_the_known_ones(name: str) -> None:
    with pytest.raises(DataError, match=r"Known suffixes are \.nt, \.ttl.*data\.format="):
        file_format(Path(name), None, GRAPH_FORMATS, "data.format")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.nt.bz2", "Only .gz"),
        ("A.ZIP", "Only .gz"),
        ("a.nq", "Convert"),
        ("a.trig.gz", "Convert"),
    ],
)
def test_formats_that_are_not_read_have_advice(name: str, advice: str) -> None:
    with pytest.raises(DataError, match=f"^{name}: .*{advice}"):
        file_format(Path(name), None, GRAPH_FORMATS, "data.format")
    assert file_format(Path(name), "ntriples", GRAPH_FORMATS, "data.format") == "ntriples"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder, not a file"):
        file_format(tmp_path, None, GRAPH_FORMATS, "data.format")


TEXT = "<http://e/a> <http://e/p> <http://e/b> .\n"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (gzip.compress(TEXT.encode()), "is compressed with gzip. Its name must end in .gz"),
        (bz2.compress(TEXT.encode()), "bzip2"),
        (lzma.compress(TEXT.encode()), "xz"),
        (TEXT.encode("utf-16"), "UTF-16"),
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


def test_links_do_not_come_in_parquet() -> None:
    with pytest.raises(DataError, match="unknown file format"):
        file_format(Path("a.parquet"), None, LINK_FORMATS, "data.links_format")


def test_parquet_is_not_packed_twice() -> None:
    with pytest.raises(DataError, match="already compressed"):
        file_format(Path("a.parquet.gz"), None, GRAPH_FORMATS, "data.format")


def test_a_format_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="got 'nt'"):
        file_format(Path("a.nt"), "nt", GRAPH_FORMATS, "data.format")
