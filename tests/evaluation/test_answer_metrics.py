"""An answer judged by hand."""

import numpy as np
import pytest
import torch

from emea.evaluation.metrics import answer_metrics
from emea.matching.beliefs import Beliefs

TEST = np.array([[1, 11], [2, 12], [3, 13], [4, 14]])


def test_by_hand() -> None:
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
