"""The benchmark of hubs: its graph, and its numbers."""

from benchmarks.hubs import hub_graph, measure
from emea.rules.directed_triples import DirectedTriples


def test_the_relation_of_the_hub_is_functional_elsewhere() -> None:
    graph = hub_graph(50)
    triples = DirectedTriples(graph)
    of_hub = (graph.triples[:, 1] == 0) & (graph.triples[:, 2] == 0)
    assert of_hub.sum() == 50
    assert float(triples.inverse_functionality[0]) > 0.5


def test_every_phase_is_measured() -> None:
    numbers = measure(20)
    phases = {"table", "evidence", "propagation", "avoid_conflict", "explanation"}
    assert set(numbers) == {*phases, "memory_mb"}
    assert min(numbers.values()) >= 0
