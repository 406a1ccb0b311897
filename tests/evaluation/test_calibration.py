"""Bins and their error against loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from emea.evaluation.calibration import (
    Acceptance,
    JudgedAnswer,
    answer_calibration,
    expected_calibration_error,
    reliability_bins,
    source_evaluation,
)
from emea.matching.beliefs import Beliefs

predictions = st.lists(
    st.tuples(
        st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0])),
        st.booleans(),
    ),
    max_size=30,
)


def looped_error(rows: list[tuple[float, bool]], num_bins: int) -> float:
    error = 0.0
    for index in range(num_bins):
        low, high = index / num_bins, (index + 1) / num_bins
        inside = [
            (p, right) for p, right in rows if low <= p < high or (p == high == 1)
        ]
        if inside:
            said = sum(p for p, _ in inside) / len(inside)
            came_true = sum(right for _, right in inside) / len(inside)
            error += len(inside) / len(rows) * abs(said - came_true)
    return error


@given(predictions, st.integers(1, 12))
def test_equals_a_loop(rows: list[tuple[float, bool]], num_bins: int) -> None:
    probs = np.array([p for p, _ in rows], dtype=np.float64)
    right = np.array([came_true for _, came_true in rows], dtype=np.bool_)
    bins = reliability_bins(probs, right, num_bins)
    assert sum(row["num_entities"] for row in bins) == len(rows)
    for row in bins:
        assert row["min_prob"] - 1e-9 <= row["mean_prob"] <= row["max_prob"] + 1e-9
        assert row["max_prob"] - row["min_prob"] == pytest.approx(1 / num_bins)
    if rows:
        assert expected_calibration_error(bins) == pytest.approx(
            looped_error(rows, num_bins)
        )
    else:
        assert math.isnan(expected_calibration_error(bins))


def test_an_edge_belongs_to_the_upper_bin() -> None:
    bins = reliability_bins(np.array([0.3, 0.7, 1.0]), np.array([True, False, True]))
    assert [row["min_prob"] for row in bins] == [0.3, 0.7, 0.9]


def test_an_answer_is_judged_on_its_test_links() -> None:
    targets = torch.tensor([[5], [6], [7], [8]])
    answer = Beliefs(targets, torch.tensor([[0.75], [0.0], [0.25], [1.0]]))
    # 0 right, 1 unmatched though its slot would be right, 2 wrong, 3 not asked for
    calibration = answer_calibration(answer, np.array([[0, 5], [1, 6], [2, 9]]))
    assert (calibration["num_entities"], calibration["num_unmatched"]) == (2, 1)
    assert calibration["ece"] == pytest.approx(0.25)
    assert [row["accuracy"] for row in calibration["bins"]] == [0, 1]


def test_without_test_links_there_is_nothing_to_say() -> None:
    answer = Beliefs(torch.tensor([[5]]), torch.tensor([[0.75]]))
    calibration = answer_calibration(answer, np.zeros((0, 2), dtype=np.int64))
    assert calibration["bins"] == []
    assert math.isnan(calibration["ece"])


def slow_curve(
    rows: list[tuple[float, bool]], num_links: int
) -> dict[float, tuple[float, float]]:
    """Precision and recall from each probability on, by a loop."""
    found = {}
    for threshold in {prob for prob, _ in rows if prob}:
        taken = [right for prob, right in rows if prob >= threshold]
        found[threshold] = sum(taken) / len(taken), sum(taken) / num_links
    return found


def slow_two_step(
    rows: list[tuple[float, bool]], linked: range, num_missed: int
) -> dict[str, dict[str, float]]:
    """The evaluation of DBP2.0 by counting, where dangling entities are the positive class."""
    counts = dict.fromkeys(("dropped", "right_to_drop", "kept", "right"), 0)
    for number, (prob, right) in enumerate(rows):
        if prob < 0.5:
            counts["dropped"] += 1
            counts["right_to_drop"] += number not in linked
        else:
            counts["kept"] += 1
            counts["right"] += right
    num_dangling = len(rows) - len(linked)
    return {
        "detection": scores_of(
            counts["right_to_drop"], counts["dropped"], num_dangling
        ),
        "alignment": scores_of(
            counts["right"], counts["kept"], len(linked) + num_missed
        ),
    }


def scores_of(right: int, num_found: int, num_true: int) -> dict[str, float]:
    f1 = 2 * right / (num_found + num_true)  # the same as from precision and recall
    return {
        "precision": pytest.approx(right / num_found),
        "recall": pytest.approx(right / num_true),
        "f1": pytest.approx(f1),
    }


def test_two_step_evaluation_of_six_entities() -> None:
    """Four entities with a counterpart and two without, judged by hand."""
    targets = torch.tensor([[0], [1], [9], [3], [4], [5]])
    answer = Beliefs(targets, torch.tensor([[0.9], [0.5], [0.8], [0.4], [0.7], [0.2]]))
    test = np.array([[0, 0], [1, 1], [2, 2], [3, 3]])
    found = source_evaluation(answer, answer, test, np.array([4, 5]))["two_step"]
    # 3 and 5 are dropped, of which 5 has no counterpart; of 0, 1, 2 and 4, two are right
    assert found["detection"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert found["alignment"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    one = source_evaluation(
        answer, answer, test, np.array([4]), given=np.array([[0, 0]])
    )
    # the match of 0 was given, so it counts as none; 3 is missed
    assert one["two_step"]["detection"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert one["two_step"]["alignment"]["precision"] == pytest.approx(1 / 3)
    assert one["two_step"]["alignment"]["recall"] == pytest.approx(1 / 4)


def test_further_matches_of_an_entity_are_judged_once() -> None:
    answer = Beliefs(
        torch.tensor([[0, 1], [2, 3], [4, 4]]), torch.tensor([[0.9, 0.8]] * 3)
    )
    answer.probs[2, 1] = 0.0
    test, given = np.array([[0, 1], [1, 2], [1, 3]]), np.array([[0, 0]])
    found = source_evaluation(answer, answer, test, np.array([2]), given=given)
    assert (found["num_entities"], found["precision"], found["recall"]) == (
        3,
        0.75,
        1.0,
    )
    assert found["detection"]["auc"] == 0.5


@pytest.mark.parametrize("seed", range(3))
def test_sources_with_and_without_a_counterpart_equal_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num, num_missed = 60, 3
    sources = rng.permutation(80)[:num]
    test = np.stack([sources[:40], rng.permutation(50)[:40]], axis=1)
    targets = torch.from_numpy(rng.integers(0, 50, (80, 2)))
    hits = rng.random(40) < 0.6
    targets[test[hits, 0], 0] = torch.from_numpy(test[hits, 1])
    probs = torch.from_numpy(np.round(rng.random((80, 1)), 1)) * torch.tensor(
        [[1.0, 0.5]]
    )
    beliefs = Beliefs(targets, probs)
    best = beliefs.best_slots().unsqueeze(1)
    answer = Beliefs(targets.gather(1, best), probs.gather(1, best))
    found = source_evaluation(
        answer, beliefs, test, sources[40:], num_missed=num_missed
    )

    gold = dict(test.tolist())
    rows = [
        (float(answer.probs[one, 0]), gold.get(one) == int(answer.targets[one, 0]))
        for one in sources.tolist()
    ]
    rows = [(prob, right and prob > 0) for prob, right in rows]
    expected = slow_curve(rows, 43)
    for point in found["curve"]:
        assert (point["precision"], point["recall"]) == pytest.approx(
            expected[point["threshold"]]
        )
    assert len(found["curve"]) == len(expected)
    assert (found["precision"], found["recall"]) == pytest.approx(
        expected[min(expected)]
    )
    for wanted, recall in found["recall_at_precision"].items():
        reached = [r for p, r in expected.values() if p >= float(wanted)]
        assert recall == pytest.approx(max(reached, default=0))
    pairs = [(a, b) for a, _ in rows[:40] for b, _ in rows[40:]]
    area = np.mean([(a > b) + (a == b) / 2 for a, b in pairs])
    detected = found["detection"]
    assert detected["auc"] == pytest.approx(area)
    chosen = [number < 40 for number, (prob, _) in enumerate(rows) if prob >= 0.5]
    assert detected["precision"] == pytest.approx(np.mean(chosen))
    assert found["two_step"] == slow_two_step(rows, range(40), num_missed)
    assert detected["recall"] == pytest.approx(sum(chosen) / 40)
    assert (found["num_entities"], found["num_without_counterpart"]) == (60, 20)


@pytest.mark.parametrize(
    ("num_right", "num_accepted"), [(9, 10), (95, 100), (20, 20), (1, 7)]
)
def test_the_bound_is_where_luck_has_one_chance_in_twenty(
    num_right: int, num_accepted: int
) -> None:
    low = Acceptance(0.5, 200, num_accepted, num_right).precision_low
    assert binom.sf(num_right - 1, num_accepted, low) == pytest.approx(0.05)


def test_where_nothing_is_accepted_there_is_no_precision() -> None:
    nothing, wrong = Acceptance(0.5, 10, 0, 0), Acceptance(0.5, 10, 4, 0)
    assert np.isnan([nothing.precision, nothing.precision_low]).all()
    assert nothing.recall == wrong.precision == wrong.precision_low == 0
    assert np.isnan(Acceptance(0.5, 0, 0, 0).recall)


def test_an_entity_with_several_matches_is_judged_by_each() -> None:
    targets = torch.tensor([[1, 2, 3], [4, 0, 0], [5, 6, 0]])
    probs = torch.tensor([[0.9, 0.8, 0.7], [0.6, 0.0, 0.0], [1.0, 0.5, 0.0]])
    links, given_links = (
        np.array([[0, 1], [0, 3], [1, 9], [2, 6], [2, 7]]),
        np.array([[2, 5]]),
    )
    judged = JudgedAnswer(Beliefs(targets, probs), links, given=given_links)
    rows = zip(judged.probs.round(3).tolist(), judged.right.tolist(), strict=True)
    assert sorted(rows) == [
        (0.5, True),
        (0.6, False),
        (0.7, True),
        (0.8, False),
        (0.9, True),
    ]
    assert (judged.at(0).precision, judged.at(0).recall) == (3 / 5, 3 / 5)
    assert (judged.at(0.65).precision, judged.at(0.65).recall) == (2 / 3, 2 / 5)


@pytest.mark.parametrize(
    ("num_right", "contradicted"), [(85, True), (86, False), (100, False)]
)
def test_links_contradict_a_precision_outside_their_interval(
    num_right: int, contradicted: bool
) -> None:
    # 100 matches at a precision of 0.9 have 90 right ones with a standard deviation of 3
    targets = np.where(np.arange(100) < num_right, np.arange(100), 100)
    answer = Beliefs(torch.from_numpy(targets).unsqueeze(1), torch.full((100, 1), 0.8))
    judged = JudgedAnswer(answer, np.stack([np.arange(100), np.arange(100)], axis=1))
    assert judged.contradicts(np.array([0.5, 0.9]), 0.9).tolist() == [
        contradicted,
        False,
    ]
