"""A file whose content has another format than its name says."""

import gzip
from pathlib import Path

import pytest

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import content_format
from emea.data.formats.link_file import read_link_file
from emea.errors import DataError

NTRIPLES = "<http://e/a> <http://e/p> <http://e/b> .\n"
TURTLE = "# a graph\n\n@prefix e: <http://e/> .\ne:a e:p e:b .\n"
RDFXML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="http://e/a"><e:p rdf:resource="http://e/b"/></rdf:Description>
</rdf:RDF>
"""


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.ttl", RDFXML, "looks like RDF/XML, but it is read as Turtle. Rename it to a.rdf."),
        ("a.nt", RDFXML, "looks like RDF/XML, but it is read as N-Triples. Rename it to a.rdf."),
        ("a.nt", TURTLE, "looks like Turtle, but it is read as N-Triples. Rename it to a.ttl."),
        ("a.b.rdf", NTRIPLES, "N-Triples, but it is read as RDF/XML. Rename it to a.b.nt."),
        ("a.owl", TURTLE, "looks like Turtle, but it is read as RDF/XML. Rename it to a.ttl."),
        ("a.tsv", NTRIPLES, "looks like N-Triples, but it is read as tsv. Rename it to a.nt."),
        ("a.parquet", TURTLE, "looks like Turtle, but it is read as parquet. Rename it to a.ttl."),
    ],
)
def test_the_format_of_the_content_is_named(
    name: str, content: str, sentence: str, on_error: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError) as refused:
        read_graph_file(path, on_error=on_error)
    assert str(refused.value).startswith(f"The content of {name} looks like ")
    assert str(refused.value).endswith(sentence)


def test_links_and_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "links.tsv.gz"
    path.write_bytes(gzip.compress(TURTLE.encode()))
    with pytest.raises(DataError, match=r"Turtle, .*Rename it to links\.ttl\.gz\.$"):
        read_link_file(path)


def test_a_chosen_format_is_not_a_matter_of_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(TURTLE)
    with pytest.raises(DataError, match=r"Set data\.format=turtle\.$"):
        read_graph_file(path, "ntriples")
    with pytest.raises(DataError, match=r"Set data\.links_format=turtle\.$"):
        read_link_file(path, "ntriples")


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
def test_other_mistakes_keep_their_message(name: str, content: str, tmp_path: Path) -> None:
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


def test_a_file_that_does_not_exist_has_no_format(tmp_path: Path) -> None:
    assert content_format(tmp_path / "a") is None
