"""Matchings."""

import pytest
import torch

from emea.matching.matching import Matching


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
    some, other = matching([2, -1, -1], [0.5, 0, 0]), matching([1, 2, 3], [0.9, 0.8, 0.7])
    joined = some.joined(other)
    assert joined.targets.tolist() == [2, -1, 3]
    assert joined.probs.tolist() == pytest.approx([0.5, 0, 0.7])


def test_changes_count_entities() -> None:
    assert matching([0, -1, 2], [1, 0, 1]).num_changes(matching([0, 1, 3], [1, 1, 1])) == 2
