"""One graph, many formats: what is written is what is read."""

import csv
import gzip
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode, RdfFormat, Triple

from emea.data.formats.graph_file import parquet_rows, read_graph_file
from emea.data.formats.input_file import BadLines
from emea.errors import DataError

from ..named_facts import named_edges

Triples = Sequence[tuple[str, str, str]]
BASE = "http://a.org/"
RDF = {"nt": RdfFormat.N_TRIPLES, "ttl": RdfFormat.TURTLE, "rdf": RdfFormat.RDF_XML}

local = st.text(st.sampled_from("abzAZ019-._~%é日😀()'&"), min_size=1, max_size=4).map(
    lambda text: text.replace("%", "%41")
)
iris = local.map(lambda text: BASE + text)
nodes = st.one_of(iris, st.sampled_from(["_:a", "_:b1"]))
predicates = st.sampled_from([f"{BASE}knows", f"{BASE}likes", "http://b.org/é"])
rdf_triples = st.lists(st.tuples(nodes, predicates, nodes), min_size=1, max_size=12)
words = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\r\n"),
    min_size=1,
)
word_triples = st.lists(st.tuples(words, words, words), min_size=1, max_size=12)


def term(name: str) -> NamedNode | BlankNode:
    return BlankNode(name[2:]) if name.startswith("_:") else NamedNode(name)


def rdf_text(triples: Triples, file_format: RdfFormat) -> bytes:
    statements = [Triple(term(h), NamedNode(r), term(t)) for h, r, t in triples]
    text = pyoxigraph.serialize(statements, format=file_format)
    assert text is not None
    return text


def table_text(triples: Triples, suffix: str) -> bytes:
    if suffix == "tsv":
        return "".join("\t".join(triple) + "\n" for triple in triples).encode()
    text = io.StringIO()
    csv.writer(text).writerows(triples)
    return text.getvalue().encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("suffix", RDF)
@given(triples=rdf_triples)
def test_rdf_round_trip(
    folder: Path, suffix: str, packed: bool, triples: Triples
) -> None:
    text = rdf_text(triples, RDF[suffix])
    path = folder / (f"a.{suffix}.gz" if packed else f"a.{suffix}")
    path.write_bytes(gzip.compress(text) if packed else text)
    graph, reading = read_graph_file(path)
    assert named_edges(graph) == set(triples)
    assert reading.num_duplicates == len(triples) - len(set(triples))


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
@given(triples=word_triples)
def test_table_round_trip(folder: Path, suffix: str, triples: Triples) -> None:
    # a header keeps a first row of header words, or one with a byte order mark, from being one
    header = table_text([("head", "relation", "tail")], suffix)
    path = folder / f"a.{suffix}"
    path.write_bytes(header + table_text(triples, suffix))
    edges = {triple for triple in triples if triple[1] != "owl:sameAs"}
    assert named_edges(read_graph_file(path)[0]) == edges


def test_all_formats_give_the_same_graph(folder: Path) -> None:
    triples = [
        (f"{BASE}{h}", f"{BASE}{r}", f"{BASE}{t}")
        for h, r, t in ("arb", "bsc", "carb"[:3])
    ]
    texts = {suffix: rdf_text(triples, kind) for suffix, kind in RDF.items()}
    texts |= {suffix: table_text(triples[::-1], suffix) for suffix in ("tsv", "csv")}
    graphs = []
    for suffix, text in texts.items():
        (folder / f"same.{suffix}").write_bytes(text)
        graphs.append(read_graph_file(folder / f"same.{suffix}")[0])
    for graph in graphs[1:]:
        assert np.array_equal(graph.triples, graphs[0].triples)
        assert graph.entity_names == graphs[0].entity_names


@pytest.mark.parametrize("suffix", ["nt", "ttl", "tsv", "csv"])
def test_an_empty_file(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.{suffix}").write_bytes(b"")
    with pytest.raises(DataError, match="contains no triples: it is empty"):
        read_graph_file(tmp_path / f"a.{suffix}")


def test_literals_alone(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(f'<{BASE}a> <{BASE}name> "A" .\n')
    with pytest.raises(
        DataError, match=r"1 triples with a literal.*; set literals=similar"
    ):
        read_graph_file(tmp_path / "a.nt")


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
        tmp_path / "a.parquet",
        tail=[1, 2, 3],
        note=[0, 0, 0],
        head=[*"abc"],
        relation=[*"rst"],
    )
    assert read(path) == [(1, "a", "r", "1"), (2, "b", "s", "2"), (3, "c", "t", "3")]


def test_columns_by_place(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.parquet", x=["a"], y=["r"], z=["b"])) == [
        (1, "a", "r", "b")
    ]


def test_other_columns(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="has the columns x, y, but head, relation, tail are expected"
    ):
        read(write(tmp_path / "a.parquet", x=["a"], y=["r"]))


def test_a_missing_value(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet", head=["a", None], relation=["r", "r"], tail=["b", "c"]
    )
    with pytest.raises(DataError, match=r"a\.parquet, row 2: column 1 is empty"):
        read(path)
    assert read(path, "skip") == [(1, "a", "r", "b")]


def test_text_that_is_not_said_to_be_text(tmp_path: Path) -> None:
    columns = {
        "head": [b"a", b"\xff"],
        "relation": [b"r", b"r"],
        "tail": [b"\xc3\xa9", b"b"],
    }
    path = write(tmp_path / "a.parquet", **columns)
    assert read(path, "skip") == [(1, "a", "r", "é")]
    with pytest.raises(DataError, match=r"a\.parquet, row 2: column 1 is not UTF-8"):
        read(path)


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_cells_that_are_no_single_value(tmp_path: Path, value: object) -> None:
    path = write(tmp_path / "a.parquet", head=[value], relation=["r"], tail=["b"])
    with pytest.raises(
        DataError, match=r"a\.parquet: column head contains (list|struct)<.*, but each"
    ):
        read(path)


def test_columns_of_one_name(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = ["head", "relation", "tail", "head"]
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 4, names)
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet has more than one column head"):
        read(tmp_path / "a.parquet")


def test_a_date_that_python_has_no_room_for(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    dates = pyarrow.array([2**62], pyarrow.timestamp("us"))
    path = write(tmp_path / "a.parquet", head=["a"], relation=["r"], tail=dates)
    with pytest.raises(
        DataError, match=r"a\.parquet cannot be read as Parquet: date value"
    ):
        read(path)


def test_text_that_is_not_what_it_is_said_to_be(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    offsets, text = (pyarrow.py_buffer(part) for part in (b"\0\0\0\0\1\0\0\0", b"\xff"))
    broken = pyarrow.StringArray.from_buffers(1, offsets, text)
    path = write(tmp_path / "a.parquet", head=broken, relation=["r"], tail=["b"])
    with pytest.raises(
        DataError, match=r"a\.parquet cannot be read as Parquet: .*byte 0xff"
    ):
        read(path)


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"what"])
def test_what_is_no_parquet(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "a.parquet")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install pyarrow"):
        read(tmp_path / "a.parquet")


def test_a_number_that_is_missing_is_not_a_name_or_a_value(tmp_path: Path) -> None:
    nan = float("nan")
    columns = {"head": [1.0, nan, 3.0], "relation": [*"rrr"], "tail": [*"abc"]}
    path = write(tmp_path / "a.parquet", **columns, size=[nan, 1.0, 2.5])
    rows = list(parquet_rows(path, NAMES, BadLines(path.name, "skip", "row"), ["size"]))
    assert [(row.line, row.attributes) for row in rows] == [
        (1, []),
        (3, [("size", "2.5")]),
    ]


def test_heads_and_tails_are_numbers_of_the_same_kind(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", head=[1, 2], relation=[*"rr"], tail=[2.0, 1.0])
    with pytest.raises(DataError, match="Convert tail to integers"):
        read(path)
