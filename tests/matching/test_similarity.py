"""Blocks of scores against a loop over pairs."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cosine_similarity

from emea.matching import similarity as similarity_module
from emea.matching.csls import CSLS
from emea.matching.similarity import Cosine, Similarity, rows_per_block

from .random_tables import random_similarity

with_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def looped_scores(similarity: Similarity) -> Tensor:
    scores = torch.empty(
        similarity.num_source, similarity.num_target, dtype=torch.float64
    )
    for s in range(similarity.num_source):
        for t in range(similarity.num_target):
            dot = sum(
                float(a * b)
                for a, b in zip(similarity.source[s], similarity.target[t], strict=True)
            )
            offset = float(similarity.source_offset[s] + similarity.target_offset[t])
            scores[s, t] = similarity.scale * dot - offset
    return scores


@pytest.mark.usefixtures("block_bytes")
@with_fixture
@given(st.integers(0, 7), st.integers(0, 6), st.integers(0, 99))
def test_blocks_hold_every_score_once(
    num_source: int, num_target: int, seed: int
) -> None:
    similarity = random_similarity(num_source, num_target, seed)
    rows, scores = zip(*similarity.blocks(), strict=True)
    assert torch.cat(rows).tolist() == list(range(num_source))
    torch.testing.assert_close(torch.cat(scores), looped_scores(similarity))


@pytest.mark.usefixtures("block_bytes")
def test_blocks_of_chosen_rows_in_their_order() -> None:
    similarity = random_similarity(6, 4)
    chosen = torch.tensor([4, 0, 0, 5])
    rows, scores = zip(*similarity.blocks(chosen), strict=True)
    assert torch.cat(rows).tolist() == [4, 0, 0, 5]
    torch.testing.assert_close(torch.cat(scores), looped_scores(similarity)[chosen])


def test_reversed_scores_are_transposed() -> None:
    similarity = random_similarity(6, 4)
    reversed_similarity = similarity.reversed()
    assert (reversed_similarity.num_source, reversed_similarity.num_target) == (4, 6)
    torch.testing.assert_close(
        reversed_similarity.scores(torch.arange(4)), looped_scores(similarity).T
    )


def test_blocks_stay_within_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(similarity_module.BLOCK_BYTES, "cpu", 100)
    # four targets in double precision take 32 bytes a row
    assert [len(rows) for rows, _ in random_similarity(7, 4).blocks()] == [3, 3, 1]
    assert rows_per_block(torch.zeros(4, 3), 4) == 6
    assert rows_per_block(torch.zeros(1000, 3), 1000) == 1
    assert rows_per_block(torch.zeros(1000, 3), 0) == 25


def test_restricted_scores_are_those_of_the_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(size, 4, generator=generator) for size in (7, 9))
    whole = CSLS(k=3)(source, target)
    rows, columns = torch.tensor([5, 1]), torch.tensor([8, 0, 3])
    part = whole.restricted(rows, columns)
    assert torch.allclose(part.scores(torch.arange(2)), whole.scores(rows, columns))


@pytest.mark.usefixtures("block_bytes", "each_kernels")
@with_fixture
@given(st.integers(0, 9), st.integers(0, 99))
def test_scores_of_pairs_are_those_of_the_whole(num_pairs: int, seed: int) -> None:
    similarity = random_similarity(6, 4, seed)
    generator = torch.Generator().manual_seed(seed)
    rows, columns = (
        torch.randint(size, (num_pairs,), generator=generator) for size in (6, 4)
    )
    found = similarity.of_pairs(rows, columns)
    torch.testing.assert_close(found, looped_scores(similarity)[rows, columns])
    torch.testing.assert_close(similarity.reversed().of_pairs(columns, rows), found)


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
