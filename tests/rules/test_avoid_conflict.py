"""The rules for avoiding conflicts against Eq. 4-7 read literally."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from emea.data.graph_pair import GraphPair
from emea.em.paper_step import conditional
from emea.matching import similarity
from emea.matching.beliefs import Beliefs
from emea.rules import avoid_conflict
from emea.rules.avoid_conflict import AvoidConflict, nearest_neighbours
from emea.rules.rule import RuleView

from .literal_avoid_conflict import LiteralAvoidConflict, bare_pair, bare_pairs, subsets
from .literal_paris import as_mapping, beliefs_of, best_alone


def random_embeddings(pair: GraphPair, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(pair.source.num_entities, 3)))


def prepared(
    rule: AvoidConflict, beliefs: Beliefs, embeddings: torch.Tensor
) -> AvoidConflict:
    rule.prepare(RuleView(beliefs, embeddings))
    return rule


@given(
    st.data(),
    bare_pairs(),
    st.integers(1, 4),
    st.integers(0, 2**32),
    st.sampled_from(["best", "expected"]),
    st.sampled_from([2**22, 40, 1]),
)
def test_equals_the_sum_over_all_subsets_that_hold_the_entity(
    data: st.DataObject,
    pair: GraphPair,
    num_neighbours: int,
    seed: int,
    mappings: str,
    comparisons: int,
) -> None:
    beliefs, embeddings = data.draw(beliefs_of(pair)), random_embeddings(pair, seed)
    rule = AvoidConflict(pair, num_neighbours, mappings)
    with patch.dict(avoid_conflict.COMPARISONS_PER_BLOCK, cpu=comparisons):
        values = prepared(rule, beliefs, embeddings)(beliefs)
    assert values.shape == (*beliefs.targets.shape, len(rule.names))
    q = as_mapping(beliefs)
    others = best_alone(q) if mappings == "best" else q
    twin = LiteralAvoidConflict(
        subsets(embeddings.numpy(), num_neighbours), beliefs.targets[:, 0].tolist()
    )
    rows = enumerate(beliefs.targets.tolist())
    expected = np.array(
        [[twin.expected(e, e2, others) for e2 in targets] for e, targets in rows]
    )
    # what all candidates of an entity share cancels in Eq. 7
    got = values.double().numpy()
    np.testing.assert_allclose(got - got[:, :1], expected - expected[:, :1], atol=1e-5)
    weights = np.array([1.3, 2.1])
    probs = conditional(values, torch.from_numpy(weights)).numpy()
    np.testing.assert_allclose(probs, softmax(expected @ weights, axis=1), atol=1e-5)


@settings(deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**32), st.integers(64, 4096)
)
def test_neighbours_are_the_nearest_others(
    num: int, k: int, seed: int, block: int
) -> None:
    embeddings = np.random.default_rng(seed).normal(size=(num, 4))
    k = min(k, num - 1)
    with patch.dict(similarity.BLOCK_BYTES, cpu=block):
        found = nearest_neighbours(torch.from_numpy(embeddings), k)
    assert found.tolist() == [members[1:] for members in subsets(embeddings, k)]


@pytest.mark.parametrize("num", [2, 5, 30])
def test_equal_embeddings_never_make_an_entity_its_own_neighbour(num: int) -> None:
    found = nearest_neighbours(torch.ones(num, 3), min(4, num - 1))
    assert found.shape == (num, min(4, num - 1))
    for e, neighbours in enumerate(found.tolist()):
        assert e not in neighbours
        assert len(set(neighbours)) == len(neighbours)


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("mappings", ["best", "expected"])
def test_cuda_equals_cpu(mappings: str) -> None:
    generator = torch.Generator().manual_seed(0)
    targets = torch.rand(300, 50, generator=generator).argsort(1)[:, :10]
    probs = torch.rand(300, 10, generator=generator).softmax(1)
    embeddings = torch.randn(300, 8, generator=generator)
    values = []
    for device in ("cpu", "cuda"):
        beliefs = Beliefs(targets.to(device), probs.to(device))
        rule = AvoidConflict(bare_pair(300, 50), mappings=mappings, device=device)
        values.append(prepared(rule, beliefs, embeddings.to(device))(beliefs).cpu())
    torch.testing.assert_close(values[1], values[0], atol=1e-5, rtol=0)
