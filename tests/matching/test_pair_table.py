"""Tables of pairs against dictionaries."""

import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.matching.pair_table import LabelledSlots, PairTable, ScoredPairs, tabulate

from .random_tables import pairs_of, random_table

NUM_SOURCE, NUM_TARGET = 4, 5

# few scores, so that ties and repeated pairs are common
offers = st.lists(
    st.tuples(
        st.integers(0, NUM_SOURCE - 1),
        st.integers(0, NUM_TARGET - 1),
        st.sampled_from([-1.0, 0.0, 0.5]),
        st.integers(0, 2),
    ),
    max_size=30,
)
Offer = tuple[int, int, float, int]


def tabulated(given: list[Offer], width: int) -> PairTable:
    sources, targets, scores, preference = (
        zip(*given, strict=True) if given else [()] * 4
    )
    pairs = ScoredPairs(
        torch.tensor(sources, dtype=torch.int64),
        torch.tensor(targets, dtype=torch.int64),
        torch.tensor(scores, dtype=torch.float32),
    )
    return tabulate(pairs, torch.tensor(preference), NUM_SOURCE, NUM_TARGET, width)


def best_offers(given: list[Offer]) -> dict[tuple[int, int], tuple[int, float]]:
    """The largest preference of each pair, and its best score."""
    best: dict[tuple[int, int], tuple[int, float]] = defaultdict(lambda: (0, -math.inf))
    for source, target, score, preference in given:
        most, highest = best[source, target]
        best[source, target] = (max(most, preference), max(highest, score))
    return best


@given(offers, st.integers(1, 6))
def test_rows_hold_distinct_pairs_preferred_and_best_first(
    given: list[Offer], width: int
) -> None:
    best = best_offers(given)
    table = tabulated(given, width)
    assert (table.num_source, table.num_target) == (NUM_SOURCE, NUM_TARGET)
    for source in range(NUM_SOURCE):
        filled = table.filled[source].tolist()
        targets = table.targets[source, : sum(filled)].tolist()
        assert filled == sorted(filled, reverse=True)
        assert len(set(targets)) == len(targets)
        kept = [best[source, target] for target in targets]
        assert [score for _, score in kept] == table.scores[
            source, : sum(filled)
        ].tolist()
        offered = [rank for (row, _), rank in best.items() if row == source]
        assert kept == sorted(offered, reverse=True)[:width]


@given(offers, st.integers(1, 6))
def test_the_order_of_the_offers_does_not_matter(
    given: list[Offer], width: int
) -> None:
    one, other = tabulated(given, width), tabulated(given[::-1], width)
    for name in ("targets", "scores", "filled"):
        assert torch.equal(getattr(one, name), getattr(other, name))


def test_a_table_is_no_wider_than_its_longest_row() -> None:
    given = [(0, 1, 0.5, 0), (0, 2, 0.4, 0), (3, 0, 0.1, 1)]
    assert tabulated(given, 5).targets.shape == (NUM_SOURCE, 2)
    assert tabulated([], 5).filled.tolist() == [[False]] * NUM_SOURCE


@pytest.mark.parametrize("seed", range(5))
def test_sums_and_maxima_by_target(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, 6, 7, 4)
    values = torch.from_numpy(rng.normal(size=table.targets.shape))
    least = torch.from_numpy(rng.normal(size=7))
    sums, most = [0.0] * 7, least.tolist()
    for (_, target), place in pairs_of(table).items():
        sums[target] += values[place].item()
        most[target] = max(most[target], values[place].item())
    assert table.sum_by_target(values).tolist() == pytest.approx(sums)
    assert table.max_by_target(values, least).tolist() == most
    nothing = torch.full((7,), -torch.inf, dtype=torch.float64)
    of_none = set(range(7)) - {target for _, target in pairs_of(table)}
    found = table.max_by_target(values, nothing)
    assert {target for target in range(7) if found[target] == -torch.inf} == of_none


def test_what_empty_slots_hold_is_in_no_sum() -> None:
    table = random_table(np.random.default_rng(0), 6, 7, 4)
    sums = [
        table.sum_by_target(torch.where(table.filled, 1.0, x)) for x in (0.0, torch.inf)
    ]
    assert torch.equal(*sums)


@pytest.mark.parametrize("seed", range(5))
def test_marked_slots_are_those_of_the_links(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, 6, 7, 4)
    links = torch.from_numpy(np.stack([rng.permutation(n)[:5] for n in (6, 7)], axis=1))
    marked = {tuple(place) for place in table.marked(links).nonzero().tolist()}
    linked = {(source, target) for source, target in links.tolist()}
    assert marked == {
        place for pair, place in pairs_of(table).items() if pair in linked
    }
    assert not table.marked(links[:0]).any()


def test_labels_decide_the_slots_of_their_entities() -> None:
    table = random_table(np.random.default_rng(0), 8, 9, 5, 0.6)
    places = pairs_of(table)
    labels = [next(iter(places)), (7, 8)]
    log_probs = torch.full(table.targets.shape, -2.0)
    found = LabelledSlots.of(table, torch.tensor(labels)).put_into(log_probs)
    expected = torch.full_like(found, -torch.inf)
    for (source, target), place in places.items():
        is_other = all(source != label[0] and target != label[1] for label in labels)
        expected[place] = (
            0.0 if (source, target) in labels else -2.0 if is_other else -torch.inf
        )
    assert torch.equal(found, expected)
    assert (log_probs == -2).all()
