"""Rows, statements and kinds of an alignment."""

import io
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest

from emea.answer.alignment import Alignment, statements
from emea.answer.exporting import owl_triples
from emea.answer.sssom import sssom_lines
from emea.data.entity_kinds import OWL, RDF
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair

from .odd_alignments import ORIGIN, alignment_of


def test_rows_name_what_the_arrays_number() -> None:
    first, second, third = alignment_of(["a", "b", "c"], ["x", "y"], [1, -1, 0]).rows()
    assert first[:5] == ("a", "y", 1.0, True, [("y", 0.25), ("x", 0.125)])
    assert second[:5] == ("b", None, 0.0, False, [("x", 0.25), ("x", 0.125)])
    assert first[5:] == second[5:] == (None, None)  # the graphs have no labels
    assert third[:4] == ("c", "x", 1 / 3, False)


def test_fewer_candidates_on_demand_and_none_without_a_chance() -> None:
    alignment = alignment_of(["a"], ["x", "y"], [1])
    assert next(alignment.rows(1)).candidates == [("y", 0.25)]
    alignment.candidate_probs[0, 1] = 0
    assert next(alignment.rows()).candidates == [("y", 0.25)]


SOURCE = ["http://a.org/City", "http://a.org/berlin", "http://a.org/mayor", "_:b0", "柏:林"]
TARGET = ["http://b.org/Stadt", "http://b.org/柏林", "http://b.org/bm", "_:x", f"{OWL}Class"]


def typed_alignment(targets: list[int]) -> Alignment:
    """Entity 0 is a class, 2 a property and 3 a blank node, on both sides."""
    graphs = []
    for names in (SOURCE, TARGET):
        everything = [*names, f"{OWL}ObjectProperty"]
        triples = np.array([(1, 0, 0), (2, 0, len(names))])
        graphs.append(KnowledgeGraph(triples, len(everything), 1, everything, [f"{RDF}type"]))
    chosen = np.array([*targets, -1])
    width = np.zeros((len(chosen), 1))
    return Alignment(
        GraphPair("p", *graphs, np.zeros((0, 2), dtype=np.int64)),
        ORIGIN,
        chosen,
        np.where(chosen < 0, 0.0, 0.75),
        np.zeros(len(chosen), dtype=bool),
        width.astype(np.int64),
        width,
    )


def test_each_kind_has_its_predicate() -> None:
    lines = list(owl_triples(typed_alignment([0, 1, 2, -1, -1])))
    assert lines == [
        f"<http://a.org/City> <{OWL}equivalentClass> <http://b.org/Stadt> .",
        f"<http://a.org/berlin> <{OWL}sameAs> <http://b.org/柏林> .",
        f"<http://a.org/mayor> <{OWL}equivalentProperty> <http://b.org/bm> .",
    ]


def test_blank_nodes_and_mixed_pairs_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    alignment = typed_alignment([1, 0, -1, 4, 3])
    assert [statement.row.source for statement in statements(alignment)] == [
        "http://a.org/mayor",
        f"{OWL}ObjectProperty",
    ]
    assert "2 pairs that join entities of different kinds" in caplog.text
    assert list(owl_triples(alignment)) == []
    assert not any("_:" in line for line in sssom_lines(alignment))


def test_a_triple_store_reads_every_triple() -> None:
    text = "\n".join(owl_triples(typed_alignment([0, 1, 2, -1, -1])))
    store = pyoxigraph.Store()
    store.load(io.BytesIO(text.encode()), format=pyoxigraph.RdfFormat.N_TRIPLES)
    assert len(store) == 3


def test_sssom_py_keeps_every_row(tmp_path: Path) -> None:
    parsers = pytest.importorskip("sssom.parsers")
    alignment = typed_alignment([0, 1, 2, -1, 1])
    path = tmp_path / "alignment.sssom.tsv"
    path.write_text("".join(f"{line}\n" for line in sssom_lines(alignment)), encoding="utf-8")
    frame = parsers.parse_sssom_table(str(path)).df
    assert len(frame) == len(list(statements(alignment)))
    assert set(frame["predicate_id"]) == {
        "owl:sameAs",
        "owl:equivalentClass",
        "owl:equivalentProperty",
    }
