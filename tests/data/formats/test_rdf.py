"""Turtle and RDF/XML, with blank nodes that are called the same in each reading."""

import gzip
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat

from emea.data.attributes import literal_parts
from emea.data.formats.input_file import BadLines
from emea.data.formats.rdf import (
    blank_node_labels,
    read_rdf_file,
    reason,
    sorted_out,
)
from emea.errors import DataError

TURTLE = """@prefix : <http://a.org/> .
:a :knows [ :knows :b ; :age 4 ] , _:named .
:a a :Person ; :name "A"@en .
"""
RDFXML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://a.org/">
<rdf:Description rdf:about="http://a.org/a"><e:knows rdf:resource="http://a.org/b"/>
<e:name>A</e:name></rdf:Description></rdf:RDF>
"""


def read(path: Path, file_format: str, on_error: str = "stop"):
    bad = BadLines(path.name, on_error)
    return read_rdf_file(path, file_format, bad), bad


def test_turtle(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(TURTLE)
    readings = [read(tmp_path / "a.ttl", "turtle")[0] for _ in range(2)]
    graphs = [collector.finish("a.ttl", 0, False)[0] for collector in readings]
    assert graphs[0].entity_names == [
        "_:[1]",
        "_:named",
        "http://a.org/Person",
        "http://a.org/a",
        "http://a.org/b",
    ]
    assert graphs[0].triples.tolist() == graphs[1].triples.tolist()
    assert readings[0].num_literals == 2


@pytest.mark.parametrize("name", ["a.rdf", "a.rdf.gz"])
def test_rdfxml(tmp_path: Path, name: str) -> None:
    content = RDFXML.encode()
    (tmp_path / name).write_bytes(
        gzip.compress(content) if name.endswith("gz") else content
    )
    graph, reading = read(tmp_path / name, "rdfxml")[0].finish(name, 0, False)
    assert graph.entity_names == ["http://a.org/a", "http://a.org/b"]
    assert reading.num_literals == 1


def test_a_mistake_in_turtle_is_named_or_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(TURTLE + ":a :knows what .\n:a :knows :c .\n")
    with pytest.raises(
        DataError, match=r"a\.ttl, line 4: what is not a valid RDF object"
    ):
        read(tmp_path / "a.ttl", "turtle")
    collector, bad = read(tmp_path / "a.ttl", "turtle", "skip")
    assert bad.num_lines == 1
    assert "<http://a.org/c>" in collector.entities


def test_a_mistake_over_several_lines_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(
        "@prefix : <http://a.org/> .\n:a :b '''never\nclosed .\n"
    )
    with pytest.raises(DataError, match=r"^a\.ttl, line 2: Unexpected end of file"):
        read(tmp_path / "a.ttl", "turtle")


def test_what_a_mistake_quotes_stays_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.rdf").write_text(
        RDFXML.replace("<e:name>", "\nlost\ntext\n<e:name>")
    )
    with pytest.raises(
        DataError, match=r"^a\.rdf, line \d+: Unexpected text event"
    ) as caught:
        read(tmp_path / "a.rdf", "rdfxml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_mistake_in_rdfxml_ends_the_reading(tmp_path: Path, on_error: str) -> None:
    (tmp_path / "a.rdf").write_text(RDFXML.replace("</e:name>", "</e:nome>"))
    with pytest.raises(DataError, match=r"a\.rdf, line \d+: "):
        read(tmp_path / "a.rdf", "rdfxml", on_error)


def test_only_random_labels_are_replaced() -> None:
    label, random = blank_node_labels(), "_:b12b5e0a78e33d326611b2adf44cfb0f"
    terms = ["_:x", random, "<http://a.org/x>", random.replace("b12", "c12"), random]
    assert [label(term) for term in terms] == [
        "_:x",
        "_:[1]",
        "<http://a.org/x>",
        "_:[2]",
        "_:[1]",
    ]


def test_literals_and_quoted_triples_are_no_edges() -> None:
    text = '<http://a/a> <http://a/r> "x" .\n'
    text += (
        "<http://a/a> <http://a/r> <<( <http://a/a> <http://a/r> <http://a/b> )>> .\n"
    )
    edges, literals = sorted_out(pyoxigraph.parse(text, RdfFormat.N_TRIPLES), str)
    subject, relation = "<http://a/a>", "<http://a/r>"
    assert (edges, literals) == (
        [],
        [(subject, relation, '"x"'), (subject, relation, '""')],
    )


def test_a_reason_has_no_place() -> None:
    error = SyntaxError(
        "Parser error at line 2 between columns 1 and 4: what is it: this"
    )
    assert reason(error) == "what is it: this"
    assert reason(SyntaxError("odd")) == "odd"


@given(st.text(), st.sampled_from(["", "@en", "@de-AT", "^^<http://x.org/ä>"]))
def test_literals_have_parts(text: str, suffix: str) -> None:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    term = f'"{escaped}"{suffix}'
    assert literal_parts(term)[0] == text
