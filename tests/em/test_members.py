"""Weights of an ensemble's members and the mean of their rankings, by slow references."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import normalize

from emea.em.members import mean_ranking, member_weights
from emea.em.normaliser import DEFAULT_SHARPNESS
from emea.matching.pair_table import PairRanking

from ..matching.random_tables import from_scores, pairs_of, random_table


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_rankings", [1, 3])
def test_equals_the_mean_by_dictionaries(seed: int, num_rankings: int) -> None:
    rng = np.random.default_rng(seed)
    rankings, total = [], dict[tuple[int, int], float]()
    for _ in range(num_rankings):
        table = random_table(rng, 8, 9, 4)
        scores = torch.from_numpy(np.log(rng.random(table.targets.shape)))
        scores[rng.random(table.targets.shape) < 0.1] = -torch.inf  # a labelled entity's pairs
        rankings.append(PairRanking(table, scores))
        for pair, place in pairs_of(table).items():
            if scores[place] > -torch.inf:
                total[pair] = total.get(pair, 0.0) + float(scores[place].exp()) / num_rankings
    matrix = torch.from_numpy(rng.random((8, 9))).float()
    mean = mean_ranking(rankings, from_scores(matrix))
    found = {pair: mean.scores[place] for pair, place in pairs_of(mean.table).items()}
    assert found.keys() == total.keys()
    for pair, belief in total.items():
        assert float(found[pair].exp()) == pytest.approx(belief)
        place = pairs_of(mean.table)[pair]
        assert mean.table.scores[place] == matrix[pair]
    assert bool((mean.scores[~mean.table.filled] == -torch.inf).all())


NUM_SOURCE, NUM_TARGET, RIDGE = 30, 40, 1e-3


def members_with_noise(*noise: float) -> list[Tensor]:
    """Unit vectors in which source i is close to target i; one member for each noise."""
    generator = torch.Generator().manual_seed(0)
    members = []
    for level in noise:
        target = torch.randn(NUM_TARGET, 8, generator=generator)
        source = target[:NUM_SOURCE] + level * torch.randn(NUM_SOURCE, 8, generator=generator)
        members.append(normalize(torch.cat([source, target])))
    return members


def slow_weights(members: list[Tensor], links: list[tuple[int, int]]) -> np.ndarray:
    """Maximise the penalised likelihood over all entities with a general optimiser."""
    rows = [member.double().numpy() for member in members]
    prior = DEFAULT_SHARPNESS / len(members)

    def loss(beta: np.ndarray) -> float:
        total = 0.0
        for source, target in links:
            forth = sum(b * m[NUM_SOURCE:] @ m[source] for b, m in zip(beta, rows, strict=True))
            back = sum(
                b * m[:NUM_SOURCE] @ m[NUM_SOURCE + target] for b, m in zip(beta, rows, strict=True)
            )
            total += np.log(np.exp(forth).sum()) - forth[target]
            total += np.log(np.exp(back).sum()) - back[source]
        # fewer than 100 examples count as much against the prior as 100 would
        strength = RIDGE * max(1.0, 100 / (2 * len(links)))
        return total / (2 * len(links)) + strength / 2 * float(((beta - prior) ** 2).sum())

    found = minimize(loss, np.full(len(members), prior), bounds=[(0, None)] * len(members))
    weights: np.ndarray = found.x / found.x.sum()
    return weights


def test_weights_maximise_the_likelihood_of_links() -> None:
    members = members_with_noise(0.5, 1.5, 1.0)
    links = [(i, i) for i in range(20)]
    found = member_weights(members, NUM_SOURCE, torch.tensor(links), RIDGE)
    assert found.numpy() == pytest.approx(slow_weights(members, links), abs=2e-3)
    assert found[0] > found[2] > found[1]


def test_without_links_all_members_count_equally() -> None:
    members = members_with_noise(0.5, 1.5)
    none = torch.zeros(0, 2, dtype=torch.int64)
    assert member_weights(members, NUM_SOURCE, none).tolist() == [0.5, 0.5]


def test_rivals_beyond_the_limit_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    members = members_with_noise(0.5, 1.0)
    links = torch.tensor([(i, i) for i in range(10)])
    whole = member_weights(members, NUM_SOURCE, links)
    monkeypatch.setattr("emea.em.members.NUM_RIVALS", 25)
    assert member_weights(members, NUM_SOURCE, links).tolist() == pytest.approx(
        whole.tolist(), abs=0.02
    )
