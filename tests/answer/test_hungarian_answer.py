"""The sparse assignment against a dense one with columns for the unmatched."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from emea.answer.decoding import HungarianAnswer
from emea.matching.beliefs import Beliefs

from ..matching.random_beliefs import answered, certain, free_table, random_beliefs

FORBIDDEN = 1e9


def dense_assignment(table: np.ndarray, unmatched_prob: float) -> dict[int, int]:
    num_source, num_target = table.shape
    costs = np.full((num_source, num_target + num_source), FORBIDDEN)
    costs[:, :num_target][table > 0] = -np.log(table[table > 0])
    costs[np.arange(num_source), num_target + np.arange(num_source)] = -math.log(unmatched_prob)
    pairs = zip(*linear_sum_assignment(costs), strict=True)
    return {int(source): int(target) for source, target in pairs if target < num_target}


def log_prob(table: np.ndarray, pairs: dict[int, int], unmatched_prob: float) -> float:
    matched = sum(math.log(table[source, target]) for source, target in pairs.items())
    return matched + (len(table) - len(pairs)) * math.log(unmatched_prob)


@pytest.mark.parametrize("unmatched_prob", [1e-6, 0.01, 0.3])
def test_equals_the_dense_assignment(unmatched_prob: float) -> None:
    for seed in range(40):
        beliefs, labels = random_beliefs(seed)
        table = free_table(beliefs, labels)
        expected = {
            source: (target, table[source, target])
            for source, target in dense_assignment(table, unmatched_prob).items()
        }
        answer = answered(HungarianAnswer(unmatched_prob)(beliefs, labels))
        assert answer == expected | certain(labels), seed


@given(st.integers(0, 2**32), st.sampled_from([0.001, 0.05, 0.5]))
def test_one_to_one_and_as_probable_as_any_other(seed: int, unmatched_prob: float) -> None:
    beliefs, labels = random_beliefs(seed, tied=True)
    table = free_table(beliefs, labels)
    answer = answered(HungarianAnswer(unmatched_prob)(beliefs, labels))
    targets = [target for target, _ in answer.values()]
    assert len(set(targets)) == len(targets)
    assert certain(labels).items() <= answer.items()
    pairs = {s: target for s, (target, _) in answer.items() if s not in certain(labels)}
    best = dense_assignment(table, unmatched_prob)
    value = log_prob(table, pairs, unmatched_prob)
    assert value == pytest.approx(log_prob(table, best, unmatched_prob))


def test_all_together_beats_each_for_itself() -> None:
    # each for itself would leave 1 with nothing: it has one candidate, 0 has two
    beliefs = Beliefs(torch.tensor([[4, 6], [4, 6]]), torch.tensor([[0.6, 0.3], [0.5, 0.0]]))
    answer = HungarianAnswer(0.01)(beliefs, torch.zeros(0, 2, dtype=torch.int64))
    assert {source: target for source, (target, _) in answered(answer).items()} == {0: 6, 1: 4}


def test_who_finds_nothing_better_stays_unmatched() -> None:
    beliefs = Beliefs(torch.tensor([[0], [0], [1]]), torch.tensor([[0.9], [0.8], [0.05]]))
    answer = HungarianAnswer(0.1)(beliefs, torch.zeros(0, 2, dtype=torch.int64))
    assert answered(answer) == {0: (0, pytest.approx(0.9))}


@pytest.mark.parametrize("unmatched_prob", [0.0, -1.0, 1.5])
def test_refuses_settings_without_meaning(unmatched_prob: float) -> None:
    with pytest.raises(ValueError, match="unmatched_prob"):
        HungarianAnswer(unmatched_prob)
