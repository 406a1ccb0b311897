"""Compatibility of a hard mapping against Eq. 19 read literally."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.rules.paris import PARIS, mapping_compatibility

from ..usual import usual
from .literal_paris import both_directions, inverse_functionality, pairs


def literal_compatibility(pair: GraphPair, mapping: dict[int, int]) -> list[float]:
    """Loops over triples: inclusions from the mapped triples, then the product of Eq. 19."""
    source, target = both_directions(pair.source), both_directions(pair.target)
    fun, fun2 = inverse_functionality(source), inverse_functionality(target)
    values = [0.0] * pair.source.num_entities
    mapped = [(mapping[h], r, mapping[t]) for h, r, t in source if {h, t} <= set(mapping)]
    for e, e2 in mapping.items():
        doubt = 1.0
        for _, r, n in [triple for triple in source if triple[0] == e]:
            for _, r2, n2 in [triple for triple in target if triple[0] == e2]:
                shared = [(h2, r2, t2) for h2, q, t2 in mapped if q == r]
                shared = [triple for triple in shared if triple in target]
                size, size2 = (
                    sum(q == s for _, q, _ in kg) for kg, s in ((source, r), (target, r2))
                )
                if mapping.get(n) == n2:
                    # however many source triples are mapped to it, a target triple is one
                    doubt *= 1 - len(set(shared)) / size2 * fun[r]
                    doubt *= 1 - len(shared) / size * fun2[r2]
        values[e] = 1 - doubt
    return values


def as_tensor(pair: GraphPair, mapping: dict[int, int]) -> torch.Tensor:
    return torch.tensor([mapping.get(e, -1) for e in range(pair.source.num_entities)])


@given(st.data(), pairs())
def test_equals_the_triple_loop(data: st.DataObject, pair: GraphPair) -> None:
    target = st.integers(-1, pair.target.num_entities - 1)
    size = pair.source.num_entities
    drawn = data.draw(st.lists(target, min_size=size, max_size=size))
    mapping = {e: e2 for e, e2 in enumerate(drawn) if e2 >= 0}
    values = mapping_compatibility(usual(PARIS, pair), torch.tensor(drawn))
    np.testing.assert_allclose(values, literal_compatibility(pair, mapping), atol=1e-5)


def random_graph(num_entities: int = 60, num_relations: int = 4) -> KnowledgeGraph:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, num_entities, (240, 2))
    relations = rng.integers(0, num_relations, 240)
    triples = np.stack([ends[:, 0], relations, ends[:, 1]], axis=1)
    return KnowledgeGraph(triples, num_entities, num_relations)


def test_identical_graphs_are_compatible_and_shuffled_ones_are_not() -> None:
    graph = random_graph()
    pair = GraphPair("twins", graph, graph, np.empty((0, 2), dtype=np.int64))
    rule, same = usual(PARIS, pair), torch.arange(graph.num_entities)
    connected = torch.from_numpy(graph.degrees() > 0)
    assert mapping_compatibility(rule, same)[connected].min() > 0.9
    shuffled = same[torch.from_numpy(np.random.default_rng(1).permutation(len(same)))]
    assert mapping_compatibility(rule, shuffled).mean() < 0.2


def test_an_earlier_mapping_leaves_no_trace() -> None:
    graph = random_graph()
    pair = GraphPair("twins", graph, graph, np.empty((0, 2), dtype=np.int64))
    rule, same = usual(PARIS, pair), torch.arange(graph.num_entities)
    first = mapping_compatibility(rule, same)
    assert mapping_compatibility(rule, torch.full_like(same, -1)).eq(0).all()
    assert torch.equal(mapping_compatibility(rule, same), first)


@pytest.mark.gpu
def test_a_gpu_says_the_same() -> None:
    pair = synthetic_pair(num_entities=300, seed=0)
    targets = as_tensor(pair, dict(pair.links.tolist()))
    on_gpu = mapping_compatibility(usual(PARIS, pair, device="cuda"), targets.cuda())
    torch.testing.assert_close(on_gpu.cpu(), mapping_compatibility(usual(PARIS, pair), targets))
