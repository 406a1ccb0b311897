"""Rows, statements and kinds of an alignment."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest

from emea.answer.alignment import Alignment, statements, supported
from emea.answer.rdf import owl_triples
from emea.answer.sssom import sssom_lines
from emea.data.entity_kinds import OWL, RDF
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, LiteralMatches

from .odd_alignments import ORIGIN, alignment_of


def test_rows_name_what_the_arrays_number() -> None:
    first, second, third = alignment_of(["a", "b", "c"], ["x", "y"], [1, -1, 0]).rows()
    assert first[:5] == ("a", "y", 1.0, True, [("y", 0.25), ("x", 0.125)])
    assert second[:5] == ("b", None, 0.0, False, [("x", 0.25), ("x", 0.125)])
    # the graphs have no labels
    assert first[5:] == ("a", "y") and second[5:] == ("b", None)
    assert third[:4] == ("c", "x", 1 / 3, False)


def test_fewer_candidates_on_demand_and_none_without_a_chance() -> None:
    alignment = alignment_of(["a"], ["x", "y"], [1])
    assert next(alignment.rows(1)).candidates == [("y", 0.25)]
    alignment.candidate_probs[0, 1] = 0
    assert next(alignment.rows()).candidates == [("y", 0.25)]


SOURCE = [
    "http://a.org/City",
    "http://a.org/berlin",
    "http://a.org/mayor",
    "_:b0",
    "柏:林",
]
TARGET = [
    "http://b.org/Stadt",
    "http://b.org/柏林",
    "http://b.org/bm",
    "_:x",
    f"{OWL}Class",
]


def typed_alignment(targets: list[int]) -> Alignment:
    """Entity 0 is a class, 2 a property and 3 a blank node, on both sides."""
    graphs = []
    for names in (SOURCE, TARGET):
        everything = [*names, f"{OWL}ObjectProperty"]
        triples = np.array([(1, 0, 0), (2, 0, len(names))])
        graphs.append(
            KnowledgeGraph(triples, len(everything), 1, everything, [f"{RDF}type"])
        )
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


def test_blank_nodes_and_mixed_pairs_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
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
    path.write_text(
        "".join(f"{line}\n" for line in sssom_lines(alignment)), encoding="utf-8"
    )
    frame = parsers.parse_sssom_table(str(path)).df
    assert len(frame) == len(list(statements(alignment)))
    assert set(frame["predicate_id"]) == {
        "owl:sameAs",
        "owl:equivalentClass",
        "owl:equivalentProperty",
    }


def random_alignment(seed: int) -> Alignment:
    """An alignment of random graphs, with random values that match."""
    rng = np.random.default_rng(seed)
    size, num_values = 8, 5

    def graph(num_edges: int, first: int, last: int) -> KnowledgeGraph:
        heads, tails = (
            rng.integers(0, size, num_edges),
            rng.integers(first, last, num_edges),
        )
        relations = rng.integers(0, 2, num_edges)
        return KnowledgeGraph(
            np.stack([heads, relations, tails], axis=1), size + num_values, 2
        )

    plain = [graph(12, 0, size), graph(12, 0, size)]
    extended = [
        replace(
            one, triples=np.concatenate([one.triples, graph(6, size, size + 5).triples])
        )
        for one in plain
    ]
    pairs = rng.integers(size, size + num_values, (6, 2))
    nothing = np.zeros((0, 2), dtype=np.int64)
    matches = LiteralMatches(
        *extended, np.unique(pairs, axis=0), np.ones(6), nothing, np.ones(0)
    )
    pair = GraphPair("p", *(replace(one, num_entities=size) for one in plain), nothing)
    targets = np.where(rng.random(size) < 0.7, rng.integers(0, size, size), -1)
    found = alignment_of(list("abcdefgh"), list("stuvwxyz"), targets.tolist())
    return replace(found, pair=replace(pair, literals=matches))


@pytest.mark.parametrize("seed", range(20))
def test_the_evidence_of_a_match_is_that_of_a_loop(seed: int) -> None:
    alignment = random_alignment(seed)
    pair, targets = alignment.pair, alignment.targets.tolist()
    assert pair.literals is not None
    known = {(h, t) for h, _, t in pair.target.triples.tolist()}
    values = {(h, t) for h, _, t in pair.literals.target.triples.tolist()}
    matched = set(map(tuple, pair.literals.pairs.tolist()))
    structural, lexical = set(), set()
    for head, _, tail in pair.literals.source.triples.tolist():
        if tail < 8:
            both = targets[head], targets[tail]
            if -1 not in both and (both in known or both[::-1] in known):
                structural |= {head, tail}
        elif any(
            (targets[head], other) in values for one, other in matched if one == tail
        ):
            lexical.add(head)
    if not structural:  # only literals were compared, also for entities without a match
        lexical |= {entity for entity, target in enumerate(targets) if target < 0}
    by_structure, by_literals = supported(alignment)
    assert set(np.flatnonzero(by_structure).tolist()) == structural
    assert set(np.flatnonzero(by_literals).tolist()) == lexical
    reasons = [
        line.split("\t")[7] for line in sssom_lines(alignment) if line[0] != "#"
    ][1:]
    for entity, reason in enumerate(reasons[1:], 1):
        expected = "Structural" if entity not in lexical else "Lexical"
        expected = "Composite" if entity in structural & lexical else expected
        assert reason == f"semapv:{expected}Matching"
