"""The PARIS rule against Eq. 19 read literally."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.matching.beliefs import Beliefs
from emea.rules.paris import PARIS, mapping_compatibility
from emea.rules.rule import RuleView

from .literal_paris import (
    LiteralPARIS,
    Mapping,
    as_mapping,
    beliefs_of,
    best_alone,
    both_directions,
    inclusions,
    inverse_functionality,
    pairs,
)


def prepared(rule: PARIS, beliefs: Beliefs, links: torch.Tensor | None = None) -> PARIS:
    rule.prepare(RuleView(beliefs, torch.zeros(beliefs.num_source, 1), links))
    return rule


def literal(pair: GraphPair, trusted: Mapping) -> LiteralPARIS:
    source, target = both_directions(pair.source), both_directions(pair.target)
    return LiteralPARIS(source, target, inclusions(source, target, trusted))


def table(twin: LiteralPARIS, beliefs: Beliefs, blanket: bool = False) -> np.ndarray:
    q = as_mapping(beliefs)
    value = twin.blanket_value if blanket else twin.value
    rows = enumerate(beliefs.targets.tolist())
    return np.array([[value(e, e2, q) for e2 in targets] for e, targets in rows])


@settings(deadline=None)
@given(st.data(), pairs(), st.sampled_from(["best", "links"]))
def test_equals_the_triple_loop(
    data: st.DataObject, pair: GraphPair, inclusion: str
) -> None:
    beliefs = data.draw(beliefs_of(pair))
    q = as_mapping(beliefs)
    labels = dict(pair.links.tolist())
    given_links = [{labels[e]: 1.0} if e in labels else {} for e in range(len(q))]
    trusted = {"best": best_alone(q), "links": given_links}[inclusion]
    links = torch.from_numpy(pair.links.copy()) if inclusion == "links" else None
    rule = PARIS(pair)
    values = prepared(rule, beliefs, links)(beliefs)
    assert values.shape == (*beliefs.targets.shape, len(rule.names))
    expected = table(literal(pair, trusted), beliefs)
    np.testing.assert_allclose(values[:, :, 0].numpy(), expected, atol=1e-5)


@settings(deadline=None)
@given(st.data(), pairs(loops=False), st.booleans())
def test_blanket_sums_all_subsets_that_hold_the_entity(
    data: st.DataObject, pair: GraphPair, hard: bool
) -> None:
    beliefs = data.draw(beliefs_of(pair, hard=hard))
    rule = PARIS(pair, markov_blanket=True)
    values = prepared(rule, beliefs)(beliefs)[:, :, 0].double().numpy()
    expected = table(
        literal(pair, best_alone(as_mapping(beliefs))), beliefs, blanket=True
    )
    # what all candidates of an entity share cancels in Eq. 7
    np.testing.assert_allclose(
        values - values[:, :1], expected - expected[:, :1], atol=1e-5
    )


def test_blanket_reads_a_loop_at_the_belief_and_not_at_the_candidate() -> None:
    # Eq. 7 would put y_e = e' into r(e, e) too; Eq. 19 asks q(y_n = n') there, and so does the rule
    graph = KnowledgeGraph(np.array([[0, 0, 0], [1, 0, 1]]), 2, 1)
    pair = GraphPair("loops", graph, graph, np.empty((0, 2), dtype=np.int64))
    beliefs = Beliefs(
        torch.tensor([[0, 1], [1, 0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    )
    with_blanket = prepared(PARIS(pair, markov_blanket=True), beliefs)(beliefs)
    alone = prepared(PARIS(pair), beliefs)(beliefs)
    np.testing.assert_allclose(alone[:, :, 0], [[1, 0], [1, 0]], atol=1e-6)
    assert torch.equal(with_blanket, alone)


def path_pair() -> GraphPair:
    """Two paths of three entities with the same relations."""
    graph = KnowledgeGraph(np.array([[0, 0, 1], [1, 1, 2]]), 3, 2)
    return GraphPair("paths", graph, graph, np.empty((0, 2), dtype=np.int64))


@pytest.mark.parametrize("blanket", [False, True])
def test_certain_evidence_stays_finite(blanket: bool) -> None:
    star = np.array([[0, 0, leaf] for leaf in range(1, 500)])
    graph = KnowledgeGraph(star, 500, 1)
    pair = GraphPair("stars", graph, graph, np.empty((0, 2), dtype=np.int64))
    targets = torch.stack([torch.arange(500), torch.arange(500).roll(1)], dim=1)
    beliefs = Beliefs(targets, torch.tensor([[1.0, 0.0]]).repeat(500, 1))
    values = prepared(PARIS(pair, markov_blanket=blanket), beliefs)(beliefs)
    assert values.isfinite().all()
    assert values[0, 0].item() == pytest.approx(1, abs=1e-6) or blanket
    assert (values[:, 0] > values[:, 1] - 1e-6).all()


def test_given_links_are_estimated_again_when_they_change() -> None:
    pair = path_pair()
    beliefs = Beliefs(torch.tensor([[0], [1], [2]]), torch.ones(3, 1))
    rule = PARIS(pair)
    links = torch.tensor([[0, 0], [1, 1]])
    known = prepared(rule, beliefs, links)(beliefs)
    own = prepared(rule, beliefs)(beliefs)
    assert not torch.equal(
        own, known
    )  # the path's second relation joins no two given links
    assert torch.equal(prepared(rule, beliefs, links)(beliefs), known)
    assert torch.equal(
        prepared(rule, beliefs, torch.tensor([[0, 0], [1, 1], [2, 2]]))(beliefs), own
    )


def literal_compatibility(pair: GraphPair, mapping: dict[int, int]) -> list[float]:
    """Loops over triples: inclusions from the mapped triples, then the product of Eq. 19."""
    source, target = both_directions(pair.source), both_directions(pair.target)
    fun, fun2 = inverse_functionality(source), inverse_functionality(target)
    values = [0.0] * pair.source.num_entities
    mapped = [
        (mapping[h], r, mapping[t]) for h, r, t in source if {h, t} <= set(mapping)
    ]
    for e, e2 in mapping.items():
        doubt = 1.0
        for _, r, n in [triple for triple in source if triple[0] == e]:
            for _, r2, n2 in [triple for triple in target if triple[0] == e2]:
                shared = [(h2, r2, t2) for h2, q, t2 in mapped if q == r]
                shared = [triple for triple in shared if triple in target]
                size, size2 = (
                    sum(q == s for _, q, _ in kg)
                    for kg, s in ((source, r), (target, r2))
                )
                if mapping.get(n) == n2:
                    # however many source triples are mapped to it, a target triple is one
                    doubt *= 1 - len(set(shared)) / size2 * fun[r]
                    doubt *= 1 - len(shared) / size * fun2[r2]
        values[e] = 1 - doubt
    return values


@given(st.data(), pairs())
def test_compatibility_equals_the_triple_loop(
    data: st.DataObject, pair: GraphPair
) -> None:
    target = st.integers(-1, pair.target.num_entities - 1)
    size = pair.source.num_entities
    rule = PARIS(pair)
    for _ in range(2):  # an earlier mapping leaves no trace
        drawn = data.draw(st.lists(target, min_size=size, max_size=size))
        mapping = {e: e2 for e, e2 in enumerate(drawn) if e2 >= 0}
        values = mapping_compatibility(rule, torch.tensor(drawn))
        np.testing.assert_allclose(
            values, literal_compatibility(pair, mapping), atol=1e-5
        )


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_a_gpu_says_the_same() -> None:
    pair = synthetic_pair(num_entities=300, seed=0)
    targets = torch.full((pair.source.num_entities,), -1)
    targets[pair.links[:, 0]] = torch.from_numpy(pair.links[:, 1].copy())
    on_gpu = mapping_compatibility(PARIS(pair, device="cuda"), targets.cuda())
    torch.testing.assert_close(
        on_gpu.cpu(), mapping_compatibility(PARIS(pair), targets)
    )
