"""What beliefs leave to choose."""

import numpy as np
import pytest
import torch

from emea.matching.beliefs import Beliefs

from .random_beliefs import free_table, random_beliefs


@pytest.mark.parametrize("seed", range(20))
def test_labels_take_their_entities_out_of_the_choice(seed: int) -> None:
    beliefs, labels = random_beliefs(seed)
    before = beliefs.probs.clone()
    left = beliefs.without(labels)
    none = torch.zeros(0, 2, dtype=torch.int64)
    expected = free_table(beliefs, labels)
    found = free_table(left, none)
    assert np.array_equal(found, expected[:, : found.shape[1]])
    assert not expected[:, found.shape[1] :].any()
    assert torch.equal(beliefs.probs, before)


def test_what_was_believed_of_a_taken_target_is_not_given_to_others() -> None:
    beliefs = Beliefs(torch.tensor([[0, 1], [0, 1]]), torch.tensor([[1.0, 0.0], [0.75, 0.25]]))
    left = beliefs.without(torch.tensor([[0, 0]]))
    assert left.probs.tolist() == [[0, 0], [0, 0.25]]
    assert left.rest_prob.tolist() == [1, 0.75]
