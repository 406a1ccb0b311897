"""Ranks by the ranked pairs first, against the full order of each link's entity."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.arrays import IntArray
from emea.evaluation import joint_ranks as module
from emea.evaluation.joint_ranks import fused_ranks
from emea.evaluation.ranks import link_ranks
from emea.matching.pair_table import PairRanking, PairTable
from emea.matching.similarity import Cosine, Similarity

from ..matching.random_tables import from_scores, pairs_of, random_table

NUM_SOURCE, NUM_TARGET = 7, 6
Key = tuple[int, float]
T = TypeVar("T", Similarity, PairTable, PairRanking)


def random_ranking(rng: np.random.Generator, scores: np.ndarray) -> PairRanking:
    """Scores of few values, impossible pairs among them, for about half of all pairs."""
    table = random_table(rng, NUM_SOURCE, NUM_TARGET, 4, dtype=torch.float32)
    own = torch.from_numpy(scores.astype(np.float32)).gather(1, table.targets)
    table = replace(table, scores=torch.where(table.filled, own, table.scores))
    values = rng.choice([-np.inf, -2.0, -1.0, -0.5], table.targets.shape)
    return PairRanking(table, torch.from_numpy(values.astype(np.float32)))


def keys_of(
    ranking: PairRanking, scores: np.ndarray, row: int, reverse: bool
) -> dict[int, Key]:
    """By entity of the other side: smaller keys come first."""
    places = pairs_of(ranking.table)
    keys: dict[int, Key] = {}
    for other in range(NUM_SOURCE if reverse else NUM_TARGET):
        pair = (other, row) if reverse else (row, other)
        if pair in places:
            keys[other] = (0, -float(ranking.scores[places[pair]]))
        else:
            keys[other] = (1, -float(scores[pair]))
    return keys


def rank(keys: dict[int, Key], target: int, pool: set[int]) -> float:
    """Mean over all orders of equal keys."""
    others = [key for other, key in keys.items() if other in pool]
    equal = others.count(keys[target])
    return 1 + sum(key < keys[target] for key in others) + (equal - 1) / 2


def assert_as_sorted(
    scores: np.ndarray, seed: int, reverse: bool, pooled: bool
) -> None:
    rng = np.random.default_rng(seed)
    ranking = random_ranking(rng, scores)
    num_links = rng.integers(0, NUM_TARGET + 1)
    sides = [rng.permutation(size)[:num_links] for size in (NUM_SOURCE, NUM_TARGET)]
    links: IntArray = np.stack(sides[::-1] if reverse else sides, axis=1).astype(
        np.int64
    )
    num_others = NUM_SOURCE if reverse else NUM_TARGET
    extra = rng.permutation(num_others)[:2]
    pool = np.union1d(links[:, 1], extra) if pooled else None
    similarity = from_scores(scores)
    similarity = similarity.reversed() if reverse else similarity
    neural = link_ranks(similarity, links, pool)
    fused = fused_ranks(neural, similarity, ranking, links, pool=pool, reverse=reverse)
    among = set((links[:, 1] if pool is None else pool).tolist())
    for index, (row, target) in enumerate(links.tolist()):
        keys = keys_of(ranking, scores, row, reverse)
        assert fused.in_all[index] == rank(keys, target, set(range(num_others)))
        assert fused.in_pool[index] == rank(keys, target, among)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("num_pairs", [4, 2**20])
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_equals_the_full_order(
    num_pairs: int, ties: bool, seed: int, reverse: bool, pooled: bool
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permutation(NUM_SOURCE * NUM_TARGET) // (20 if ties else 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(module.PAIRS_PER_BLOCK, "cpu", num_pairs)
        assert_as_sorted(scores.reshape(NUM_SOURCE, NUM_TARGET), seed, reverse, pooled)


def test_equal_entities_tie_with_any_rounding() -> None:
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(1, 100, generator=generator) for _ in range(2))
    similarity = Cosine()(source, target.repeat(40, 1))
    for num_ranked in (0, 1, 25):
        targets = torch.arange(max(1, num_ranked)).unsqueeze(0)
        filled = torch.full(targets.shape, num_ranked > 0)
        table = PairTable(
            targets, similarity.scores(torch.tensor([0]))[:, targets[0]], filled, 40
        )
        ranking = PairRanking(table, -targets.float())
        links = np.array([[0, 39]])
        neural = link_ranks(similarity, links)
        fused = fused_ranks(neural, similarity, ranking, links)
        assert neural.in_all.tolist() == [20.5]
        assert fused.in_all.tolist() == [num_ranked + (1 + 40 - num_ranked) / 2]


@pytest.mark.gpu
@pytest.mark.parametrize("reverse", [False, True])
def test_on_a_gpu(
    cuda: torch.device, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(value: T) -> T:
        names = [n for n, v in vars(value).items() if isinstance(v, torch.Tensor)]
        return replace(value, **{n: getattr(value, n).to(cuda) for n in names})

    rng = np.random.default_rng(0)
    num_source, num_target = 300, 200
    similarity = from_scores(rng.integers(0, 20, (num_source, num_target)))
    table = random_table(rng, num_source, num_target, 40, dtype=torch.float32)
    values = rng.choice([-np.inf, -2.0, -1.0, -0.5], table.targets.shape)
    ranking = PairRanking(table, torch.from_numpy(values.astype(np.float32)))
    sides = [rng.permutation(size)[:150] for size in (num_source, num_target)]
    links: IntArray = np.stack(sides[::-1] if reverse else sides, axis=1)
    similarity = similarity.reversed() if reverse else similarity
    neural = link_ranks(similarity, links)
    expected = fused_ranks(neural, similarity, ranking, links, reverse=reverse)
    on_gpu = replace(moved(ranking), table=moved(table))
    for num_pairs in (2**24, 500):
        monkeypatch.setitem(module.PAIRS_PER_BLOCK, "cuda", num_pairs)
        fused = fused_ranks(neural, moved(similarity), on_gpu, links, reverse=reverse)
        assert fused.in_all.tolist() == expected.in_all.tolist()
        assert fused.in_pool.tolist() == expected.in_pool.tolist()
