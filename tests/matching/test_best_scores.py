"""Best scores of blocks against torch's own functions."""

import pytest
import torch

from emea.matching.best_scores import GROUP, ColumnBests, best_of_rows, log_sums

NUM_ROWS, NUM_COLUMNS, K = 40, 30 * GROUP + 5, 5


def scores_of(kind: str) -> torch.Tensor:
    scores = torch.randn(NUM_ROWS, NUM_COLUMNS)
    if kind == "ties":
        scores = (scores * 3).round()
    if kind == "some ties":
        scores[:, GROUP : 2 * GROUP] = scores[:, :GROUP]
    if kind == "empty":
        scores[:, K - 1 :] = -torch.inf
    return scores


@pytest.mark.parametrize("kind", ["distinct", "some ties", "ties", "empty"])
def test_best_of_rows_equals_topk(kind: str) -> None:
    scores = scores_of(kind)
    expected = scores.topk(K, dim=1)
    values, columns = best_of_rows(scores, K)
    assert torch.equal(values, expected.values)
    assert torch.equal(columns, expected.indices)


@pytest.mark.parametrize("kind", ["distinct", "some ties", "ties", "empty"])
@pytest.mark.parametrize("rows_per_block", [3, 7, NUM_ROWS])
def test_column_bests_equal_topk(kind: str, rows_per_block: int) -> None:
    scores = scores_of(kind)
    bests = ColumnBests(K, NUM_COLUMNS, scores)
    for block in scores.split(rows_per_block):
        bests.add(block)
    assert torch.equal(bests.values, scores.topk(K, dim=0).values)


def test_log_sums_equal_logsumexp() -> None:
    scores = scores_of("distinct")
    scores[3] = -torch.inf
    assert torch.equal(
        log_sums(scores.clone(), scores.amax(1)), torch.logsumexp(scores, dim=1)
    )
