"""Compatibility and conflicts of a mapping against counting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.evaluation.compatibility import NUM_BINS, compatibility_metrics, conflict_share

NO_ENTITIES = np.empty(0, dtype=np.int64)


@given(st.integers(0, 2**32))
def test_equals_a_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, targets = rng.random(20), rng.integers(-1, 9, 20)
    linked = rng.permutation(20)[: rng.integers(1, 21)]
    judged = linked[: rng.integers(1, len(linked) + 1)]
    numbers = compatibility_metrics(values, targets, judged, linked)
    seen = [values[e] if targets[e] >= 0 else 0.0 for e in judged]
    answered = [e for e in judged if targets[e] >= 0]
    shared = [any(targets[o] == targets[e] and o != e for o in linked) for e in answered]
    assert numbers["mean"] == pytest.approx(np.mean(seen))
    assert numbers["conflicts"] == pytest.approx(np.mean(shared) if shared else 0.0)
    assert numbers["num_unmatched"] == len(judged) - len(answered)
    bins = [min(int(value * NUM_BINS), NUM_BINS - 1) for value in seen]
    assert numbers["histogram"] == [bins.count(index) for index in range(NUM_BINS)]


def test_both_ends_are_in_the_histogram() -> None:
    everybody = np.arange(3)
    numbers = compatibility_metrics(np.array([0.0, 1.0, 1.0]), everybody, everybody, everybody)
    assert (numbers["histogram"][0], numbers["histogram"][-1]) == (1, 2)


def test_an_entity_without_counterpart_is_not_a_rival() -> None:
    targets, linked = np.array([0, 0, 0]), np.array([0, 1])
    assert compatibility_metrics(np.ones(3), targets, linked, linked)["conflicts"] == 1
    alone = compatibility_metrics(np.ones(3), targets, linked[:1], linked[:1])
    assert alone["conflicts"] == 0


def test_without_judged_entities_there_is_no_mean() -> None:
    numbers = compatibility_metrics(np.ones(2), np.zeros(2, dtype=np.int64), *[NO_ENTITIES] * 2)
    assert math.isnan(numbers["mean"]) and math.isnan(numbers["conflicts"])
    assert (sum(numbers["histogram"]), numbers["num_unmatched"]) == (0, 0)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_shared_targets_are_counted(targets: list[int]) -> None:
    conflicting = sum(targets.count(target) > 1 for target in targets)
    assert conflict_share(np.array(targets)) == pytest.approx(conflicting / len(targets))


def test_without_predictions_nothing_is_shared() -> None:
    assert conflict_share(np.empty(0, dtype=np.int64)) == 0.0


def test_an_entity_without_prediction_takes_no_part() -> None:
    assert conflict_share(np.array([-1, -1, 3, 3, 4, 5])) == 0.5
    assert conflict_share(np.array([-1, -1])) == 0.0
