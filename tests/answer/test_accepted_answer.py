import math

import pytest
import torch

from emea.answer.decoding import accepted
from emea.matching.beliefs import Beliefs

ANSWER = Beliefs(torch.tensor([[3], [4], [5], [6]]), torch.tensor([[1.0], [0.7], [0.2], [0.0]]))
LABELS = torch.tensor([[0, 3]])


@pytest.mark.parametrize(
    ("threshold", "probs"),
    [
        (0.0, [1.0, 0.7, 0.2, 0.0]),
        (float(torch.tensor(0.7)), [1.0, 0.7, 0.0, 0.0]),
        (0.9, [1.0, 0.0, 0.0, 0.0]),
        (math.inf, [1.0, 0.0, 0.0, 0.0]),
    ],
)
def test_what_is_less_probable_is_left_out(threshold: float, probs: list[float]) -> None:
    kept = accepted(ANSWER, threshold, LABELS)
    assert torch.equal(kept.probs, torch.tensor(probs).unsqueeze(1))
    assert torch.equal(kept.targets, ANSWER.targets)


def test_a_sure_answer_is_no_label() -> None:
    sure = Beliefs(ANSWER.targets, torch.ones(4, 1))
    assert accepted(sure, math.inf, LABELS).probs.flatten().tolist() == [1, 0, 0, 0]
