"""Evidence from all of q against Eq. 19 read literally."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.matching import similarity as similarity_module
from emea.matching.beliefs import Beliefs, DenseBeliefs
from emea.matching.similarity import Cosine
from emea.rules import dense_evidence
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView

from ..usual import usual
from .literal_paris import LiteralPARIS, as_mapping, best_alone, both_directions, inclusions, pairs


def random_view(pair: GraphPair, num_candidates: int, seed: int) -> tuple[RuleView, Beliefs]:
    """Return a view with random embeddings, and q over all targets in order of their ids."""
    generator = torch.Generator().manual_seed(seed)
    sizes = pair.source.num_entities, pair.target.num_entities
    source, target = (torch.randn(size, 5, generator=generator) for size in sizes)
    dense = DenseBeliefs(Cosine()(source, target), 3.0, torch.from_numpy(pair.links.copy()))
    probs = torch.cat([block for _, block in dense.blocks()])
    everything = torch.arange(sizes[1]).repeat(sizes[0], 1)
    best = probs.topk(min(num_candidates, sizes[1]), dim=1)
    beliefs = Beliefs(best.indices, best.values)
    return RuleView(beliefs, source, dense=dense), Beliefs(everything, probs)


def prepared(pair: GraphPair, view: RuleView) -> PARIS:
    rule = usual(PARIS, pair)
    rule.prepare(view)
    return rule


@pytest.mark.parametrize("size", [1, 5, 2**20])
@settings(deadline=None, max_examples=20)
@given(pair=pairs(), num_candidates=st.integers(1, 7), seed=st.integers(0, 2**32))
def test_equals_the_triple_loop_over_all_targets(
    size: int, pair: GraphPair, num_candidates: int, seed: int
) -> None:
    view, everything = random_view(pair, num_candidates, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense_evidence, "PIECES_PER_BLOCK", {"cpu": size})
        patch.setattr(similarity_module, "BLOCK_BYTES", {"cpu": 20 * size})
        values = prepared(pair, view)(view.beliefs)[:, :, 0]
    source, target = both_directions(pair.source), both_directions(pair.target)
    q = as_mapping(everything)
    # relations are included by the best candidates, which are the same with and without the rest
    trusted = best_alone(as_mapping(view.beliefs))
    twin = LiteralPARIS(source, target, inclusions(source, target, trusted))
    rows = enumerate(view.beliefs.targets.tolist())
    expected = np.array([[twin.value(e, e2, q) for e2 in targets] for e, targets in rows])
    np.testing.assert_allclose(values.numpy(), expected, atol=1e-5)


def test_large_hubs_keep_the_evidence_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    # entity 0 has six triples, each leaf has one
    graph = KnowledgeGraph(np.array([[0, 0, leaf] for leaf in range(1, 7)]), 7, 1)
    pair = GraphPair("stars", graph, graph, np.array([[0, 0]]))
    view, _ = random_view(pair, 2, seed=3)
    only = prepared(pair, RuleView(view.beliefs, view.source_embeddings))(view.beliefs)
    exact = prepared(pair, view)(view.beliefs)
    monkeypatch.setattr(dense_evidence, "MAX_NEIGHBOUR_PAIRS", 35)
    bounded = prepared(pair, view)(view.beliefs)
    is_hub = (torch.arange(7).unsqueeze(1) == 0) & (view.beliefs.targets == 0)
    assert is_hub.sum() == 1
    assert torch.equal(bounded[is_hub], only[is_hub])
    assert torch.equal(bounded[~is_hub], exact[~is_hub])
    assert (exact[is_hub] > only[is_hub]).all()
