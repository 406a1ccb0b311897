"""The best of each group, and what a matching is made of."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.baselines.reasoner import (
    MaximalAssignment,
    best_of_each,
    fixed_log_doubt,
    tie_order,
)
from emea.matching.beliefs import Matching
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs


def pairs(*rows: tuple[int, int, float]) -> ImpliedPairs:
    sources, targets, probs = zip(*rows, strict=True)
    return ImpliedPairs(
        torch.tensor(sources), torch.tensor(targets), fixed_log_doubt(torch.tensor(probs))
    )


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30), st.randoms())
def test_the_best_of_each_group(rows: list[tuple[int, int]], random: object) -> None:
    ties = list(range(len(rows)))
    random.shuffle(ties)  # type: ignore[attr-defined]
    columns = torch.tensor(rows, dtype=torch.int64).reshape(-1, 2)
    best = best_of_each(columns[:, 0], 5, columns[:, 1], torch.tensor(ties, dtype=torch.int64))
    for group in range(5):
        members = [i for i, (owner, _) in enumerate(rows) if owner == group]
        chosen = [i for i in members if best[i]]
        expected = min(members, key=lambda i: (-rows[i][1], ties[i]), default=None)
        assert chosen == ([] if expected is None else [expected])


def test_ties_have_distinct_places_that_ids_do_not_foretell() -> None:
    num = 300
    grid = torch.cartesian_prod(torch.arange(num), torch.arange(num))
    order = tie_order(grid[:, 0], grid[:, 1], num)
    assert len(order.unique()) == num * num
    # among all targets, that with the source's own id wins no more often than any other
    winners = order.view(num, num).argmin(1)
    assert (winners == torch.arange(num)).sum() < 6
    assert (winners == 0).sum() < 6


def test_each_side_chooses_once() -> None:
    known = Matching.of_links(torch.tensor([[0, 0]]), 4, 4)
    assignment = MaximalAssignment(known, theta=0.1)
    # 1 would rather have the seed's target; 2 and 3 both want 2; weak pairs are not heard
    offers = pairs((1, 0, 0.9), (1, 1, 0.3), (2, 2, 0.5), (2, 3, 0.4), (3, 2, 0.6), (3, 3, 0.05))
    assignment.offer(offers)
    matching = assignment.matching()
    assert matching.targets.tolist() == [0, 1, -1, 2]
    assert matching.probs.tolist() == pytest.approx([1, 0.3, 0, 0.6], abs=1e-6)


def test_holds_what_is_better_than_the_offers() -> None:
    nothing = Matching.of_links(torch.zeros(0, 2, dtype=torch.int64), 3, 3)
    assignment = MaximalAssignment(nothing, theta=0.1)
    assignment.offer(pairs((0, 0, 0.5), (1, 1, 0.2)))
    held = Matching(torch.tensor([2, 2, 0]), torch.tensor([0.4, 0.3, 0.05]).double(), 3)
    assignment.hold(held)
    assert assignment.matching().pairs().tolist() == [[0, 0], [1, 2]]


def test_doubt_in_whole_numbers() -> None:
    assert fixed_log_doubt(0.5).item() == round(math.log(0.5) * FIXED_POINT)
    assert fixed_log_doubt(0.0).item() == 0
    assert fixed_log_doubt(1.0).item() < fixed_log_doubt(0.999999).item()
