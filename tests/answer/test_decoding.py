"""Decoders: best candidates, mutual pairs, Sinkhorn and one-to-one assignment."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from emea.answer.decoding import (
    LEAST_SECOND,
    MORE_LIKELY,
    BalancedAnswer,
    BestAnswer,
    HungarianAnswer,
    ManyAnswer,
    MutualAnswer,
    OneToOneAnswer,
    SinkhornAnswer,
    accepted,
    claims,
)
from emea.data.settings import Cardinality
from emea.matching.beliefs import Beliefs

from ..matching.random_beliefs import answered, certain, free_table, random_beliefs

ANSWER = Beliefs(
    torch.tensor([[3], [4], [5], [6]]), torch.tensor([[1.0], [0.7], [0.2], [0.0]])
)
LABELS = torch.tensor([[0, 3]])


@pytest.mark.parametrize(
    ("threshold", "probs"),
    [
        (0.0, [1.0, 0.7, 0.2, 0.0]),
        (float(torch.tensor(0.7)), [1.0, 0.7, 0.0, 0.0]),
        (0.9, [1.0, 0.0, 0.0, 0.0]),
        (math.inf, [1.0, 0.0, 0.0, 0.0]),
    ],
)
def test_what_is_less_probable_is_left_out(
    threshold: float, probs: list[float]
) -> None:
    kept = accepted(ANSWER, threshold, LABELS)
    assert torch.equal(kept.probs, torch.tensor(probs).unsqueeze(1))
    assert torch.equal(kept.targets, ANSWER.targets)


@pytest.mark.parametrize("tied", [False, True])
def test_each_row_takes_its_best(tied: bool) -> None:
    for seed in range(30):
        beliefs, labels = random_beliefs(seed, tied)
        expected = {}
        for source in range(beliefs.num_source):
            probs = beliefs.probs[source].tolist()
            best = probs.index(max(probs))
            if probs[best]:
                expected[source] = (int(beliefs.targets[source, best]), probs[best])
        assert answered(BestAnswer()(beliefs, labels)) == expected | certain(labels), (
            seed
        )


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


def dense_shares(beliefs: Beliefs, labels: torch.Tensor, rounds: int) -> np.ndarray:
    table = free_table(beliefs, labels)
    num_source, num_target = table.shape
    rest = [max(0.0, 1 - table[s].sum()) for s in range(num_source)]
    for turn in range(rounds + 1):
        for t in range(num_target if turn else 0):
            table[:, t] /= max(1.0, table[:, t].sum())
        for s in range(num_source):
            total = table[s].sum() + rest[s]
            table[s] /= total
            rest[s] /= total
    return table


@pytest.mark.parametrize("rounds", [1, 4])
def test_equals_dense_loops(rounds: int) -> None:
    for seed in range(25):
        beliefs, labels = random_beliefs(seed)
        shares = dense_shares(beliefs, labels, rounds)
        answer = answered(SinkhornAnswer(rounds)(beliefs, labels))
        open_rows = [source for source in range(len(shares)) if shares[source].any()]
        assert set(answer) == {*open_rows, *certain(labels)}, seed
        assert {source: answer[source] for source in certain(labels)} == certain(
            labels
        ), seed
        for source in open_rows:
            target, prob = answer[source]
            assert prob == pytest.approx(shares[source].max(), rel=1e-9), seed
            assert shares[source, target] == pytest.approx(prob, rel=1e-9), seed


@pytest.mark.parametrize("seed", range(10))
def test_after_many_rounds_both_sides_are_normalised(seed: int) -> None:
    beliefs, labels = random_beliefs(seed)
    balanced = SinkhornAnswer(rounds=2000).balanced(beliefs.without(labels))
    assert claims(balanced).max() <= 1 + 1e-2
    assert balanced.probs.sum(1).max() <= 1 + 1e-12


def test_a_matching_does_not_change() -> None:
    matching = Beliefs(
        torch.tensor([[2], [0], [1]]), torch.tensor([[0.5], [0.0], [0.9]])
    )
    balanced = SinkhornAnswer(rounds=20).balanced(matching)
    assert torch.allclose(balanced.probs, matching.probs.double())


FORBIDDEN = 1e9


def dense_assignment(table: np.ndarray, unmatched_prob: float) -> dict[int, int]:
    num_source, num_target = table.shape
    costs = np.full((num_source, num_target + num_source), FORBIDDEN)
    costs[:, :num_target][table > 0] = -np.log(table[table > 0])
    costs[np.arange(num_source), num_target + np.arange(num_source)] = -math.log(
        unmatched_prob
    )
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
def test_one_to_one_and_as_probable_as_any_other(
    seed: int, unmatched_prob: float
) -> None:
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


@pytest.mark.parametrize("cardinality", list(Cardinality)[1:])
def test_all_pairs_that_the_cardinality_allows(cardinality: Cardinality) -> None:
    for seed in range(30):
        beliefs, labels = random_beliefs(seed, tied=False)
        known = set(map(tuple, labels.tolist()))
        rows = zip(
            beliefs.pairs().tolist(),
            beliefs.probs[beliefs.probs > 0].tolist(),
            strict=True,
        )
        free = {
            (source, target): prob
            for (source, target), prob in rows
            if not any(
                (source, target)[side] == label[side]
                for side in cardinality.unique_sides.values()
                for label in known
            )
        }
        expected = {
            pair
            for pair, prob in free.items()
            if all(
                prob
                == max(one for other, one in free.items() if other[side] == pair[side])
                for side in cardinality.unique_sides.values()
            )
        }
        if not cardinality.unique_sides:
            expected = {pair for pair in free if free[pair] >= MORE_LIKELY}
        answer = ManyAnswer(cardinality)(beliefs, labels)
        assert set(map(tuple, answer.pairs().tolist())) == expected | known
        kept = accepted(answer, 0.6, labels, cardinality)
        sure = {pair for pair in expected - known if free[pair] >= 0.6}
        assert set(map(tuple, kept.pairs().tolist())) == sure | known
        assert len(accepted(answer, math.inf, labels, cardinality).pairs()) == len(
            known
        )


@given(st.integers(0, 10_000))
def test_one_to_one_selects_pairs_by_probability(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_source, width, num_target = (int(rng.integers(1, most)) for most in (8, 5, 8))
    width = min(width, num_target)
    targets = np.stack([rng.permutation(num_target)[:width] for _ in range(num_source)])
    probs = rng.random((num_source, width)) / width
    beliefs = Beliefs(torch.from_numpy(targets), torch.from_numpy(probs))
    found = OneToOneAnswer()(beliefs, torch.tensor([[0, 0]]))

    # one pair after the other, the most probable first
    expected, used = {(0, 0)}, ({0}, {0})
    free = np.where((targets == 0) | (np.arange(num_source) == 0)[:, None], 0, probs)
    for place in np.argsort(-free, axis=None, kind="stable"):
        row, slot = divmod(int(place), width)
        target, prob = int(targets[row, slot]), free[row, slot]
        is_offered = prob >= LEAST_SECOND or slot == free[row].argmax()
        if prob > 0 and is_offered and row not in used[0] and target not in used[1]:
            expected.add((row, target))
            used[0].add(row)
            used[1].add(target)
    assert {tuple(pair) for pair in found.pairs().tolist()} == expected


def slowly_balanced(table: np.ndarray, rounds: int) -> np.ndarray:
    """Return rows and columns of a dense table divided by their sums in turn, rows last."""
    table = table.astype(np.float64).copy()
    for _ in range(rounds):
        for row in range(len(table)):
            if table[row].sum() > 0:
                table[row] /= table[row].sum()
        for column in range(table.shape[1]):
            if table[:, column].sum() > 0:
                table[:, column] /= table[:, column].sum()
    for row in range(len(table)):
        if table[row].sum() > 0:
            table[row] /= table[row].sum()
    return table


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("rounds", [1, 2, 15])
def test_balanced_is_sinkhorn_on_a_dense_table(tied: bool, rounds: int) -> None:
    num_matched = 0
    for seed in range(30):
        beliefs, labels = random_beliefs(seed, tied)
        expected = slowly_balanced(free_table(beliefs, labels), rounds)
        answer = answered(BalancedAnswer(rounds)(beliefs, labels))
        assert answer.items() >= certain(labels).items()
        for source in range(beliefs.num_source):
            if source in labels[:, 0].tolist():
                continue
            best = expected[source].max()
            assert (source in answer) == (best > 0)
            if best > 0:
                target, prob = answer[source]
                assert prob == pytest.approx(best, rel=1e-9)
                assert expected[source, target] == pytest.approx(best, rel=1e-9)
                num_matched += 1
    assert num_matched > 50


def test_balancing_gives_everyone_a_target_of_their_own() -> None:
    # every source entity likes target 0 most, and only the first has no other candidate
    targets = torch.tensor([[0, 0], [0, 1], [0, 2]])
    probs = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.8, 0.2]])
    none = torch.zeros(0, 2, dtype=torch.int64)
    answer = BalancedAnswer()(Beliefs(targets, probs), none)
    assert answer.best_targets().tolist() == [0, 1, 2]


def test_very_small_beliefs_are_balanced_without_division_by_zero() -> None:
    targets = torch.tensor([[0, 1], [0, 1]])
    probs = torch.tensor([[1.0, 1e-44], [1.0, 0.0]])
    balanced = BalancedAnswer().balanced(Beliefs(targets, probs))
    assert bool(torch.isfinite(balanced.probs).all())
    assert balanced.best_targets().tolist() == [1, 0]
