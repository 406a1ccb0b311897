"""Ranks by belief inside the candidates, by the neural order behind them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emea.data.arrays import IntArray
from emea.evaluation import joint_ranks as module
from emea.evaluation.joint_ranks import candidate_ranks, joint_ranks
from emea.evaluation.ranks import Ranks
from emea.matching.beliefs import Beliefs
from emea.matching.kmeans_search import KMeansCells
from emea.matching.similarity import Similarity

from ..matching.random_tables import from_scores


def joint_order(scores: np.ndarray, probs: np.ndarray) -> list[int]:
    """Targets by belief among the best, then as the neural model orders them."""
    neural = sorted(range(len(scores)), key=lambda target: -scores[target])
    slots = sorted(range(len(probs)), key=lambda slot: (-probs[slot], slot))
    return [neural[slot] for slot in slots] + neural[len(probs) :]


def similarity_of(scores: np.ndarray, scope: KMeansCells | None = None) -> Similarity:
    """A similarity with exactly these scores."""
    return replace(from_scores(scores), scope=scope)


def rank_in(order: list[int], target: int, pool: set[int]) -> int:
    return 1 + sum(other in pool for other in order[: order.index(target)])


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 8), st.integers(0, 2**32))
def test_equals_a_sorted_list(
    num_target: int, k: int, num_links: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    num_source, k = 8, min(k, num_target)
    # distinct scores: what neural ties mean is the ranks' own affair
    scores = np.array([rng.permutation(num_target) for _ in range(num_source)])
    probs = rng.choice([0.0, 0.2, 0.5], (num_source, k))
    num_links = min(num_links, num_target)
    links: IntArray = np.stack(
        [
            rng.permutation(num_source)[:num_links],
            rng.permutation(num_target)[:num_links],
        ],
        axis=1,
    ).astype(np.int64)
    candidates = np.argsort(-scores, axis=1)[:, :k]
    beliefs = Beliefs(torch.from_numpy(candidates.copy()), torch.from_numpy(probs))
    everything, pool = set(range(num_target)), set(links[:, 1].tolist())
    neural = Ranks(
        *(
            np.array(
                [
                    rank_in(joint_order(scores[e], probs[e][:0]), t, among)
                    for e, t in links
                ]
            )
            for among in (pool, everything)
        )
    )
    joint = joint_ranks(neural, similarity_of(scores), beliefs, links)
    own = candidate_ranks(beliefs, links)
    for row, (source, target) in enumerate(links.tolist()):
        order = joint_order(scores[source], probs[source])
        assert joint.in_all[row] == rank_in(order, target, everything)
        assert joint.in_pool[row] == rank_in(order, target, pool)
        # without the encoder, only candidates with a probability have a rank
        known = target in order[: np.count_nonzero(probs[source])]
        assert own.in_all[row] == (joint.in_all[row] if known else np.inf)
        assert own.in_pool[row] == (joint.in_pool[row] if known else np.inf)


def test_a_target_beyond_all_candidates_has_no_rank() -> None:
    ranks = candidate_ranks(
        Beliefs(torch.tensor([[0, 1]]), torch.ones(1, 2)), np.array([[0, 7]])
    )
    assert ranks.in_all.tolist() == ranks.in_pool.tolist() == [np.inf]


def test_ties_keep_the_neural_order_and_strangers_their_rank() -> None:
    beliefs = Beliefs(
        torch.tensor([[4, 2, 0]] * 3), torch.tensor([[0.3, 0.3, 0.4]] * 3)
    )
    links = np.array([[0, 4], [1, 2], [2, 3]])
    neural = Ranks(in_pool=np.array([1.0, 2.0, 3.0]), in_all=np.array([1.0, 2.0, 4.5]))
    joint = joint_ranks(neural, similarity_of(np.zeros((3, 5))), beliefs, links)
    assert joint.in_all.tolist() == [2, 3, 4.5]
    assert joint.in_pool.tolist() == [
        1,
        2,
        3,
    ]  # target 0 is no link's, so not in the pool


@pytest.mark.parametrize("num_pairs", [1, 2**20])
def test_candidates_of_an_approximate_search_come_before_all_others(
    num_pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module.PAIRS_PER_BLOCK, "cpu", num_pairs)
    # the search saw targets 0 and 1 alone; the links' targets are the neural model's best
    scores = np.array([[0.1, 0.9, 0.9, 0.3], [0.2, 0.1, 0.0, 0.7]])
    cells = torch.tensor([0, 0, 1, 1])
    apart = KMeansCells(cells[:2], cells, torch.tensor([[0, 1]] * 2), 1)
    beliefs = Beliefs(torch.tensor([[1, 0], [0, 1]]), torch.full((2, 2), 0.5))
    links = np.array([[0, 2], [1, 3]])
    pool = np.array([1, 2, 3])
    neural = Ranks(in_pool=np.array([1.5, 1.0]), in_all=np.array([1.5, 1.0]))
    joint = joint_ranks(neural, similarity_of(scores, apart), beliefs, links, pool)
    # behind the target: one more; beside it: the other half of one
    assert joint.in_all.tolist() == [3, 3]
    assert joint.in_pool.tolist() == [2, 2]
    exact = joint_ranks(neural, similarity_of(scores), beliefs, links, pool)
    assert exact.in_all.tolist() == neural.in_all.tolist()


@pytest.mark.gpu
def test_on_a_gpu(cuda: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    num_source, num_target = 300, 200
    scores = rng.integers(0, 20, (num_source, num_target))
    targets = np.array([rng.permutation(num_target)[:30] for _ in range(num_source)])
    beliefs = Beliefs(
        torch.from_numpy(targets),
        torch.from_numpy(rng.choice([0.0, 0.2, 0.5], targets.shape)),
    )
    sides = [rng.permutation(size)[:150] for size in (num_source, num_target)]
    links: IntArray = np.stack(sides, axis=1)
    neural = Ranks(*rng.integers(1, 100, (2, len(links))).astype(np.float64))
    one = torch.zeros(num_source + num_target, dtype=torch.long)
    cells = KMeansCells(one[:num_source], one[num_source:], one[:1].view(1, 1), 1)
    for scope in (None, cells):
        similarity = similarity_of(scores, scope)
        expected = joint_ranks(neural, similarity, beliefs, links)
        names = "source", "target", "source_offset", "target_offset"
        on_gpu = replace(
            similarity, **{n: getattr(similarity, n).to(cuda) for n in names}
        )
        moved = Beliefs(beliefs.targets.to(cuda), beliefs.probs.to(cuda))
        for num_pairs in (2**24, 500):
            monkeypatch.setitem(module.PAIRS_PER_BLOCK, "cuda", num_pairs)
            joint = joint_ranks(neural, on_gpu, moved, links)
            assert joint.in_all.tolist() == expected.in_all.tolist()
            assert joint.in_pool.tolist() == expected.in_pool.tolist()
