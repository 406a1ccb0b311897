"""Cosine against torch's own, pair by pair."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from emea.matching.similarity import Cosine


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_scores_are_cosines(num_source: int, num_target: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    source = 5 * torch.randn(num_source, 3, dtype=torch.float64, generator=generator)
    target = torch.randn(num_target, 3, dtype=torch.float64, generator=generator)
    scores = Cosine()(source, target).scores(torch.arange(num_source))
    for s in range(num_source):
        for t in range(num_target):
            expected = cosine_similarity(source[s], target[t], dim=0)
            torch.testing.assert_close(scores[s, t], expected)


def test_zero_vectors_score_zero() -> None:
    source, target = torch.randn(3, 4), torch.randn(2, 4)
    source[1] = 0
    target[0] = 0
    scores = Cosine()(source, target).scores(torch.arange(3))
    assert scores[1].tolist() == [0, 0]
    assert scores[:, 0].tolist() == [0, 0, 0]
    assert not scores.isnan().any()


def test_reversed_scores_are_transposed() -> None:
    source, target = torch.randn(3, 4), torch.randn(2, 4)
    similarity = Cosine()(source, target)
    torch.testing.assert_close(
        similarity.reversed().scores(torch.arange(2)), similarity.scores(torch.arange(3)).T
    )


def test_embeddings_are_left_as_they_were() -> None:
    source, target = torch.full((3, 4), 2.0), torch.full((2, 4), 3.0)
    Cosine()(source, target).scores(torch.arange(3))
    assert source.unique().tolist() == [2]
    assert target.unique().tolist() == [3]
