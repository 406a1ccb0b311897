"""Triples become a graph: against a loop over sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.arrays import frozen
from emea.data.formats.triple_collector import (
    SAME_AS,
    NameTable,
    TripleCollector,
    distinct_triples,
)
from emea.errors import DataError

from ..named_facts import named_edges

names = st.sampled_from([*"abcdef"])
triples = st.tuples(names, st.sampled_from(["r", "s", SAME_AS]), names)


def collected(
    given: list[tuple[str, str, str]], described: list[str]
) -> TripleCollector[str]:
    collector: TripleCollector[str] = TripleCollector(str)
    collector.add(*(list(column) for column in zip(*given, strict=True)))
    collector.add_literals(described, ["a"] * len(described), ['"v"'] * len(described))
    return collector


@given(st.lists(triples, min_size=1), st.lists(names), st.booleans())
def test_as_sets_would_have_it(
    given: list[tuple[str, str, str]], described: list[str], keep_isolated: bool
) -> None:
    edges = [triple for triple in given if triple[1] != SAME_AS]
    if not edges:
        with pytest.raises(DataError, match="no triple between entities"):
            collected(given, described).finish("a.nt", 0, keep_isolated)
        return
    graph, reading = collected(given, described).finish("a.nt", 3, keep_isolated)
    connected = {name for head, _, tail in edges for name in (head, tail)}
    isolated = set(described) - connected
    kept = connected | isolated if keep_isolated else connected
    assert named_edges(graph) == set(edges)
    assert graph.entity_names == sorted(kept)
    assert graph.relation_names == sorted({relation for _, relation, _ in edges})
    assert reading.num_same_as == len(given) - len(edges)
    assert reading.num_duplicates == len(edges) - len(set(edges))
    assert reading.num_isolated == len(isolated)
    assert (reading.num_literals, reading.num_bad) == (len(described), 3)


def test_a_prefixed_same_as_is_no_edge_either() -> None:
    graph, reading = collected([("a", "r", "b"), ("a", "owl:sameAs", "z")], []).finish(
        "", 0, True
    )
    assert graph.entity_names == ["a", "b"]
    assert reading.num_same_as == 1


TRIPLES = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=60)


@given(TRIPLES)
def test_distinct_triples(rows: list[tuple[int, int, int]]) -> None:
    found = distinct_triples(frozen(rows, 3))
    assert list(map(tuple, found.tolist())) == sorted(set(rows))


@given(st.lists(st.lists(st.text(max_size=2))))
def test_numbers_are_those_of_a_loop(blocks: list[list[str]]) -> None:
    table: NameTable[str] = NameTable()
    seen: list[str] = []
    for block in blocks:
        expected = []
        for name in block:
            if name not in seen:
                seen.append(name)
            expected.append(seen.index(name))
        assert table.numbers(block).tolist() == expected
    assert list(table) == seen
    half = len(seen) // 2
    assert list(table.since(half)) == seen[half:][::-1]
    table.forget(half)
    assert list(table) == seen[:half]
