"""Lookalikes against slow loops and synthetic truth."""

import math

import numpy as np
import pytest

from emea.literals import lookalikes
from emea.literals.agreement import Column
from emea.literals.lookalikes import (
    BestPairs,
    expected_share,
    find_lookalikes,
    independent_columns,
    log_odds,
    rank_correlation,
)

RIGHT, BY_CHANCE = [0.05, 0.1, 0.25, 0.6], [0.55, 0.25, 0.15, 0.05]
"""Shares of the levels of an attribute."""


def drawn(
    rng: np.random.Generator, num_pairs: int, share: float
) -> tuple[list[Column], np.ndarray, BestPairs, np.ndarray]:
    """Best pairs of which a share are lookalikes, and as many decoys.

    All have equal titles but the decoys. Year and price agree in right pairs, and by chance in
    the others. The mask says which of the best pairs are right.
    """
    is_right = rng.random(num_pairs) >= share
    similarity = np.concatenate(
        [rng.uniform(0.8, 1, num_pairs), rng.uniform(0, 0.6, num_pairs)]
    )
    title = 1 + (similarity * 4).astype(int).clip(max=3)
    columns = [Column("title", title, 4, True)]
    for name in ("year", "price"):
        levels = 1 + rng.choice(4, 2 * num_pairs, p=BY_CHANCE)
        levels[:num_pairs][is_right] = 1 + rng.choice(4, is_right.sum(), p=RIGHT)
        columns.append(Column(name, levels, 4, True))
    pairs = BestPairs(
        best=np.arange(num_pairs),
        decoys=np.arange(num_pairs, 2 * num_pairs),
        is_known=np.zeros(num_pairs, dtype=bool),
        similar=np.ones(num_pairs),
        weights=np.ones(num_pairs),
    )
    return columns, similarity, pairs, is_right


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_the_share_of_lookalikes_is_found_without_links(share: float) -> None:
    columns, similarity, pairs, is_right = drawn(np.random.default_rng(1), 2000, share)

    found = find_lookalikes(columns, similarity, pairs)

    probs = 1 / (1 + np.exp(-found.log_odds()))
    assert found.compared == ["year", "price"]
    assert found.share == pytest.approx(1 - is_right.mean(), abs=0.07)
    assert probs.mean() == pytest.approx(is_right.mean(), abs=0.07)
    assert is_right[probs > 0.9].mean() > 0.9
    assert is_right[probs < 0.5].mean() < 0.5


def test_equal_titles_only_are_doubted_as_much_as_expected() -> None:
    columns, similarity, pairs, _ = drawn(np.random.default_rng(2), 300, 0.2)
    pairs = pairs._replace(similar=np.full(300, 0.5))

    found = find_lookalikes(columns[:1], similarity, pairs)

    # half of the entities have a similar pair: a share pi' is right, and lambda (1 - pi') is not
    right = (0.5 - lookalikes.RATE) / (1 - lookalikes.RATE)
    expected = 1 - right / 0.5
    assert found.compared == []
    assert found.expected == pytest.approx(expected, abs=1e-3)
    np.testing.assert_allclose(found.log_odds(), math.log(1 / expected - 1), atol=0.01)


def test_pairs_without_values_are_doubted_next_to_others() -> None:
    columns, similarity, pairs, _ = drawn(np.random.default_rng(3), 1000, 0.0)
    pairs = pairs._replace(similar=np.full(1000, 0.6))
    for column in columns[1:]:
        column.levels[:100] = 0

    found = find_lookalikes(columns, similarity, pairs)

    assert found.share < 0.05 < found.expected
    doubted = math.log(1 / found.expected - 1)
    np.testing.assert_allclose(found.log_odds()[:100], doubted)
    assert np.median(found.log_odds()[100:]) > 3


@pytest.mark.parametrize(
    ("right", "expected"), [(0.5, 0.0991), (1.0, 0.0), (0.0, 0.45)]
)
def test_expected_share(right: float, expected: float) -> None:
    assert expected_share(right) == pytest.approx(expected, abs=1e-4)


def test_links_show_what_right_pairs_look_like() -> None:
    rng = np.random.default_rng(4)
    columns, similarity, pairs, is_right = drawn(rng, 300, 0.5)
    known = np.zeros(300, dtype=bool)
    known[np.flatnonzero(is_right)[:100]] = True

    without = find_lookalikes(columns, similarity, pairs)
    found = find_lookalikes(columns, similarity, pairs._replace(is_known=known))

    free = ~known
    probs = 1 / (1 + np.exp(-found.log_odds()[free]))
    truth = is_right[free]
    before = 1 / (1 + np.exp(-without.log_odds()[free]))
    assert ((probs - truth) ** 2).mean() <= ((before - truth) ** 2).mean()


def test_estimates_equal_a_loop() -> None:
    rng = np.random.default_rng(5)
    columns, similarity, pairs, _ = drawn(rng, 60, 0.3)
    pairs = pairs._replace(similar=rng.random(60), weights=rng.random(60))

    found = find_lookalikes(columns, similarity, pairs)

    expected, share = looped(columns[1:], pairs)
    assert found.compared == ["year", "price"]
    assert found.share == pytest.approx(share)
    np.testing.assert_allclose(found.log_odds(), expected)


def test_near_keys_equal_a_loop() -> None:
    rng = np.random.default_rng(8)
    columns, _, pairs, _ = drawn(rng, 60, 0.3)
    pairs = pairs._replace(similar=rng.random(60), weights=rng.random(60))
    used = [columns[1], columns[2]._replace(num_agreeing=1)]

    found, log_likelihood = lookalikes.estimated_from(lookalikes.RATE, used, pairs)

    expected, share = looped(used, pairs)
    assert found.share == pytest.approx(share)
    np.testing.assert_allclose(found.log_odds(), expected)
    summed = 0.0
    for similar, evidence in zip(pairs.similar, found.evidence, strict=True):
        summed += similar * math.log((1 - share) * math.exp(evidence) + share)
    assert log_likelihood == pytest.approx(summed)


@pytest.mark.parametrize("num_pairs", [150, 1000])
@pytest.mark.parametrize(("num_keys", "expected"), [(1, False), (2, False), (3, True)])
def test_equal_titles_with_three_different_keys_are_lookalikes(
    num_pairs: int, num_keys: int, expected: bool
) -> None:
    rng = np.random.default_rng(9)
    columns, similarity, pairs, _ = drawn(rng, num_pairs, 1.0)
    keys = [
        Column(
            f"key {number}", 1 + rng.choice(4, 2 * num_pairs, p=BY_CHANCE), 4, True, 1
        )
        for number in range(num_keys)
    ]

    found = find_lookalikes(columns[:1], similarity, pairs, keys)

    assert found.compared == ([key.name for key in keys] if expected else [])
    doubted = 1 / (1 + np.exp(found.log_odds()))
    assert bool(doubted.mean() > 0.8) is expected


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_contradiction_equals_a_loop(share: float) -> None:
    rng = np.random.default_rng(10)
    _, _, pairs, _ = drawn(rng, 40, 1.0)
    pairs = pairs._replace(similar=np.ones(40), weights=np.ones(40))
    levels = np.where(rng.random(80) < share, 4, rng.integers(0, 4, 80))
    levels[40:] = rng.integers(1, 5, 40)

    found = lookalikes.contradiction([Column("key", levels, 4, True, 1)], pairs)

    # each pair in turn: right pairs update the prior, and the others are like decoys
    agrees, differs, odds = 18.0, 2.0, 0.0
    num_known = (levels[:40] > 0).sum()
    chance = ((levels[40:] == 4).sum() + 1) / 42
    chance = min(chance, ((levels[:40] == 4).sum() + 1) / (num_known + 2))
    for level in levels[:40]:
        if level == 4:
            odds += math.log(chance) - math.log(agrees / (agrees + differs))
            agrees += 1
        elif level:
            odds += math.log(1 - chance) - math.log(differs / (agrees + differs))
            differs += 1
    assert found == pytest.approx(min(max(odds, 0), math.log(10)))


def test_keys_that_agree_by_chance_do_not_count() -> None:
    columns, similarity, pairs, _ = drawn(np.random.default_rng(9), 200, 0.0)
    always = Column("language", np.full(400, 4), 4, True, 1)
    missing = Column("key", np.zeros(400, dtype=np.int64), 4, True, 1)

    found = find_lookalikes(columns, similarity, pairs, [always, missing])

    assert found.compared == ["year", "price"]


def looped(columns: list[Column], pairs: BestPairs) -> tuple[list[float], float]:
    """EM with loops; the order of the levels is kept by pooling neighbours."""
    share = lookalikes.RATE
    wrong = [share] * len(pairs.best)
    odds: list[float] = []
    for _ in range(lookalikes.NUM_PASSES):
        ratios = []
        for column in columns:
            right = [0.5] * 4
            if column.num_agreeing:  # near-keys agree in 18 of 20 right pairs
                right = [2 / 3] * 3 + [18.0]
            for place, similar, doubt in zip(
                pairs.best, pairs.similar, wrong, strict=True
            ):
                right[column.levels[place] - 1] += similar * (1 - doubt)
            chance = [0.5] * 4
            for place, weight in zip(pairs.decoys, pairs.weights, strict=True):
                chance[column.levels[place] - 1] += weight
            both = np.append(pairs.best, pairs.decoys)
            counts = [
                int((column.levels[both] == level).sum()) for level in range(1, 5)
            ]
            ratio = [
                math.log(one / sum(right) / (other / sum(chance)))
                for one, other in zip(right, chance, strict=True)
            ]
            ratios.append(pooled(ratio, [count + 1e-3 for count in counts]))
        odds = [
            math.log((1 - share) / share)
            + sum(
                ratio[column.levels[place] - 1]
                for ratio, column in zip(ratios, columns, strict=True)
            )
            for place in pairs.best
        ]
        wrong = [1 / (1 + math.exp(one)) for one in odds]
        total = lookalikes.RATE * lookalikes.PRIOR_COUNT
        total += sum(a * b for a, b in zip(wrong, pairs.similar, strict=True))
        share = total / (lookalikes.PRIOR_COUNT + sum(pairs.similar))
    # the share of the last pass belongs to its odds
    shift = math.log((1 - share) / share)
    last = [
        shift
        + sum(
            ratio[column.levels[place] - 1]
            for ratio, column in zip(ratios, columns, strict=True)
        )
        for place in pairs.best
    ]
    return last, share


def pooled(values: list[float], counts: list[float]) -> list[float]:
    """The nearest rising values: neighbours in the wrong order share their mean."""
    blocks: list[list[float]] = []
    for value, count in zip(values, counts, strict=True):
        blocks.append([value, count, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, count, size = blocks.pop()
            before = blocks[-1]
            total = before[1] + count
            before[0] = (before[0] * before[1] + value * count) / total
            before[1], before[2] = total, before[2] + size
    return [
        min(6.0, max(-6.0, value))
        for value, _, size in blocks
        for _ in range(int(size))
    ]


def test_attributes_that_follow_the_words_are_not_independent() -> None:
    columns, similarity, pairs, _ = drawn(np.random.default_rng(6), 400, 0.2)
    counted = Column("all words", columns[1].levels, 4, False)

    found = independent_columns([*columns, counted], similarity, pairs.decoys)

    assert [column.name for column in found] == ["year", "price"]


def test_attributes_that_few_decoys_have_are_left_out() -> None:
    columns, similarity, pairs, _ = drawn(np.random.default_rng(7), 100, 0.2)
    columns[1].levels[pairs.decoys[:-3]] = 0

    found = independent_columns(columns, similarity, pairs.decoys)

    assert [column.name for column in found] == ["price"]


def test_rank_correlation() -> None:
    assert rank_correlation(np.array([1, 2, 3]), np.array([1, 4, 9])) == 1
    assert rank_correlation(np.array([1, 2, 3]), np.array([3, 2, 1])) == -1
    assert rank_correlation(np.array([1, 1, 1]), np.array([3, 2, 1])) == 0


def test_log_odds_of_equal_shares_are_the_evidence() -> None:
    np.testing.assert_allclose(log_odds(np.array([-1.0, 2.0]), 0.5), [-1.0, 2.0])
