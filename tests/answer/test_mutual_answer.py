"""Pairs that choose each other against a loop."""

import pytest
import torch

from emea.answer.decoding import MutualAnswer
from emea.matching.beliefs import Beliefs

from ..matching.random_beliefs import answered, certain, free_table, random_beliefs


def looped(beliefs: Beliefs, labels: torch.Tensor) -> dict[int, tuple[int, float]]:
    table = free_table(beliefs, labels)
    pairs = {}
    for source in range(beliefs.num_source):
        # of equal candidates the first, of equal claimants the smallest id
        target = max(beliefs.targets[source].tolist(), key=lambda t: table[source, t])
        claimant = max(range(beliefs.num_source), key=lambda s: table[s, target])
        if table[source, target] > 0 and claimant == source:
            pairs[source] = (target, table[source, target])
    return pairs


@pytest.mark.parametrize("tied", [False, True])
def test_pairs_are_those_of_a_loop(tied: bool) -> None:
    for seed in range(60):
        beliefs, labels = random_beliefs(seed, tied)
        answer = answered(MutualAnswer()(beliefs, labels))
        assert answer == looped(beliefs, labels) | certain(labels), seed
        targets = [target for target, _ in answer.values()]
        assert len(set(targets)) == len(targets), seed


def test_who_is_not_chosen_back_stays_unmatched() -> None:
    # both want target 7, which prefers 1; 0 has a second choice that nobody wants
    beliefs = Beliefs(torch.tensor([[7, 3], [7, 3]]), torch.tensor([[0.6, 0.4], [0.9, 0.1]]))
    answer = MutualAnswer()(beliefs, torch.zeros(0, 2, dtype=torch.int64))
    assert answered(answer) == {1: (7, pytest.approx(0.9))}


def test_a_label_is_kept_however_sure_others_are_of_its_target() -> None:
    beliefs = Beliefs(torch.tensor([[5, 2], [5, 2]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    answer = MutualAnswer()(beliefs, torch.tensor([[1, 5]]))
    assert answered(answer) == {1: (5, 1.0)}
