"""Metrics of mappings and answers, their compatibility, and accuracy by degree, by loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.settings import Cardinality
from emea.evaluation.metrics import (
    NUM_BINS,
    accuracy_by_degree,
    answer_metrics,
    compatibility_metrics,
    conflict_share,
    mapping_metrics,
    unknown_pairs,
)
from emea.matching.beliefs import Beliefs

NONE = np.zeros((0, 2), dtype=np.int64)
GOLD = np.array([[0, 10], [1, 11], [2, 12], [3, 13]])


@pytest.mark.parametrize(
    ("predicted", "num_missed", "expected"),
    [
        # right: (1, 11); wrong target: (0, 11); no counterpart: (7, 17)
        (np.array([[0, 11], [1, 11], [7, 17]]), 0, (1 / 3, 1 / 4, 2 / 7)),
        (np.array([[0, 11], [1, 11], [7, 17]]), 1, (1 / 3, 1 / 5, 1 / 4)),
        (NONE, 0, (0, 0, 0)),
    ],
)
def test_a_mapping_by_hand(
    predicted: np.ndarray, num_missed: int, expected: tuple[float, ...]
) -> None:
    metrics = mapping_metrics(predicted, GOLD, num_missed)
    names = ("precision", "recall", "f1", "num_predicted")
    assert metrics == pytest.approx(
        dict(zip(names, (*expected, len(predicted)), strict=True))
    )
    unknown = mapping_metrics(predicted, NONE)
    assert all(np.isnan(unknown[key]) for key in names[:3])
    assert unknown["num_predicted"] == len(predicted)


pair_sets = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1)


@given(pair_sets, pair_sets)
def test_f1_is_the_dice_coefficient(
    left: set[tuple[int, int]], right: set[tuple[int, int]]
) -> None:
    predicted, gold = np.array(sorted(left)), np.array(sorted(right))
    expected = 2 * len(left & right) / (len(left) + len(right))
    metrics = mapping_metrics(predicted, gold)
    assert metrics["f1"] == pytest.approx(expected)
    assert metrics["precision"] == mapping_metrics(gold, predicted)["recall"]


TEST = np.array([[1, 11], [2, 12], [3, 13], [4, 14]])


def test_an_answer_by_hand() -> None:
    # 0 is labelled; 1 right, 2 wrong, 3 unmatched, 4 right; 5 has no counterpart, 6 says so
    targets = torch.tensor([[10], [11], [11], [13], [14], [15], [16]])
    probs = torch.tensor([[1.0], [0.5], [0.4], [0.0], [0.2], [0.9], [0.0]])
    assert answer_metrics(Beliefs(targets, probs), GOLD[:1], TEST) == pytest.approx(
        {
            "hit@1": 2 / 4,
            "precision": 2 / 4,
            "recall": 2 / 4,
            "f1": 2 / 4,
            "num_predicted": 4,
            "num_unmatched": 2,
        }
    )


def test_nothing_said_is_nothing_right() -> None:
    answer = Beliefs(torch.zeros(5, 1, dtype=torch.int64), torch.zeros(5, 1))
    metrics = answer_metrics(answer, GOLD[:1], TEST)
    assert (metrics["hit@1"], metrics["f1"], metrics["num_unmatched"]) == (0, 0, 4)


@pytest.mark.parametrize("cardinality", Cardinality)
def test_known_links_decide_the_pairs_of_their_source_entities(
    cardinality: Cardinality,
) -> None:
    pairs, known = np.array([[0, 1], [0, 2], [1, 2]]), np.array([[0, 2], [3, 1]])
    unknown = [[1, 2]] if cardinality.one_target else [[0, 1], [1, 2]]
    assert unknown_pairs(pairs, known, cardinality).tolist() == unknown


ENTITIES = st.lists(
    st.tuples(st.sampled_from([1.0, 1.5, 2.0, 9.0]), st.integers(0, 40))
)


def looped(entities: list[tuple[float, int]]) -> list[dict[str, float]]:
    rows = []
    for start, end in [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 10**9)]:
        hits = [rank == 1 for rank, degree in entities if start <= degree < end]
        if hits:
            rows.append(
                {
                    "min_degree": start,
                    "num_entities": len(hits),
                    "hit@1": sum(hits) / len(hits),
                }
            )
    return rows


@given(ENTITIES)
def test_buckets(entities: list[tuple[float, int]]) -> None:
    ranks = np.array([rank for rank, _ in entities])
    degrees = np.array([degree for _, degree in entities], dtype=np.int64)
    rows, expected = accuracy_by_degree(ranks, degrees), looped(entities)
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert row == pytest.approx(wanted)


NO_ENTITIES = np.empty(0, dtype=np.int64)


@given(st.integers(0, 2**32))
def test_equals_a_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, targets = np.append(rng.random(18), [0.0, 1.0]), rng.integers(-1, 9, 20)
    linked = rng.permutation(20)[: rng.integers(1, 21)]
    judged = linked[: rng.integers(1, len(linked) + 1)]
    numbers = compatibility_metrics(values, targets, judged, linked)
    seen = [values[e] if targets[e] >= 0 else 0.0 for e in judged]
    answered = [e for e in judged if targets[e] >= 0]
    shared = [
        any(targets[o] == targets[e] and o != e for o in linked) for e in answered
    ]
    assert numbers["mean"] == pytest.approx(np.mean(seen))
    assert numbers["conflicts"] == pytest.approx(np.mean(shared) if shared else 0.0)
    assert numbers["num_unmatched"] == len(judged) - len(answered)
    bins = [min(int(value * NUM_BINS), NUM_BINS - 1) for value in seen]
    assert numbers["histogram"] == [bins.count(index) for index in range(NUM_BINS)]


def test_without_judged_entities_there_is_no_mean() -> None:
    numbers = compatibility_metrics(
        np.ones(2), np.zeros(2, dtype=np.int64), *[NO_ENTITIES] * 2
    )
    assert math.isnan(numbers["mean"]) and math.isnan(numbers["conflicts"])
    assert (sum(numbers["histogram"]), numbers["num_unmatched"]) == (0, 0)


@given(st.lists(st.integers(-1, 9), max_size=30))
def test_shared_targets_are_counted(targets: list[int]) -> None:
    given = [target for target in targets if target >= 0]  # -1: without prediction
    conflicting = sum(given.count(target) > 1 for target in given)
    expected = conflicting / len(given) if given else 0.0
    assert conflict_share(np.array(targets, dtype=np.int64)) == pytest.approx(expected)
