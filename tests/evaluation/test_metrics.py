"""Metrics of mappings and answers, and accuracy by degree, computed by hand and by loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.evaluation.metrics import accuracy_by_degree, answer_metrics, mapping_metrics
from emea.matching.beliefs import Beliefs

NONE = np.zeros((0, 2), dtype=np.int64)
GOLD = np.array([[0, 10], [1, 11], [2, 12], [3, 13]])


def test_a_mapping_by_hand() -> None:
    # right: (1, 11); wrong target: (0, 11); no counterpart: (7, 17)
    predicted = np.array([[0, 11], [1, 11], [7, 17]])
    assert mapping_metrics(predicted, GOLD) == pytest.approx(
        {"precision": 1 / 3, "recall": 1 / 4, "f1": 2 / 7, "num_predicted": 3}
    )


def test_nothing_predicted_scores_zero() -> None:
    expected = {"precision": 0, "recall": 0, "f1": 0, "num_predicted": 0}
    assert mapping_metrics(NONE, GOLD) == expected


@pytest.mark.parametrize("predicted", [GOLD, NONE])
def test_without_gold_links_there_is_nothing_to_say(predicted: np.ndarray) -> None:
    metrics = mapping_metrics(predicted, NONE)
    assert all(np.isnan(metrics[key]) for key in ("precision", "recall", "f1"))
    assert metrics["num_predicted"] == len(predicted)


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
    assert answer_metrics(Beliefs(targets, probs), np.array([0]), TEST) == pytest.approx(
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
    metrics = answer_metrics(answer, np.array([0]), TEST)
    assert (metrics["hit@1"], metrics["f1"], metrics["num_unmatched"]) == (0, 0, 4)


ENTITIES = st.lists(st.tuples(st.sampled_from([1.0, 1.5, 2.0, 9.0]), st.integers(0, 40)))


def looped(entities: list[tuple[float, int]]) -> list[dict[str, float]]:
    rows = []
    for start, end in [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (32, 10**9)]:
        hits = [rank == 1 for rank, degree in entities if start <= degree < end]
        if hits:
            rows.append(
                {"min_degree": start, "num_entities": len(hits), "hit@1": sum(hits) / len(hits)}
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
