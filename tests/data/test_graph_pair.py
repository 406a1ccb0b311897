"""Graphs, pairs and their relabelling."""

import numpy as np
import pytest

from emea.data.arrays import frozen
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.errors import DataError

SOURCE = KnowledgeGraph(frozen([(0, 0, 1), (1, 0, 2)], 3), 3, 1, ["a", "b", "c"])
TARGET = KnowledgeGraph(frozen([(2, 0, 0)], 3), 3, 1, ["A", "B", "C"])
LINKS = frozen([(0, 0), (2, 1)], 2)
PAIR = GraphPair(
    "p", SOURCE, TARGET, LINKS, OfficialSplit(LINKS[:1], LINKS[:0], LINKS[1:])
)


def test_shuffling_keeps_names_and_structure() -> None:
    pair = PAIR.shuffled(0)
    names = pair.source.entity_names
    assert names is not None and list(names) != ["a", "b", "c"]
    assert [(names[h], names[t]) for h, _, t in pair.source.triples] == [
        ("a", "b"),
        ("b", "c"),
    ]
    found = [
        (pair.source.entity_name(s), pair.target.entity_name(t)) for s, t in pair.links
    ]
    assert found == [("a", "A"), ("c", "B")]
    assert pair.official is not None
    assert np.array_equal(pair.official.test, pair.links[1:])


def test_checksum_distinguishes_pairs() -> None:
    assert PAIR.checksum() == GraphPair("other", SOURCE, TARGET, LINKS).checksum()
    assert PAIR.checksum() != GraphPair("p", SOURCE, TARGET, LINKS[:1]).checksum()
    assert PAIR.checksum() != GraphPair("p", TARGET, SOURCE, LINKS).checksum()


def test_arrays_are_read_only_copies() -> None:
    triples = np.array([[0, 0, 1]])
    graph = KnowledgeGraph(triples, 2, 1)
    triples[0, 0] = 1
    assert graph.triples.tolist() == [[0, 0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        graph.triples[0, 0] = 1


@pytest.mark.parametrize(
    ("triple", "message"),
    [
        ((0, 0, 2), "entity ids must lie in 0..1, found 0..2"),
        ((0, 1, 1), "relation ids must lie in 0..0, found 1..1"),
    ],
)
def test_ids_out_of_range(triple: tuple[int, int, int], message: str) -> None:
    with pytest.raises(DataError) as error:
        KnowledgeGraph(frozen([triple], 3), 2, 1)
    assert str(error.value) == message


TWICE = (
    "p: a {0} entity occurs more than once in the official split, but cardinality=one_to_one "
    "allows one link of each {0} entity. Choose another cardinality."
)


def test_links_must_be_one_to_one() -> None:
    with pytest.raises(
        DataError, match=r"^p: a target entity occurs more than once in the links"
    ):
        GraphPair("p", SOURCE, TARGET, frozen([(0, 0), (1, 0)], 2))


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ([(0, 2)], TWICE.format("source")),
        ([(2, 0)], TWICE.format("target")),
        ([(2, 3)], "target entity ids must lie in 0..2, found 0..3"),
    ],
)
def test_official_parts_must_be_apart(
    test: list[tuple[int, int]], message: str
) -> None:
    official = OfficialSplit(LINKS[:1], LINKS[:0], frozen(test, 2))
    with pytest.raises(DataError) as error:
        GraphPair("p", SOURCE, TARGET, LINKS, official)
    assert str(error.value) == message
