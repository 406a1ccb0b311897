"""The beliefs that follow from those of all parts."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.divide.joining import JudgedPairs, mean_judgements, one_to_one
from emea.matching.pair_table import PairTable, ScoredPairs, tabulate

NO_LABELS = torch.zeros((0, 2), dtype=torch.int64)


def table_of(
    pairs: dict[tuple[int, int], float], num_source: int, num_target: int
) -> PairTable:
    sources, targets = torch.tensor(list(pairs)).T
    scores = torch.tensor(list(pairs.values()), dtype=torch.float64)
    scored = ScoredPairs(sources, targets, scores)
    return tabulate(scored, torch.zeros(len(pairs)), num_source, num_target, 10)


def marginals(potentials: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """The probability of each pair in all one-to-one matchings, by listing the matchings."""
    pairs, total, sums = list(potentials), 0.0, dict.fromkeys(potentials, 0.0)
    for size in range(len(pairs) + 1):
        for chosen in itertools.combinations(pairs, size):
            left, right = {one for one, _ in chosen}, {other for _, other in chosen}
            if len(left) == len(right) == len(chosen):
                weight = float(np.prod([potentials[pair] for pair in chosen]))
                total += weight
                for pair in chosen:
                    sums[pair] += weight
    return {pair: value / total for pair, value in sums.items()}


FOREST = {(0, 0): 3.0, (0, 1): 0.5, (1, 1): 2.0, (2, 2): 0.7, (3, 2): 1.5}


def probs_of(beliefs: "tuple[Tensor, Tensor]") -> dict[tuple[int, int], float]:
    targets, probs = beliefs
    rows, slots = (probs > 0).nonzero(as_tuple=True)
    return {
        (row, int(targets[row, slot])): float(probs[row, slot])
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True)
    }


def test_marginals_of_one_distribution_stay_as_they_are() -> None:
    exact = marginals(FOREST)
    found = one_to_one(table_of(exact, 4, 3), NO_LABELS)
    probs = probs_of((found.targets, found.probs))
    assert probs.keys() == exact.keys()
    for pair, value in exact.items():
        assert probs[pair] == pytest.approx(value, abs=0.01)
    best = found.probs[:, 0] >= found.probs.max(1).values
    assert best.all()


@pytest.mark.parametrize("prob", [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0])
def test_a_pair_without_rivals_keeps_its_probability(prob: float) -> None:
    found = one_to_one(table_of({(0, 0): prob}, 2, 2), NO_LABELS)
    assert float(found.probs[0].max()) == pytest.approx(prob, abs=1e-5)


def test_two_parts_that_want_the_same_target_share_it() -> None:
    wanted = {(0, 0): 0.9, (1, 0): 0.8, (1, 1): 0.1, (2, 2): 0.6}
    probs = probs_of(_both(one_to_one(table_of(wanted, 3, 3), NO_LABELS)))
    assert probs[0, 0] + probs[1, 0] <= 1.01
    assert probs[0, 0] > probs[1, 0] > 0.1
    assert probs[2, 2] == pytest.approx(0.6, abs=0.01)


def test_labels_are_certain_and_exclude_other_pairs() -> None:
    wanted = {(0, 0): 0.9, (1, 0): 0.8, (1, 1): 0.1}
    found = one_to_one(table_of(wanted, 2, 2), torch.tensor([[0, 0]]))
    probs = probs_of(_both(found))
    assert probs[0, 0] == 1 and (1, 0) not in probs


def _both(beliefs: object) -> tuple[Tensor, Tensor]:
    return beliefs.targets, beliefs.probs  # type: ignore[attr-defined]


def test_an_entity_in_several_parts_is_judged_by_all_of_them() -> None:
    rng = np.random.default_rng(0)
    num_source, num_target = 6, 5
    judged, seen = [], []
    for _ in range(3):
        of_source = rng.random(num_source) * (rng.random(num_source) < 0.7)
        of_target = rng.random(num_target) * (rng.random(num_target) < 0.7)
        inside = [
            (s, t)
            for s in range(num_source)
            for t in range(num_target)
            if of_source[s] and of_target[t] and rng.random() < 0.6
        ]
        sources, targets = np.array(inside).reshape(-1, 2).T

        def weights(
            s: np.ndarray,
            t: np.ndarray,
            a: np.ndarray = of_source,
            b: np.ndarray = of_target,
        ) -> np.ndarray:
            return a[s] * b[t]

        judged.append(JudgedPairs(sources, targets, rng.random(len(inside)), weights))
        seen.append((of_source, of_target))
    found = mean_judgements(judged, num_target)
    expected = {}
    for one in judged:
        for s, t in zip(one.sources.tolist(), one.targets.tolist(), strict=True):
            above, below = 0.0, 0.0
            for other, (of_source, of_target) in zip(judged, seen, strict=True):
                weight = of_source[s] * of_target[t]
                below += weight
                for s2, t2, p in zip(
                    other.sources, other.targets, other.probs, strict=True
                ):
                    above += weight * p * ((s2, t2) == (s, t))
            expected[s, t] = above / below
    pairs = zip(found.sources.tolist(), found.targets.tolist(), strict=True)
    assert dict(zip(pairs, found.scores.tolist(), strict=True)) == pytest.approx(
        expected
    )
