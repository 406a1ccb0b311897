"""What beliefs leave to choose."""

import numpy as np
import pytest
import torch

from emea.matching.beliefs import Beliefs, Matching

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
    beliefs = Beliefs(
        torch.tensor([[0, 1], [0, 1]]), torch.tensor([[1.0, 0.0], [0.75, 0.25]])
    )
    left = beliefs.without(torch.tensor([[0, 0]]))
    assert left.probs.tolist() == [[0, 0], [0, 0.25]]
    assert left.rest_prob.tolist() == [1, 0.75]


def matching(targets: list[int], probs: list[float], num_target: int = 4) -> Matching:
    return Matching(torch.tensor(targets), torch.tensor(probs).double(), num_target)


def test_pairs_and_both_sides_probabilities() -> None:
    some = matching([2, -1, 0], [0.5, 0.0, 1.0])
    assert some.pairs().tolist() == [[0, 2], [2, 0]]
    assert some.target_probs().tolist() == [1.0, 0.0, 0.5, 0.0]
    assert some.beliefs().probs.squeeze(1).tolist() == [0.5, 0.0, 1.0]


def test_fading_leaves_a_share_of_the_evidence() -> None:
    faded = matching([0, 1, -1], [0.75, 1.0, 0.0]).faded(0.5)
    assert faded.probs.tolist() == pytest.approx([0.5, 1.0, 0.0])
    assert matching([0], [0.75]).faded(0.0).probs.tolist() == [0.0]


def test_joining_fills_what_is_free() -> None:
    some, other = (
        matching([2, -1, -1], [0.5, 0, 0]),
        matching([1, 2, 0], [0.9, 0.8, 0.7]),
    )
    joined = some.joined(other)
    assert joined.targets.tolist() == [2, -1, 0]
    assert joined.probs.tolist() == pytest.approx([0.5, 0, 0.7])


def test_changes_count_entities() -> None:
    assert (
        matching([0, -1, 2], [1, 0, 1]).num_changes(matching([0, 1, 3], [1, 1, 1])) == 2
    )


def test_beliefs_within_a_pool_keep_only_its_pairs() -> None:
    beliefs = Beliefs(
        torch.tensor([[0, 1], [1, 2], [2, 0]]),
        torch.tensor([[0.6, 0.3], [0.5, 0.4], [0.7, 0.2]]),
    )
    found = beliefs.within(torch.tensor([0, 2]), torch.tensor([1, 2, 1]))
    expected = torch.tensor([[0.0, 0.3], [0.0, 0.0], [0.7, 0.0]])
    assert torch.equal(found.probs, expected)
    assert torch.equal(found.targets, beliefs.targets)
