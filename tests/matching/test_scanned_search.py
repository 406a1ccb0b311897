"""The search of a GPU, compared with ``topk`` and ``logsumexp`` over all scores."""

from unittest.mock import Mock

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.em.normaliser import SoftmaxNormaliser
from emea.kernels.column_scan import GROUP, scan, torch_scan
from emea.matching import csls, scanned_search
from emea.matching.candidates import top_candidates
from emea.matching.scanned_search import scanned
from emea.matching.similarity import Similarity


def random_similarity(
    num_source: int, num_target: int, device: str | torch.device = "cpu", dim: int = 24
) -> Similarity:
    generator = torch.Generator().manual_seed(num_source + num_target)
    rows, columns = (
        normalize(torch.randn(size, dim, generator=generator))
        for size in (num_source, num_target)
    )
    offsets = [
        0.2 * torch.rand(size, generator=generator) for size in (num_source, num_target)
    ]
    parts = [part.to(device) for part in (rows, columns, *offsets)]
    return Similarity(*parts, scale=2.0)


def all_scores(similarity: Similarity) -> Tensor:
    """All scores in double precision."""
    dots = similarity.source.double() @ similarity.target.double().T
    offsets = (
        similarity.source_offset.double().unsqueeze(1)
        + similarity.target_offset.double()
    )
    return similarity.scale * dots - offsets


@pytest.fixture(autouse=True)
def rounded_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half precision has as many significant bits as TF32, which a CPU does not have."""
    products = scanned_search.rough_dots

    def rounded(source: Tensor, target: Tensor) -> Tensor:
        if source.is_cuda:
            return products(source, target)
        return source.half().float() @ target.half().float().T

    monkeypatch.setattr(scanned_search, "rough_dots", rounded)


def check(similarity: Similarity, k: int, sharpness: float) -> None:
    targets, scores, log_mass = scanned(similarity, k, sharpness)
    expected = all_scores(similarity)
    best = expected.topk(k, dim=1)
    torch.testing.assert_close(scores.double(), best.values, rtol=0, atol=1e-5)
    torch.testing.assert_close(
        expected.gather(1, targets), best.values, rtol=0, atol=1e-5
    )
    assert all(len(set(row)) == k for row in targets.tolist())
    mass = (sharpness * expected).logsumexp(1)
    # rounding changes a score by at most 0.0002; the best pairs are corrected
    tolerance = 2e-4 * sharpness if sharpness < 100 else 1e-3
    torch.testing.assert_close(log_mass.double(), mass, rtol=0, atol=tolerance)


@pytest.mark.parametrize("num_target", [GROUP * 72, GROUP * 72 + 1, GROUP * 80 - 1])
@pytest.mark.parametrize("k", [1, 10])
def test_the_best_targets_and_the_denominator(num_target: int, k: int) -> None:
    for sharpness in (
        1.0,
        12.0,
        300.0,
    ):  # the best pairs have most of the last one's mass
        check(random_similarity(37, num_target), k, sharpness)


def test_small_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity = random_similarity(37, 2500)
    whole = scanned(similarity, 5, 3.0)
    monkeypatch.setitem(scanned_search.BLOCK_BYTES, "cpu", 4 * 2500 * 10)
    monkeypatch.setattr(scanned_search, "LEAST_ROWS", 1)
    parts = scanned(similarity, 5, 3.0)
    for left, right in zip(whole, parts, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("num_target", "num_rows"),
    [(1000, 16384), (100_000, 1342), (1_000_000, 512), (10_000_000, 107), (2**31, 1)],
)
def test_rows_of_a_block(num_target: int, num_rows: int) -> None:
    assert scanned_search.block_rows(num_target)["cuda"] == num_rows


def test_pairs_that_tf32_cannot_tell_apart_are_ranked_exactly() -> None:
    # two targets differ by less than TF32 can represent
    similarity = random_similarity(20, 3000)
    target = similarity.target.clone()
    target[1::2] = target[::2] * (1 + 1e-5)
    similarity = Similarity(
        similarity.source,
        target,
        similarity.source_offset,
        torch.zeros(3000),
        scale=1.0,
    )
    best = all_scores(similarity).topk(6, dim=1)
    assert torch.equal(scanned(similarity, 6)[0], best.indices)


def test_it_is_not_used_on_a_cpu_or_for_short_rows() -> None:
    assert not scanned_search.usable(random_similarity(5, 3000), 10)


@pytest.mark.parametrize("k", [1, 10])
def test_searches_use_it_where_it_is_usable(
    monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    similarity = random_similarity(2600, 2500)
    normaliser = SoftmaxNormaliser(7.0)
    plain = (
        top_candidates(similarity, k),
        top_candidates(similarity, k, 7.0),
        csls.neighbourhood_means(similarity, k),
        normaliser.search(similarity, k)[0],
    )
    scans = Mock(wraps=scanned_search.scanned)
    monkeypatch.setattr(scanned_search, "scanned", scans)
    monkeypatch.setattr(scanned_search, "usable", lambda searched, number: True)
    found = top_candidates(similarity, k)
    torch.testing.assert_close(found.scores, plain[0].scores, rtol=0, atol=1e-6)
    side = top_candidates(similarity, k, 7.0)
    torch.testing.assert_close(side.scores, plain[1].scores, rtol=0, atol=1e-6)
    torch.testing.assert_close(side.log_mass, plain[1].log_mass, rtol=0, atol=2e-3)
    for left, right in zip(
        csls.neighbourhood_means(similarity, k), plain[2], strict=True
    ):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-6)
    beliefs = normaliser.search(similarity, k)[0]
    torch.testing.assert_close(beliefs.probs, plain[3].probs, rtol=2e-3, atol=0)
    assert scans.call_count == 5


@pytest.mark.gpu
@pytest.mark.parametrize("num_target", [3000, 4101])
@pytest.mark.parametrize("k", [1, 10])
def test_on_a_gpu(cuda: torch.device, num_target: int, k: int) -> None:
    similarity = random_similarity(300, num_target, cuda)
    assert scanned_search.usable(similarity, k)
    check(similarity, k, 12.0)
    dots = similarity.source @ similarity.target.T
    found = scan(dots, similarity.target_offset, 2.0, 5.0)
    expected = torch_scan(dots, similarity.target_offset, 2.0, 5.0)
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-5)
