"""Statistics of a pair small enough to count by hand."""

from emea.data.arrays import frozen
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.statistics import statistics_table

GRAPH = KnowledgeGraph(frozen([(0, 0, 1), (0, 1, 2), (0, 0, 0)], 3), 4, 2)
EMPTY = KnowledgeGraph(frozen([], 3), 0, 0)


def test_table() -> None:
    links = frozen([(0, 1), (1, 0)], 2)
    pair = GraphPair(
        "two", GRAPH, GRAPH, links, OfficialSplit(links[:1], links[:0], links[1:])
    )
    table = statistics_table(pair)
    lines = table.splitlines()
    assert lines[0] == "two                       source  target"
    expected = ("4", "2", "3", "1.50", "1", "4", "1", "50.0%")
    assert [tuple(line.split()[-2:]) for line in lines[1:9]] == [
        (one, one) for one in expected
    ]
    assert "entities without triple        1       1" in lines
    assert "share of entities linked   50.0%   50.0%" in lines
    assert "links                     2" in lines
    assert "official split            1 train, 0 validation, 1 test" in lines
    assert lines[-1].endswith(pair.checksum())


def test_no_official_parts() -> None:
    table = statistics_table(GraphPair("p", GRAPH, EMPTY, frozen([], 2)))
    assert "official split            none" in table
    assert "entities without triple        1       0" in table
