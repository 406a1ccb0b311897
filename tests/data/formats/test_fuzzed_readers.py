"""Whatever a file holds, reading it ends well or in a sentence."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.link_file import read_link_file
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.id_format import read_id_format
from emea.data.sources.own_files import read_own_files

from ...mutated_files import damaged, few_or_many, fuzz
from ...usual import usual

Files = dict[str, bytes]

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
GRAPH_FILES = {
    "a.nt": NTRIPLES,
    "a.ttl": TURTLE,
    "a.rdf": RDFXML,
    "a.tsv": TRIPLES_TSV,
    "a.csv": TRIPLES_CSV,
}
LINK_FILES = {
    "a.ttl": TURTLE,
    "a.tsv": LINKS_TSV,
    "a.csv": LINKS_CSV,
    "a.sssom.tsv": SSSOM,
    "a.sssom.csv": SSSOM.replace(b"\t", b","),
}
ID_FOLDER: Files = {
    "triples_1": b"0\t7\t1\n1\t8\t2\n2\t8\t-3\n",
    "triples_2": b"10\t9\t11\r\n11\t9\t12\r\n",
    "ent_ids_1": b"0\ta\n1\tb\n2\tc\n-3\td\n",
    "ent_ids_2": b"\xef\xbb\xbf10\tA\n11\tB\n12\tC\n13\tD\n",
    "rel_ids_1": b"7\tborn in\n8\tlives in\n",
    "sup_ent_ids": b"0\t10\n",
    "valid_ent_ids": b"1\t11\n",
    "ref_ent_ids": b"0\t10\n2\t12\n-3\t13\n",
}
OWN_FILES: Files = {
    "a.nt": NTRIPLES,
    "b.csv": b"x,q,y\ny,q,z\nz,q,http://b.org/x\n",
    "seeds.sssom.tsv": b"#curie_map:\n#  e: http://a.org/\nsubject_id\tobject_id\ne:a\tx\ne:b\ty\n",
    "test.tsv": b"_:c\tz\n",
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

    fuzz(st.tuples(damaged(GRAPH_FILES[name]), ON_ERROR, st.booleans()), read, num_examples)


@few_or_many(12, 800)
def test_parquet_files(tmp_path: Path, num_examples: int) -> None:
    whole = parquet(head=[*"abc"], relation=[*"rrs"], tail=[1, 2, 3])

    def read(content: bytes) -> None:
        (tmp_path / "a.parquet").write_bytes(content)
        check_graph(read_graph_file(tmp_path / "a.parquet", on_error="skip")[0])

    columns = st.dictionaries(
        st.sampled_from(["head", "subject", "relation", "tail", "Tail ", "a.b", ""]),
        st.one_of(st.lists(cells, min_size=2, max_size=2) for cells in CELLS),
        max_size=4,
    )
    fuzz(damaged(whole) | columns.map(lambda drawn: parquet(**drawn)), read, num_examples)


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


@few_or_many(12, 1300)
def test_folders_of_ids(tmp_path: Path, num_examples: int) -> None:
    fuzz_folder(tmp_path, ID_FOLDER, partial(usual, read_id_format), num_examples)


@few_or_many(12, 1300)
def test_own_files(tmp_path: Path, num_examples: int) -> None:
    def read(folder: Path) -> GraphPair:
        names = ("a.nt", "b.csv", "seeds.sssom.tsv", "test.tsv")
        return read_own_files(*(folder / name for name in names), on_error="skip")

    fuzz_folder(tmp_path, OWN_FILES, read, num_examples)


ON_ERROR = st.sampled_from(["stop", "skip"])
CELLS = (
    st.none() | st.binary(max_size=3),
    st.floats(),
    st.datetimes(),
    st.lists(st.text(max_size=2), max_size=2),
)


def parquet(**columns: list[object]) -> bytes:
    """The bytes of a Parquet file."""
    pyarrow = pytest.importorskip("pyarrow")
    file = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), file)
    return file.getvalue()


def fuzz_folder(
    folder: Path, files: Files, read: Callable[[Path], GraphPair], num_examples: int
) -> None:
    """Damage one file of a folder, or leave it out."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    changes = st.sampled_from(sorted(files)).flatmap(
        lambda name: st.tuples(st.just(name), damaged(files[name]) | st.none())
    )

    def read_damaged(change: tuple[str, bytes | None]) -> None:
        name, content = change
        path = folder / name
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        try:
            check_pair(read(folder))
        finally:
            path.write_bytes(files[name])

    fuzz(changes, read_damaged, num_examples)


def check_pair(pair: GraphPair) -> None:
    """Ids are checked when a pair is made."""
    check_graph(pair.source)
    check_graph(pair.target)
    assert len(pair.links)
    assert len(pair.checksum()) == 64


def check_graph(graph: KnowledgeGraph) -> None:
    assert graph.num_triples
    assert len(np.unique(graph.triples, axis=0)) == graph.num_triples
    assert graph.entity_names is not None and graph.relation_names is not None
    assert len(graph.entity_names) == graph.num_entities
    assert len(graph.relation_names) == graph.num_relations
    "".join([*graph.entity_names, *graph.relation_names]).encode()  # what is read can be written


def is_writable(name: str) -> bool:
    """Whether a line of a tab-separated file can hold the name."""
    return bool(name) and not set(name) & {"\t", "\n", "\r"} and bool(name.encode())
