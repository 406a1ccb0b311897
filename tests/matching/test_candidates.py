"""Best targets against sorted rows of scores."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from emea.matching.candidates import mutual_pairs, top_candidates
from emea.matching.csls import CSLS
from emea.matching.similarity import Cosine, Similarity

from .random_tables import from_scores

with_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def score_tables(draw: st.DrawFn) -> Tensor:
    """Scores of few values, so that ties are common."""
    num_source, num_target = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    row = st.lists(st.integers(-2, 2), min_size=num_target, max_size=num_target)
    rows = draw(st.lists(row, min_size=num_source, max_size=num_source))
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.usefixtures("block_bytes")
@with_fixture
@given(score_tables(), st.integers(1, 9))
def test_candidates_are_the_best_of_each_row(scores: Tensor, k: int) -> None:
    candidates = top_candidates(from_scores(scores), k)
    assert candidates.targets.shape[1] == min(k, scores.shape[1])
    for row, targets, best in zip(
        scores, candidates.targets, candidates.scores, strict=True
    ):
        assert best.tolist() == sorted(row.tolist(), reverse=True)[:k]
        assert row[targets].tolist() == best.tolist()
        assert len(set(targets.tolist())) == len(targets)


def looped(similarity: Similarity) -> list[list[int]]:
    scores = similarity.scores(torch.arange(similarity.num_source))
    pairs = []
    for source in range(similarity.num_source):
        target = max(
            range(similarity.num_target), key=lambda t: float(scores[source, t])
        )
        back = max(range(similarity.num_source), key=lambda s: float(scores[s, target]))
        if back == source:
            pairs.append([source, target])
    return pairs


@pytest.mark.parametrize("decoder", [Cosine(), CSLS(k=3)])
@pytest.mark.parametrize(
    ("num_source", "num_target"), [(12, 9), (7, 15), (1, 5), (5, 1)]
)
@pytest.mark.usefixtures("block_bytes")
def test_pairs_are_those_of_a_loop(
    decoder: Cosine | CSLS, num_source: int, num_target: int
) -> None:
    torch.manual_seed(num_source)
    similarity = decoder(torch.randn(num_source, 4), torch.randn(num_target, 4))
    assert mutual_pairs(similarity).tolist() == looped(similarity)
