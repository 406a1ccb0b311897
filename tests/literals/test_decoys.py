"""The model of decoys against slow loops and synthetic truth."""

import numpy as np
import pytest

from emea.literals import decoys, level_ratios
from emea.literals.agreement import Column
from emea.literals.decoys import (
    Candidates,
    best_three,
    competing,
    draw_sample,
    fit_weights,
    judge_best,
    level_shares,
    posterior,
    share_of_right,
)
from emea.literals.level_ratios import log_ratio


def candidates_of(pairs, levels, similarity) -> Candidates:
    """Candidates with levels from 1 to 4 of some attributes."""
    columns = [
        Column(f"attribute {number}", one, 4, True)
        for number, one in enumerate(levels.T)
    ]
    return Candidates(
        pairs=pairs,
        columns=columns,
        words=similarity,
        similarity=similarity,
        is_known=np.zeros(len(pairs), dtype=bool),
    )


def drawn(
    rng: np.random.Generator,
    num_source: int,
    share: float,
    num_attributes: int = 4,
    num_others: int = 5,
) -> tuple[Candidates, np.ndarray]:
    """Candidates of which the first of each source is right for a share of them.

    Wrong candidates agree by chance. The mask says which pairs are right.
    """
    rows, is_right = [], []
    for source in range(num_source):
        if rng.random() < share:
            rows.append((source, source))
            is_right.append(True)
        for other in rng.choice(2 * num_source, num_others, replace=False).tolist():
            if other != source:
                rows.append((source, other))
                is_right.append(False)
    pairs, right = np.array(rows), np.array(is_right)
    of_right = rng.choice(4, (len(pairs), num_attributes), p=[0.05, 0.1, 0.25, 0.6]) + 1
    of_wrong = (
        rng.choice(4, (len(pairs), num_attributes), p=[0.55, 0.25, 0.15, 0.05]) + 1
    )
    levels = np.where(right[:, None], of_right, of_wrong)
    similarity = levels.mean(1) / 4 + rng.normal(0, 0.02, len(pairs))
    return candidates_of(pairs, levels, similarity), right


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_probabilities_are_as_often_right_as_they_say(share: float) -> None:
    candidates, is_right = drawn(np.random.default_rng(1), 1500, share)

    found = judge_best(candidates)

    right = is_right[found.places]
    num_right = int(right.sum())
    assert found.probs.sum() == pytest.approx(num_right, abs=0.06 * len(right))
    assert found.share == pytest.approx(num_right / len(right), abs=0.08)
    sure = found.probs >= 0.9
    assert right[sure].mean() > 0.9
    unsure = found.probs < 0.1
    assert right[unsure].mean() < 0.15


def test_several_differences_outweigh_an_equal_title() -> None:
    rng = np.random.default_rng(3)
    candidates, _ = drawn(rng, 600, 1.0, num_attributes=7)
    sources, targets = candidates.pairs.T
    is_own = sources == targets
    is_remake = is_own & (sources % 2 == 0)
    # the title decides the best pair; half of these are remakes, of which all else differs
    title = candidates.columns[0].levels
    title[:] = np.where(is_own, 4, np.minimum(title, 2))
    for column in candidates.columns[1:]:
        wrong = rng.choice(4, len(sources), p=[0.7, 0.2, 0.07, 0.03]) + 1
        right = rng.choice(4, len(sources), p=[0.02, 0.03, 0.05, 0.9]) + 1
        column.levels[is_own] = np.where(is_remake, wrong, right)[is_own]
    similarity = (
        title / 4 + np.mean([one.levels for one in candidates.columns], axis=0) / 4
    )

    found = judge_best(candidates._replace(similarity=similarity, words=similarity))

    probs = found.probs[np.argsort(sources[found.places])]
    assert (probs[0::2] >= 0.5).mean() <= 0.1
    assert (probs[1::2] >= 0.5).mean() >= 0.9


def test_links_are_certain_and_exclude_other_pairs() -> None:
    candidates, is_right = drawn(np.random.default_rng(4), 300, 0.7)
    _, first = np.unique(candidates.pairs[~is_right][:, 0], return_index=True)
    wrong = np.flatnonzero(~is_right)[first][:5]
    is_known = np.zeros(len(is_right), dtype=bool)
    is_known[wrong] = True

    found = judge_best(candidates._replace(is_known=is_known))

    known = is_known[found.places]
    assert set(wrong) <= set(found.places[known])
    assert (found.probs[known] == 1).all()
    assert (found.probs[~known] < 1).all()


def test_best_three_equals_a_loop() -> None:
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 30, 100)
    scores = rng.integers(0, 5, 100).astype(float)
    ties = rng.permutation(100).astype(float)

    found = best_three(groups, scores, ties)

    for group in range(groups.max() + 1):
        rows = [row for row in range(100) if groups[row] == group]
        rows.sort(key=lambda row: (scores[row], ties[row]), reverse=True)
        expected = [*rows, -1, -1, -1][:3]
        assert [places[group] for places in found] == expected


def test_margins_of_decoys_ignore_the_best_pair() -> None:
    rng = np.random.default_rng(6)
    candidates, _ = drawn(rng, 40, 0.6)
    pairs, ranks = candidates.pairs, candidates.similarity

    sample = draw_sample(candidates, ranks)

    both = np.concatenate([sample.best, sample.decoys])
    for row, place in enumerate(both.tolist()):
        source, target = pairs[place]
        of_source = [
            one for one in range(len(pairs)) if pairs[one, 0] == source and one != place
        ]
        if row >= len(sample.best):
            of_source.remove(max(of_source, key=lambda one: ranks[one]))
        of_target = [
            one for one in range(len(pairs)) if pairs[one, 1] == target and one != place
        ]
        for margins, others in zip(sample.margins, (of_source, of_target), strict=True):
            rival = max((ranks[one] for one in others), default=0.0)
            assert margins[row] == pytest.approx(ranks[place] - rival)


def test_level_shares_equal_a_loop() -> None:
    rng = np.random.default_rng(7)
    levels = rng.integers(0, 4, 50)
    right, wrong = rng.random(30), rng.random(50)

    found = level_shares(levels, 3, right, wrong)

    for weights, shares in zip((right, wrong), found, strict=True):
        counts = [
            sum(
                weight
                for weight, level in zip(weights, levels, strict=False)
                if level == wanted
            )
            for wanted in (1, 2, 3)
        ]
        total = sum(counts) + level_ratios.PSEUDO_COUNT
        expected = [(count + level_ratios.PSEUDO_COUNT / 3) / total for count in counts]
        np.testing.assert_allclose(shares, expected)


def test_log_ratios_rise_and_a_missing_value_says_nothing() -> None:
    right, wrong = np.array([0.1, 0.3, 0.2, 0.4]), np.array([0.4, 0.2, 0.3, 0.1])

    found = log_ratio(right, wrong, np.array([1, 2, 3, 4]), most=1.0)

    assert found[0] == 0
    assert (np.diff(found[1:]) >= 0).all()
    assert found[1] == -1.0 and found[4] == 1.0
    # the two middle levels are in the wrong order, and share their mean
    assert found[2] == pytest.approx(found[3]) == pytest.approx(0.0, abs=1e-6)


def test_weights_minimise_the_loss() -> None:
    rng = np.random.default_rng(8)
    features = rng.normal(0, 1, (80, 2))
    features[:40, 0] += 1.5
    right, wrong = rng.random(40), rng.random(80)

    weights, offset = fit_weights(features, right, wrong)

    def loss(first: float, second: float, start: float) -> float:
        total = 0.0
        for row in range(80):
            score = first * features[row, 0] + second * features[row, 1] + start
            total += wrong[row] / wrong.sum() / 2 * np.log1p(np.exp(score))
            if row < 40:
                total += right[row] / right.sum() / 2 * np.log1p(np.exp(-score))
        prior = (first - decoys.USUAL_WEIGHT) ** 2 + (second - decoys.USUAL_WEIGHT) ** 2
        return float(total + decoys.RIDGE * prior)

    least = loss(weights[0], weights[1], offset)
    assert (weights >= decoys.LEAST_WEIGHT).all()
    for step in (-0.05, 0.05):
        assert loss(weights[0] + step, weights[1], offset) > least
        assert loss(weights[0], weights[1], offset + step) > least
        if weights[1] + step >= decoys.LEAST_WEIGHT:
            assert loss(weights[0], weights[1] + step, offset) > least


def test_share_counts_best_pairs_that_score_like_decoys() -> None:
    rng = np.random.default_rng(9)
    wrong, right = rng.normal(0, 1, 4000), rng.normal(8, 1, 6000)

    found = share_of_right(
        np.append(wrong, right), rng.normal(0, 1, 5000), np.ones(5000)
    )
    nothing = share_of_right(wrong, rng.normal(0, 1, 5000), np.ones(5000))

    assert found == pytest.approx(0.6, abs=0.03)
    assert nothing == pytest.approx(0.0, abs=0.03)


def test_posterior_multiplies_the_odds() -> None:
    assert posterior(np.array([0.0]), 0.3)[0] == pytest.approx(0.3)
    assert posterior(np.array([np.log(2)]), 0.5)[0] == pytest.approx(2 / 3)


def test_a_worse_pair_of_a_target_needs_the_better_one_to_be_wrong() -> None:
    probs = np.array([0.9, 0.6, 0.7])

    found = competing(np.array([3, 3, 5]), probs)

    np.testing.assert_allclose(found, [0.9, 0.6 * 0.1, 0.7])
