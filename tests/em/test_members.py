"""The mean of several rankings, compared with dictionaries."""

import numpy as np
import pytest
import torch

from emea.em.members import mean_ranking
from emea.matching.pair_table import PairRanking

from ..matching.random_tables import pairs_of, random_table


class RandomSimilarity:
    """Scores pairs by a fixed matrix."""

    def __init__(self, rng: np.random.Generator, num_source: int, num_target: int) -> None:
        self.matrix = torch.from_numpy(rng.random((num_source, num_target))).float()

    def of_pairs(self, sources: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.matrix[sources, targets]


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
    similarity = RandomSimilarity(rng, 8, 9)
    mean = mean_ranking(rankings, similarity)  # type: ignore[arg-type]
    found = {pair: mean.scores[place] for pair, place in pairs_of(mean.table).items()}
    assert found.keys() == total.keys()
    for pair, belief in total.items():
        assert float(found[pair].exp()) == pytest.approx(belief)
        place = pairs_of(mean.table)[pair]
        assert mean.table.scores[place] == similarity.matrix[pair]
    assert bool((mean.scores[~mean.table.filled] == -torch.inf).all())
