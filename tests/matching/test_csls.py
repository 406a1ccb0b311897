"""CSLS against loops over sorted cosines."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from emea.matching.csls import CSLS
from emea.matching.similarity import Similarity

with_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def embeddings(num_source: int, num_target: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    source = torch.randn(num_source, 3, dtype=torch.float64, generator=generator)
    return source, torch.randn(num_target, 3, dtype=torch.float64, generator=generator)


def looped_mean(scores: list[float], k: int) -> float:
    best = sorted(scores, reverse=True)[:k]
    return sum(best) / len(best)


def all_scores(similarity: Similarity) -> Tensor:
    return similarity.scores(torch.arange(similarity.num_source))


@pytest.mark.usefixtures("block_bytes")
@with_fixture
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 12), st.integers(0, 99))
def test_scores(num_source: int, num_target: int, k: int, seed: int) -> None:
    source, target = embeddings(num_source, num_target, seed)
    cosines = normalize(source) @ normalize(target).T
    expected = 2 * cosines
    for s in range(num_source):
        expected[s] -= looped_mean(cosines[s].tolist(), k)
    for t in range(num_target):
        expected[:, t] -= looped_mean(cosines[:, t].tolist(), k)
    torch.testing.assert_close(all_scores(CSLS(k)(source, target)), expected)


def test_reversed_is_the_csls_of_the_other_direction() -> None:
    source, target = embeddings(7, 5, 0)
    forward = CSLS(3)(source, target)
    torch.testing.assert_close(
        all_scores(forward.reversed()), all_scores(CSLS(3)(target, source))
    )


@pytest.mark.usefixtures("block_bytes")
def test_zero_vectors_give_numbers() -> None:
    source, target = embeddings(7, 5, 0)
    source[2] = 0
    target[:2] = 0
    scores = all_scores(CSLS(3)(source, target))
    assert not scores.isnan().any()
    assert torch.equal(scores[:, 0], scores[:, 1])
