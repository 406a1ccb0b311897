"""The best of each group, and what a matching is made of."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.baselines.reasoner import Assignment, best_of_each, fixed_log_doubt, tie_order
from emea.data.settings import Cardinality
from emea.matching.many_matching import ManyMatching
from emea.rules.implied_pairs import FIXED_POINT, ImpliedPairs


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30), st.randoms()
)
def test_the_best_of_each_group(rows: list[tuple[int, int]], random: object) -> None:
    ties = list(range(len(rows)))
    random.shuffle(ties)  # type: ignore[attr-defined]
    columns = torch.tensor(rows, dtype=torch.int64).reshape(-1, 2)
    best = best_of_each(
        columns[:, 0], 5, columns[:, 1], torch.tensor(ties, dtype=torch.int64)
    )
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


def test_doubt_in_whole_numbers() -> None:
    assert fixed_log_doubt(0.5).item() == round(math.log(0.5) * FIXED_POINT)
    assert fixed_log_doubt(0.0).item() == 0
    assert fixed_log_doubt(1.0).item() < fixed_log_doubt(0.999999).item()


ROWS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 4)),
    st.sampled_from([0.05, 0.2, 0.5, 0.8, 1.0]),
)


def allowed(
    offered: dict[tuple[int, int], float],
    certain: list[tuple[int, int]],
    cardinality: Cardinality,
) -> dict[tuple[int, int], float]:
    """Loop over the pairs: theta, then the entities of certain pairs, then the best of each."""
    found = {
        pair: prob
        for pair, prob in offered.items()
        if prob >= 0.1 and pair not in certain
    }
    sides = cardinality.unique_sides.values()
    for side in sides:
        taken = {pair[side] for pair in certain}
        found = {pair: prob for pair, prob in found.items() if pair[side] not in taken}

    def rank(pair: tuple[int, int]) -> tuple[float, int]:
        one, other = (torch.tensor([entity]) for entity in pair)
        return (-found[pair], int(tie_order(one, other, 5)))

    best = [
        {min((p for p in found if p[side] == q[side]), key=rank) for q in found}
        for side in sides
    ]
    kept = {pair for pair in found if all(pair in chosen for chosen in best)}
    return {pair: found[pair] for pair in kept} | dict.fromkeys(certain, 1.0)


@given(ROWS, ROWS, st.sampled_from(list(Cardinality)[1:]))
def test_all_pairs_that_a_cardinality_allows(
    first: dict[tuple[int, int], float],
    second: dict[tuple[int, int], float],
    cardinality: Cardinality,
) -> None:
    certain: list[tuple[int, int]] = []
    for pair in (pair for pair, prob in first.items() if prob == 1):
        sides = cardinality.unique_sides.values()
        if all(pair[side] != other[side] for side in sides for other in certain):
            certain.append(pair)
    keys = torch.tensor(certain, dtype=torch.int64).reshape(-1, 2)
    known = ManyMatching.of_pairs(keys, torch.ones(len(certain)), 4, 5)
    assignment = Assignment(known, 0.1, cardinality)
    for part in (first, second):
        columns = torch.tensor(sorted(part), dtype=torch.int64).reshape(-1, 2)
        probs = [min(part[pair], 0.9) for pair in sorted(part)]
        assignment.offer(
            ImpliedPairs(
                *columns.T, fixed_log_doubt(torch.tensor(probs, dtype=torch.float64))
            )
        )
    offered = {
        pair: max(min(part[pair], 0.9) for part in (first, second) if pair in part)
        for pair in first.keys() | second.keys()
    }
    found = assignment.matching()
    rows = zip(found.pairs().tolist(), found.pair_probs().tolist(), strict=True)
    assert {tuple(pair): round(prob, 6) for pair, prob in rows} == allowed(
        offered, certain, cardinality
    )
