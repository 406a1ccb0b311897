"""Graphs from objects of other libraries, compared with the same triples in a file."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from emea.aligner import graph_of, read_graph
from emea.data.graph import KnowledgeGraph
from emea.errors import DataError

from ..named_facts import named_edges

TURTLE = """
@prefix x: <http://x.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
x:a x:r x:b . x:b x:r x:c . x:c x:s _:d .
x:a rdfs:label "A \\"one\\""@EN . x:a x:size 5 . x:b x:note "plain" .
"""
ROWS = [("a", "r", "b"), ("b", "r", "c"), ("a", "r", "b"), ("c", "s", "a")]


def described(graph: KnowledgeGraph) -> set[tuple[str, str, str, str, str]]:
    found = graph.attributes
    assert found is not None
    return {
        (
            graph.entity_name(e),
            found.attribute_names[a],
            found.values[v],
            *found.kind(v),
        )
        for e, a, v in found.triples.tolist()
    }


def without_blank(triples: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    return {(h, r, "_:" if t.startswith("_:") else t) for h, r, t in triples}


class Term(str):
    """What rdflib's terms have in common."""


class URIRef(Term):
    """A stand-in for an IRI of rdflib."""


class BNode(Term):
    """A stand-in for a blank node of rdflib."""


class Literal(Term):
    """A stand-in for a literal of rdflib."""

    def __new__(
        cls, text: str, language: str | None = None, datatype: str | None = None
    ) -> Any:
        made = super().__new__(cls, text)
        made.language, made.datatype = language, datatype  # type: ignore[attr-defined]
        return made


class StandIn:
    """A stand-in for a graph of rdflib."""

    namespace_manager = None

    def triples(self) -> None:
        """Exist."""

    def __iter__(self) -> Iterator[tuple[Term, Term, Term]]:
        x, label = "http://x.org/", "http://www.w3.org/2000/01/rdf-schema#label"
        a, b, c = (URIRef(f"{x}{name}") for name in "abc")
        r, s = URIRef(f"{x}r"), URIRef(f"{x}s")
        integer = "http://www.w3.org/2001/XMLSchema#integer"
        yield from [(a, r, b), (b, r, c), (c, s, BNode("d"))]
        yield a, URIRef(label), Literal('A "one"', "EN")
        yield a, URIRef(f"{x}size"), Literal("5", datatype=integer)
        yield b, URIRef(f"{x}note"), Literal("plain")


def rdflib_graph() -> Any:
    graph = pytest.importorskip("rdflib").Graph()
    graph.parse(data=TURTLE, format="turtle")
    return graph


@pytest.mark.parametrize("make", [StandIn, rdflib_graph])
def test_an_rdflib_graph_is_the_graph_of_its_file(make: Any, tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(TURTLE)
    expected, found = (
        read_graph(tmp_path / "a.ttl", literals=True),
        graph_of(make(), literals=True),
    )
    assert without_blank(named_edges(found)) == without_blank(named_edges(expected))
    assert described(found) == described(expected)
    assert found.labels == expected.labels
    assert graph_of(make()).attributes is None
    assert graph_of(make()).labels == expected.labels


@pytest.mark.parametrize(
    "header", [("head", "relation", "tail"), ("S", "P", "O"), ("x", "y", "z")]
)
def test_a_frame_is_the_graph_of_its_rows(header: tuple[str, str, str]) -> None:
    assert named_edges(graph_of(pd.DataFrame(ROWS, columns=list(header)))) == set(ROWS)
    numbers = pd.DataFrame([(1, "r", 2), (2, "r", 3)])
    assert named_edges(graph_of(numbers)) == {("1", "r", "2"), ("2", "r", "3")}


def test_a_frame_may_have_attributes() -> None:
    frame = pd.DataFrame(
        {
            "name": ["Anna", None, "Cleo"],
            "subject": ["a", "b", "a"],
            "predicate": ["r", "r", "born"],
            "object": ["b", "c", "1999"],
            "other": [1, 2, 3],
        }
    )
    graph = graph_of(frame, attributes=["name", "born"])
    assert named_edges(graph) == {("a", "r", "b"), ("b", "r", "c")}
    assert described(graph) == {
        *(("a", "name", "Anna", "", ""), ("a", "name", "Cleo", "", "")),
        ("a", "born", "1999", "", ""),
    }


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (
            pd.DataFrame([("a", "b")], columns=["head", "tail"]),
            "needs the columns head",
        ),
        (pd.DataFrame([("a", "r", None)]), "Row 1 of the data frame has an empty cell"),
        (
            pd.DataFrame([("a", "r", "b"), ("a", np.nan, "b")]),
            "Row 2 of the data frame",
        ),
        (
            pd.DataFrame(columns=["head", "relation", "tail"]),
            "the data frame contains no triples",
        ),
    ],
)
def test_a_frame_that_is_no_graph(frame: pd.DataFrame, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        graph_of(frame)


def test_a_triples_factory_is_the_graph_of_its_triples() -> None:
    entities, relations = {"c": 2, "a": 0, "b": 1}, {"r": 0, "s": 1}
    ids = np.array([(entities[h], relations[r], entities[t]) for h, r, t in ROWS])
    factory = SimpleNamespace(
        mapped_triples=ids,
        num_entities=3,
        num_relations=2,
        entity_to_id=entities,
        relation_to_id=relations,
    )
    assert named_edges(graph_of(factory)) == set(ROWS)  # type: ignore[arg-type]
    core = SimpleNamespace(mapped_triples=ids, num_entities=3, num_relations=2)
    expected = {
        (str(entities[h]), str(relations[r]), str(entities[t])) for h, r, t in ROWS
    }
    assert named_edges(graph_of(core)) == expected  # type: ignore[arg-type]


def test_heads_and_tails_of_a_frame_are_numbers_of_the_same_kind() -> None:
    frame = pd.DataFrame(
        {"head": [1, 2], "relation": ["r", "r"], "tail": [2.0, None]}
    ).dropna()
    with pytest.raises(DataError, match="Convert tail to integers"):
        graph_of(frame)
    assert graph_of(frame.astype({"tail": int})).num_entities == 2
