"""Normalising both sides against dense loops."""

import numpy as np
import pytest
import torch

from emea.answer.decoding import SinkhornAnswer, claims
from emea.matching.beliefs import Beliefs

from ..matching.random_beliefs import answered, certain, free_table, random_beliefs
from ..usual import usual

NO_LABELS = torch.zeros(0, 2, dtype=torch.int64)


def dense_shares(
    beliefs: Beliefs, labels: torch.Tensor, rounds: int, temperature: float
) -> np.ndarray:
    table = free_table(beliefs, labels)
    num_source, num_target = table.shape
    rest = [max(0.0, 1 - table[s].sum()) ** (1 / temperature) for s in range(num_source)]
    table = table ** (1 / temperature)
    for turn in range(rounds + 1):
        for t in range(num_target if turn else 0):
            table[:, t] /= max(1.0, table[:, t].sum())
        for s in range(num_source):
            total = table[s].sum() + rest[s]
            table[s] /= total
            rest[s] /= total
    return table


@pytest.mark.parametrize("temperature", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("rounds", [1, 4])
def test_equals_dense_loops(rounds: int, temperature: float) -> None:
    for seed in range(25):
        beliefs, labels = random_beliefs(seed)
        shares = dense_shares(beliefs, labels, rounds, temperature)
        answer = answered(SinkhornAnswer(rounds, temperature)(beliefs, labels))
        open_rows = [source for source in range(len(shares)) if shares[source].any()]
        assert set(answer) == {*open_rows, *certain(labels)}, seed
        assert {source: answer[source] for source in certain(labels)} == certain(labels), seed
        for source in open_rows:
            target, prob = answer[source]
            assert prob == pytest.approx(shares[source].max(), rel=1e-9), seed
            assert shares[source, target] == pytest.approx(prob, rel=1e-9), seed


@pytest.mark.parametrize("seed", range(10))
def test_after_many_rounds_both_sides_are_normalised(seed: int) -> None:
    beliefs, labels = random_beliefs(seed)
    balanced = usual(SinkhornAnswer, rounds=2000).balanced(beliefs.without(labels))
    assert claims(balanced).max() <= 1 + 1e-2
    assert balanced.probs.sum(1).max() <= 1 + 1e-12


def test_the_one_with_another_choice_gives_way() -> None:
    # both like target 0 best, and only entity 1 has somewhere else to go
    beliefs = Beliefs(torch.tensor([[0, 1], [0, 1]]), torch.tensor([[0.8, 0.0], [0.55, 0.45]]))
    answer = answered(usual(SinkhornAnswer)(beliefs, NO_LABELS))
    assert [answer[source][0] for source in (0, 1)] == [0, 1]


def test_a_matching_does_not_change() -> None:
    matching = Beliefs(torch.tensor([[2], [0], [1]]), torch.tensor([[0.5], [0.0], [0.9]]))
    balanced = usual(SinkhornAnswer).balanced(matching)
    assert torch.allclose(balanced.probs, matching.probs.double())


def test_a_low_temperature_loses_no_entity() -> None:
    beliefs = Beliefs(torch.tensor([[0, 1]]), torch.tensor([[1e-20, 0.5]]))
    answer = answered(usual(SinkhornAnswer, temperature=0.001)(beliefs, NO_LABELS))
    assert answer == {0: (1, pytest.approx(0.5))}  # as likely as all other targets together


@pytest.mark.parametrize("settings", [{"rounds": 0}, {"temperature": 0.0}])
def test_refuses_settings_without_meaning(settings: dict) -> None:
    with pytest.raises(ValueError, match="got"):
        usual(SinkhornAnswer, **settings)
