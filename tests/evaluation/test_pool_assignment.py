"""The assignment inside the test pool against a dense Sinkhorn normalisation."""

import numpy as np
import pytest
import torch

from emea.evaluation.pool_assignment import pool_assignment
from emea.matching.pair_table import PairRanking

from ..matching.random_tables import pairs_of, random_table

TEST = np.array([[0, 4], [2, 1], [3, 3], [5, 0]])


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_dense_normalisation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, num_source=7, num_target=6, width=6, fill=0.9)
    scores = torch.where(table.filled, torch.from_numpy(rng.normal(size=(7, 6))), -torch.inf)
    found = pool_assignment(PairRanking(table, scores), TEST, rounds=4)
    sources, targets = TEST[:, 0].tolist(), TEST[:, 1].tolist()
    inside = {pair: place for pair, place in pairs_of(table).items() if pair[0] in sources}
    inside = {pair: place for pair, place in inside.items() if pair[1] in targets}
    dense = np.zeros((7, 6))
    for pair, place in inside.items():
        dense[pair] = np.exp(float(scores[place]))
    for _ in range(4):
        dense /= np.maximum(dense.sum(1, keepdims=True), 1e-300)
        dense /= np.maximum(dense.sum(0, keepdims=True), 1e-300)
    assert pairs_of(found.table) == inside
    assert inside
    for pair, place in inside.items():
        assert float(found.scores[place].exp()) == pytest.approx(dense[pair], rel=1e-9)


def test_knows_the_pool_but_not_its_links() -> None:
    rng = np.random.default_rng(0)
    table = random_table(rng, num_source=7, num_target=6, width=4)
    ranking = PairRanking(table, torch.from_numpy(rng.normal(size=(7, 4))))
    permuted = np.stack([TEST[:, 0], TEST[[1, 0, 3, 2], 1]], axis=1)
    first, second = pool_assignment(ranking, TEST), pool_assignment(ranking, permuted)
    assert torch.equal(first.table.filled, second.table.filled)
    assert torch.equal(first.scores, second.scores)


def test_a_contested_target_goes_to_the_entity_without_another() -> None:
    # both sources prefer target 0; source 1 has no other candidate
    table = random_table(np.random.default_rng(0), num_source=2, num_target=2, width=2, fill=1.0)
    wanted = {(0, 0): 0.6, (0, 1): 0.4, (1, 0): 0.5, (1, 1): 0.0}
    scores = torch.zeros(2, 2, dtype=torch.float64)
    for pair, place in pairs_of(table).items():
        scores[place] = float(np.log(wanted[pair])) if wanted[pair] else -torch.inf
    assigned = pool_assignment(PairRanking(table, scores), np.array([[0, 0], [1, 1]]))
    best = table.targets.gather(1, assigned.scores.argmax(1, keepdim=True)).squeeze(1)
    assert best.tolist() == [1, 0]
