"""The name of a file determines its format."""

from pathlib import Path

import pytest

from emea.data.formats.files import GRAPH_FORMATS, LINK_FORMATS, file_format
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


def test_links_do_not_come_in_parquet() -> None:
    with pytest.raises(DataError, match="unknown file format"):
        file_format(Path("a.parquet"), None, LINK_FORMATS, "data.links_format")


def test_parquet_is_not_packed_twice() -> None:
    with pytest.raises(DataError, match="already compressed"):
        file_format(Path("a.parquet.gz"), None, GRAPH_FORMATS, "data.format")


def test_a_format_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="got 'nt'"):
        file_format(Path("a.nt"), "nt", GRAPH_FORMATS, "data.format")
