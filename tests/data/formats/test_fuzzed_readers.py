"""Whatever a file holds, reading it ends well or in a sentence."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from safetensors.numpy import save

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.link_file import read_link_file
from emea.data.formats.settings import GraphForm
from emea.data.formats.vector_file import read_vectors
from emea.data.graph import KnowledgeGraph

from ...mutated_files import damaged, few_or_many, fuzz

NTRIPLES = b"""# a graph
<http://a.org/a> <http://a.org/r> <http://a.org/b> .
<http://a.org/b> <http://a.org/r> _:c .
_:c <http://a.org/s> "a \\u00e9 literal"@en .
<http://a.org/\xc3\xa9> <http://www.w3.org/2002/07/owl#sameAs> <http://b.org/x> .
<http://a.org/b> <http://a.org/s> "1"^^<http://www.w3.org/2001/XMLSchema#int> .
"""
TURTLE = b"""@prefix : <http://a.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@base <http://a.org/base/> .
:a :knows [ :knows :b ; :age 4 ] , _:named .
:a a :Person ; :name "A"@en , '''long
text''' .
:b owl:sameAs <x> ; :list ( :a :b 1.5e3 true ) .
"""
RDFXML = b"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE rdf:RDF [<!ENTITY a "http://a.org/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:e="http://a.org/" xml:base="http://a.org/">
<rdf:Description rdf:about="&a;a"><e:knows rdf:resource="b"/><e:name xml:lang="en">A</e:name>
<e:knows rdf:parseType="Resource"><e:knows rdf:nodeID="n"/></e:knows></rdf:Description>
<e:Person rdf:ID="c"><owl:sameAs rdf:resource="http://b.org/x"/></e:Person>
</rdf:RDF>
"""
NQUADS = b"""<http://a.org/a> <http://a.org/r> <http://a.org/b> <http://a.org/g> .
_:c <http://a.org/s> "a \\u00e9 literal"@en <http://a.org/h> .
<http://a.org/b> <http://a.org/r> _:c .
"""
TRIG = b"""@prefix : <http://a.org/> .
:g { :a :knows [ :knows :b ; :age 4 ] . :a :name "A"@en }
GRAPH :h { :b :knows :a , <x> } :b :list ( :a :b 1.5e3 true ) .
"""
JSONLD = b"""{"@context": {"e": "http://a.org/", "knows": {"@id": "e:knows", "@type": "@id"},
 "C": {"@id": "e:C", "@context": {"z": "e:z", "back": {"@reverse": "e:knows"}}}},
 "@graph": [{"@id": "e:a", "@type": "C", "knows": ["e:b", {"@id": "e:c"}], "z": 1.5e3},
 {"\\u0040id": "e:b", "e:name": {"@value": "A", "@language": "en"}, "back": "e:a"},
 {"@context": [null, {"@vocab": "http://b.org/"}], "@id": "e:c", "p": {"@list": ["e:a"]}}]}
"""
TRIPLES_TSV = b"head\trelation\ttail\na\tr\tb\nb\tr\tc\nc\ts\ta\n"
TRIPLES_CSV = b'subject,note,relation,object\n"a, or ""A""",,r,b\nb,x,r,c\n'
LINKS_TSV = b"source\ttarget\tprobability\na\tx\t0.9\nb\ty\t0.8\n"
LINKS_CSV = b'target,source\nx,"a, b"\ny,b\n'
SSSOM = b"""#mapping_set_id: https://example.org/set
#curie_map:
#  HP: "http://purl.obolibrary.org/obo/HP_"
#  MP: http://purl.obolibrary.org/obo/MP_
#mapping_date: 2024-02-30
subject_id\tpredicate_id\tpredicate_modifier\tobject_id
HP:1\tskos:exactMatch\t\tMP:1
HP:2\tskos:broadMatch\t\tMP:2
HP:3\towl:equivalentClass\tNot\tMP:3
"""
ALIGNMENT_RDF = b"""<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns="http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<Alignment><xml>yes</xml><level>0</level><type>11</type>
<map><Cell><entity1 rdf:resource="http://a.org#a"/><entity2 rdf:resource="http://b.org#x"/>
<measure rdf:datatype="xsd:float">0.9</measure><relation>=</relation></Cell></map>
<map><Cell><entity1 rdf:resource="http://a.org#b"/><entity2 rdf:resource="http://b.org#y"/>
<measure rdf:datatype="xsd:float">1</measure><relation>&lt;</relation></Cell></map>
</Alignment></rdf:RDF>
"""
ENTITIES_CSV = (
    b'id,name,authors,publisher\nb1,"A, or ""B""",x; y,p1\nb2,C,,p1\np1,P,z,\n'
)
GRAPH_FILES = {
    "a.nt": NTRIPLES,
    "a.ttl": TURTLE,
    "a.rdf": RDFXML,
    "a.nq": NQUADS,
    "a.trig": TRIG,
    "a.jsonld": JSONLD,
    "a.tsv": TRIPLES_TSV,
    "a.csv": TRIPLES_CSV,
}
LINK_FILES = {
    "a.ttl": TURTLE,
    "a.tsv": LINKS_TSV,
    "a.csv": LINKS_CSV,
    "a.rdf": ALIGNMENT_RDF,
    "a.sssom.tsv": SSSOM,
    "a.sssom.csv": SSSOM.replace(b"\t", b","),
}


@few_or_many(12, 1000)
@pytest.mark.parametrize("name", GRAPH_FILES)
def test_graph_files(tmp_path: Path, name: str, num_examples: int) -> None:
    def read(drawn: tuple[bytes, str, bool]) -> None:
        content, on_error, keep_isolated = drawn
        (tmp_path / name).write_bytes(content)
        graph, reading = read_graph_file(
            tmp_path / name, on_error=on_error, keep_isolated=keep_isolated
        )
        check_graph(graph)
        assert len(set(graph.entity_names or ())) == graph.num_entities
        assert all(is_writable(entity) for entity in graph.entity_names or ())
        assert reading.num_bad == 0 or on_error == "skip"

    fuzz(
        st.tuples(damaged(GRAPH_FILES[name]), ON_ERROR, st.booleans()),
        read,
        num_examples,
    )


@few_or_many(12, 800)
@pytest.mark.parametrize("name", LINK_FILES)
def test_link_files(tmp_path: Path, name: str, num_examples: int) -> None:
    def read(drawn: tuple[bytes, str]) -> None:
        content, on_error = drawn
        (tmp_path / name).write_bytes(content)
        listing = read_link_file(tmp_path / name, on_error=on_error)
        assert len(listing.links) == len(listing.places)
        assert list(listing.places) == sorted(listing.places)
        assert all(is_writable(end) for link in listing.links for end in link)

    fuzz(st.tuples(damaged(LINK_FILES[name]), ON_ERROR), read, num_examples)


@few_or_many(12, 1000)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_entity_tables(tmp_path: Path, name: str, num_examples: int) -> None:
    forms = [
        GraphForm(references=("publisher",), lists={"authors": "; "}),
        GraphForm(id_column="name", references=("publisher", "authors")),
        GraphForm(id_column="nothing"),
    ]

    def read(drawn: tuple[bytes, str, GraphForm]) -> None:
        content, on_error, form = drawn
        (tmp_path / name).write_bytes(content)
        graph, _ = read_graph_file(
            tmp_path / name,
            on_error=on_error,
            keep_isolated=True,
            keep_literals=True,
            form=form,
        )
        assert graph.entity_names is not None
        assert all(is_writable(entity) for entity in graph.entity_names)
        assert len(set(graph.entity_names)) == graph.num_entities

    content = ENTITIES_CSV if name == "a.csv" else ENTITIES_CSV.replace(b",", b"\t")
    fuzz(
        st.tuples(damaged(content), ON_ERROR, st.sampled_from(forms)),
        read,
        num_examples,
    )


def matrix_file(kind: str) -> bytes:
    """A small file of vectors."""
    values, file = np.eye(4, 3, dtype=np.float32) + 1, io.BytesIO()
    if kind == "npy":
        np.save(file, values)
    elif kind == "safetensors":
        file.write(save({"vectors": values}))
    else:
        pyarrow, parquet = (
            pytest.importorskip("pyarrow"),
            pytest.importorskip("pyarrow.parquet"),
        )
        columns = {"id": list("abcd"), "v": list(values)}
        if kind == "wide":
            columns = {
                "id": list("abcd"),
                **{f"c{one}": values[:, one] for one in range(3)},
            }
        parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


@few_or_many(12, 1000)
@pytest.mark.parametrize("kind", ["npy", "safetensors", "lists", "wide", "names"])
def test_files_of_vectors(tmp_path: Path, kind: str, num_examples: int) -> None:
    suffix = "parquet" if kind in ("lists", "wide") else kind.replace("names", "npy")
    path = tmp_path / f"v.{suffix}"
    whole, names = matrix_file("npy" if kind == "names" else kind), b"a\nb\nc\nd\n"

    def read(drawn: tuple[bytes, bool]) -> None:
        content, skips_unknown = drawn
        path.write_bytes(whole if kind == "names" else content)
        path.with_suffix(".txt").write_bytes(content if kind == "names" else names)
        found = read_vectors(path, list("abcd"), skips_unknown)
        assert found.values.dtype == np.float32 and np.isfinite(found.values).all()
        assert len(found.values) == len(found.entities) > 0
        assert (np.diff(found.entities) > 0).all()
        assert found.entities[0] >= 0 and found.entities[-1] < 4

    content = damaged(names if kind == "names" else whole)
    fuzz(st.tuples(content, st.booleans()), read, num_examples)


ON_ERROR = st.sampled_from(["stop", "skip"])


def check_graph(graph: KnowledgeGraph) -> None:
    assert graph.num_triples
    assert len(np.unique(graph.triples, axis=0)) == graph.num_triples
    assert graph.entity_names is not None and graph.relation_names is not None
    assert len(graph.entity_names) == graph.num_entities
    assert len(graph.relation_names) == graph.num_relations
    "".join(
        [*graph.entity_names, *graph.relation_names]
    ).encode()  # what is read can be written


def is_writable(name: str) -> bool:
    """Whether a line of a tab-separated file can hold the name."""
    return bool(name) and not set(name) & {"\t", "\n", "\r"} and bool(name.encode())
