"""What earlier encoders thought of a pair."""

import pytest
import torch

from emea.em.normaliser import RunningScores
from emea.matching.pair_table import PairTable


def table(rows: list[list[int]], num_target: int = 9) -> PairTable:
    """A row of targets per source entity, padded with target 0."""
    width = max(len(row) for row in rows)
    targets = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    filled = torch.tensor([[slot < len(row) for slot in range(width)] for row in rows])
    return PairTable(targets, torch.zeros(targets.shape), filled, num_target)


def test_known_pairs_are_blended_and_new_ones_are_not() -> None:
    running = RunningScores(0.25)
    first, second = table([[4, 2], [7]]), table([[2, 5], [7, 0]])
    past = torch.tensor([[-1.0, -2.0], [-3.0, 99.0]])
    now = torch.tensor([[-4.0, -5.0], [-6.0, -7.0]])
    assert running.blended(first, (past, 2 * past))[0] is past
    running.keep(first, (past, 2 * past))
    forth, back = running.blended(second, (now, now))
    # of (1, 0) there is a slot in the first table, but an empty one
    torch.testing.assert_close(forth, torch.tensor([[-3.5, -5.0], [-5.25, -7.0]]))
    torch.testing.assert_close(back, torch.tensor([[-4.0, -5.0], [-6.0, -7.0]]))


def test_the_mean_continues() -> None:
    running, pairs = RunningScores(0.5), table([[1]])
    for score in (-8.0, -4.0, -2.0):
        given = torch.tensor([[score]])
        blended = running.blended(pairs, (given, given))
        running.keep(pairs, blended)
    assert float(blended[0]) == pytest.approx(-4.0)


def test_a_saved_state_continues_the_same() -> None:
    running, pairs = RunningScores(0.5), table([[1, 3], [2]])
    scores = torch.tensor([[-1.0, -2.0], [-3.0, 0.0]])
    running.keep(pairs, (scores, scores))
    restored = RunningScores(0.5)
    restored.load_state_dict(running.state_dict())
    now = torch.zeros(2, 2)
    for mine, theirs in zip(
        running.blended(pairs, (now, now)), restored.blended(pairs, (now, now)), strict=True
    ):
        assert torch.equal(mine, theirs)


def test_without_a_share_nothing_is_kept() -> None:
    running, pairs = RunningScores(0.0), table([[1]])
    scores = torch.tensor([[-1.0]])
    running.keep(pairs, (scores, scores))
    assert running.state_dict() == {}
    assert running.blended(pairs, (scores, scores))[0] is scores
