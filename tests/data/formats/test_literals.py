"""Literals that readers keep on request: the same from every format."""

from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat

from emea.data.attributes import Kind, literal_parts
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import BadLines
from emea.data.formats.ntriples import read_ntriples
from emea.data.formats.repairs import DEFAULT_BASE
from emea.data.graph import KnowledgeGraph
from emea.data.names import IRI_NAME, with_iri_names

A, LABEL = "http://a.org/", "http://www.w3.org/2000/01/rdf-schema#label"
XSD = "http://www.w3.org/2001/XMLSchema#"
NTRIPLES = f"""<{A}x> <{A}r> <{A}y> .
<{A}x> <{LABEL}> "Haus"@de .
<{A}x> <{LABEL}> "house"@en-GB .
<{A}x> <{A}age> "7"^^<{XSD}integer> .
<{A}x> <{A}age> "7"^^<{XSD}integer> .
<{A}y> <{A}note> "a \\"b\\"\\n\\u00e9" .
<{A}z> <{A}note> "alone"^^<{XSD}string> .
"""
WANTED = {
    ("x", LABEL, "Haus", Kind("de")),
    ("x", LABEL, "house", Kind("en-gb")),
    ("x", f"{A}age", "7", Kind("", f"{XSD}integer")),
    ("y", f"{A}note", 'a "b"\n\u00e9', Kind()),
    ("z", f"{A}note", "alone", Kind()),
}


def literals(graph: KnowledgeGraph) -> set[tuple[str, str, str, Kind]]:
    found = graph.attributes
    assert found is not None
    return {
        (
            graph.entity_name(entity).removeprefix(A),
            found.attribute_names[attribute],
            found.values[value],
            found.kind(value),
        )
        for entity, attribute, value in found.triples.tolist()
    }


@pytest.mark.parametrize("suffix", ["nt", "ttl", "rdf"])
def test_every_rdf_format_keeps_text_language_and_datatype(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    formats = {"nt": None, "ttl": RdfFormat.TURTLE, "rdf": RdfFormat.RDF_XML}
    path.write_text(NTRIPLES)
    if (wanted := formats[suffix]) is not None:
        quads = pyoxigraph.parse(NTRIPLES, RdfFormat.N_TRIPLES)
        pyoxigraph.serialize([quad.triple for quad in quads], path, wanted)
    graph, reading = read_graph_file(path, keep_literals=True)
    assert literals(graph) == WANTED
    assert graph.num_entities == 3 and reading.num_literals == len(WANTED)
    assert graph.attributes is not None and len(graph.attributes) == len(WANTED)
    assert reading.num_duplicates == 1


def test_structure_is_the_default_and_labels_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text(NTRIPLES)
    graph, reading = read_graph_file(path)
    assert graph.attributes is None and graph.num_entities == 2
    assert (reading.num_literals, reading.num_isolated) == (6, 1)
    assert [graph.entity_label(entity) for entity in (0, 1)] == ["Haus", None]
    english, _ = read_graph_file(path, label_language="en-GB")
    assert english.entity_label(0) == "house"
    moved = english.relabelled(english.triples[0, [2, 0]])
    assert [moved.entity_label(entity) for entity in (0, 1)] == [None, "house"]


@pytest.mark.parametrize("keep_literals", [True, False])
def test_names_of_other_vocabularies_are_labels(
    tmp_path: Path, keep_literals: bool
) -> None:
    rows = {
        "a": {"o#title": "Dr", "o#name": "Ada Lovelace", "o#code": "Seven of nine"},
        "b": {"o#title": "Dr", "p/prefLabel": "Bertrand Russell", "o#name": "russell"},
        "c": {"o#title": "Dr", "o#name": "kept back"},
        "d": {"o#label": "x-1"},
    }
    lines = [
        f'<{A}{head}> <{A}{name}> "{text}" .'
        for head, values in rows.items()
        for name, text in values.items()
    ]
    lines += [f"<{A}{head}> <{A}near> <{A}a> ." for head in rows]
    path = tmp_path / "a.nt"
    path.write_text("\n".join([*lines, f'<{A}c> <{LABEL}> "Carl" .\n']))
    graph, _ = read_graph_file(path, keep_literals=keep_literals)
    assert dict(zip(graph.all_entity_names, graph.labels or (), strict=True)) == {
        f"{A}a": "Ada Lovelace",
        f"{A}b": "Bertrand Russell",
        f"{A}c": "Carl",  # known vocabularies come first
        f"{A}d": "",  # a code is not a name
    }


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_tables_mark_relations_and_columns_as_attributes(
    tmp_path: Path, suffix: str
) -> None:
    rows = [
        ["head", "relation", "tail", "title"],
        ["x", "r", "y", "The X"],
        ["y", "age", "7", ""],
    ]
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = dict(
            zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True)
        )
        parquet.write_table(arrow.table(columns), path)
    else:
        separator = "," if suffix == "csv" else "\t"
        path.write_text("".join(f"{separator.join(row)}\n" for row in rows))
    graph, _ = read_graph_file(path, keep_literals=True, attributes=["age", "title"])
    assert literals(graph) == {
        ("x", "title", "The X", Kind()),
        ("y", "age", "7", Kind()),
    }
    assert graph.num_triples == 1


terms = st.sampled_from(
    [
        *(
            '"x"',
            '"x"@en',
            '"x"@en-US',
            '"x"@x',
            f'"1"^^<{XSD}int>',
            f'"1"^^<{XSD}string>',
        ),
        *(
            '"a\\tb"',
            '"a\tb"',
            '"\u00e9"',
            '"\\u00e9"',
            '""',
            '"a" b"',
            '"it\'s <x> ."',
            "x",
        ),
        *('"x"^^<relative>', '"x"@', '"\x00"', '"\U0001f600"'),
    ]
)

REPAIRED = {
    '"x"^^<relative>': ("x", Kind(datatype=f"{DEFAULT_BASE}relative")),
    '"x"@x': ("x", Kind()),
}
"""Terms that the strict parser refuses and that are read with repairs."""


@given(st.lists(terms, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_the_fast_path_reads_what_the_parser_reads(
    tmp_path_factory: pytest.TempPathFactory, given_terms: list[str], end: str
) -> None:
    lines = {term: f"<{A}x> <{A}a> {term} .{end}".encode() for term in given_terms}
    path = tmp_path_factory.getbasetemp() / "fast.nt"
    path.write_bytes(b"".join(lines[term] for term in given_terms))
    collector = read_ntriples(path, BadLines("fast.nt", "skip"), keep_literals=True)
    wanted = set()
    for term, line in lines.items():
        if term in REPAIRED:
            wanted.add(REPAIRED[term])
            continue
        try:
            parsed = list(pyoxigraph.parse(line, RdfFormat.N_TRIPLES))
        except SyntaxError:
            continue
        wanted |= {literal_parts(str(quad.object)) for quad in parsed}
    assert {literal_parts(key.decode()) for key in collector.values} == wanted


def test_names_from_iris(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text(
        f'<{A}Kim_Dae-jung> <{A}r> <{A}M%C3%BCnchen> .\n<{A}Kim_Dae-jung> <{A}a> "1" .'
    )
    graph = with_iri_names(read_graph_file(path, keep_literals=True)[0])
    names = {name[1:3] for name in literals(graph)}
    assert names == {
        (IRI_NAME, "Kim Dae-jung"),
        (IRI_NAME, "M\u00fcnchen"),
        (f"{A}a", "1"),
    }
    assert graph.labels == ["Kim Dae-jung", "M\u00fcnchen"]
