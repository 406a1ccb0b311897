"""Marginals of one-to-one matchings against an enumeration of all matchings."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from emea.kernels import choice
from emea.matching.matching_marginals import log_marginals, matching_messages
from emea.matching.pair_table import PairTable

from .random_tables import pairs_of, random_table

Pair = tuple[int, int]


pytestmark = pytest.mark.usefixtures("each_kernels")


def all_matchings(pairs: list[Pair]) -> Iterator[list[Pair]]:
    """Every set of pairs in which no entity of either side occurs twice."""
    if not pairs:
        yield []
        return
    first, others = pairs[0], pairs[1:]
    yield from all_matchings(others)
    compatible = [
        pair for pair in others if pair[0] != first[0] and pair[1] != first[1]
    ]
    for matching in all_matchings(compatible):
        yield [first, *matching]


def exact(logits: dict[Pair, float]) -> dict[Pair, float]:
    """Return the probability that each pair is in a matching."""
    total, within = 0.0, dict.fromkeys(logits, 0.0)
    for matching in all_matchings(list(logits)):
        weight = math.exp(sum(logits[pair] for pair in matching))
        total += weight
        for pair in matching:
            within[pair] += weight
    return {pair: value / total for pair, value in within.items()}


def approximate(
    table: PairTable, logits: Tensor, competition: float = 1.0, max_passes: int = 500
) -> dict[Pair, float]:
    messages = matching_messages(
        table, logits, competition=competition, max_passes=max_passes, tolerance=1e-10
    )
    marginals = log_marginals(table, logits, messages, competition).exp()
    return {pair: float(marginals[place]) for pair, place in pairs_of(table).items()}


def given(table: PairTable, logits: Tensor) -> dict[Pair, float]:
    return {pair: float(logits[place]) for pair, place in pairs_of(table).items()}


def forest(rng: np.random.Generator, size: int = 7) -> PairTable:
    """A random forest: each new entity of either side has at most one earlier neighbour."""
    parents: dict[Pair, None] = {}
    for entity in range(1, size):
        parents[int(rng.integers(entity)), entity] = None  # an earlier source entity
        parents[entity, int(rng.integers(entity))] = None  # an earlier target entity
    chosen = [pair for pair in parents if rng.random() < 0.9]
    filled = torch.zeros(size, size, dtype=torch.bool)
    for source, target in chosen:
        filled[source, target] = True
    targets = torch.arange(size).expand(size, size)
    return PairTable(targets, torch.zeros(size, size).double(), filled, size)


@pytest.mark.parametrize("scale", [1.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_marginals_are_exact_on_forests(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    table = forest(rng)
    logits = torch.from_numpy(rng.normal(scale=scale, size=table.targets.shape))
    expected = exact(given(table, logits))
    assert len(expected) > 6
    assert approximate(table, logits) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_marginals_are_close_with_cycles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, 5, 5, 4)
    logits = torch.from_numpy(rng.normal(scale=2.0, size=table.targets.shape))
    expected, found = exact(given(table, logits)), approximate(table, logits)
    errors = [abs(found[pair] - prob) for pair, prob in expected.items()]
    assert max(errors) < 0.1 and np.mean(errors) < 0.03
    # and much closer than what each side believes without the other's messages
    own = approximate(table, logits, competition=0.0)
    assert np.mean(errors) < np.mean(
        [abs(own[pair] - p) for pair, p in expected.items()]
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_entity_is_matched_more_than_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, 30, 25, 8)
    found = approximate(
        table, torch.from_numpy(rng.normal(scale=6, size=table.targets.shape))
    )
    for side in (0, 1):
        sums: dict[int, float] = {}
        for pair, prob in found.items():
            sums[pair[side]] = sums.get(pair[side], 0.0) + prob
        assert max(sums.values()) <= 1 + 1e-6
        assert max(sums.values()) > 0.9


def test_without_competition_each_side_compares_its_own_pairs() -> None:
    rng = np.random.default_rng(0)
    table = random_table(rng, 6, 6, 4)
    logits = torch.from_numpy(rng.normal(size=table.targets.shape))
    values = given(table, logits)
    for (source, target), prob in approximate(table, logits, competition=0.0).items():
        rivals = [
            1
            + sum(math.exp(v) for pair, v in values.items() if pair[side] == own)
            - own_value
            for side, own, own_value in (
                (0, source, math.exp(values[source, target])),
                (1, target, math.exp(values[source, target])),
            )
        ]
        odds = values[source, target] - (math.log(rivals[0]) + math.log(rivals[1])) / 2
        assert prob == pytest.approx(1 / (1 + math.exp(-odds)))


def test_a_largest_potential_does_not_cancel_its_rivals() -> None:
    targets = torch.tensor([[0, 1], [0, 1]])
    filled = torch.tensor([[True, True], [True, False]])
    table = PairTable(targets, torch.zeros(2, 2), filled, 2)
    logits = torch.tensor([[60.0, -3.0], [-2.0, 0.0]])
    found = approximate(table, logits)
    assert found[0, 0] == pytest.approx(1)
    expected = exact(given(table, logits.double()))
    assert found[0, 1] == pytest.approx(expected[0, 1], rel=1e-4)
    assert found[1, 0] == pytest.approx(expected[1, 0], rel=1e-4)


def test_equal_potentials_share_alike() -> None:
    table = PairTable(
        torch.tensor([[0, 1], [1, 0]]), torch.zeros(2, 2), torch.ones(2, 2).bool(), 2
    )
    found = approximate(table, torch.full((2, 2), 30.0, dtype=torch.float64))
    assert list(found.values()) == pytest.approx([0.5] * 4, abs=1e-3)


def test_a_table_without_pairs_has_no_beliefs() -> None:
    table = PairTable(
        torch.zeros(3, 1).long(), torch.zeros(3, 1), torch.zeros(3, 1).bool(), 4
    )
    messages = matching_messages(table, torch.zeros(3, 1))
    assert (log_marginals(table, torch.zeros(3, 1), messages) == -torch.inf).all()


@pytest.mark.parametrize("seed", range(2))
def test_relabelling_entities_moves_the_marginals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, 12, 10, 5)
    logits = torch.from_numpy(rng.normal(scale=4, size=table.targets.shape))
    rows, columns = rng.permutation(12), torch.from_numpy(rng.permutation(10))
    order = torch.from_numpy(np.argsort(rows))
    moved = PairTable(
        columns[table.targets][order],
        table.scores[order],
        table.filled[order],
        table.num_target,
    )
    expected = {
        (int(rows[s]), int(columns[t])): prob
        for (s, t), prob in approximate(table, logits).items()
    }
    assert approximate(moved, logits[order]) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("competition", [0.4, 1.0])
def test_both_computations_end_after_the_same_pass(
    competition: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    table = random_table(rng, 300, 200, 10, dtype=torch.float32)
    logits = torch.from_numpy(rng.normal(scale=8, size=table.targets.shape)).float()
    start, found = matching_messages(table, logits / 2, max_passes=2), []
    before = start.from_source.clone(), start.from_target.clone()
    for allowed in (True, False):
        monkeypatch.setattr(choice._Switch, "allows_compiled", allowed)
        found.append(
            matching_messages(
                table,
                logits,
                competition=competition,
                max_passes=40,
                tolerance=0.05,
                start=start,
            )
        )
    assert torch.equal(before[0], start.from_source) and torch.equal(
        before[1], start.from_target
    )
    torch.testing.assert_close(
        found[0].from_source, found[1].from_source, rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(
        found[0].from_target, found[1].from_target, rtol=1e-5, atol=1e-5
    )
    assert not torch.allclose(found[0].from_source, start.from_source, atol=0.1)
