"""Counts by TF32 products, compared with the scores of all pairs."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from emea.evaluation import int8_counts
from emea.evaluation import tf32_counts as module
from emea.evaluation.ranks import link_ranks
from emea.evaluation.tf32_counts import (
    ROUNDING,
    WORD,
    Links,
    Margins,
    compare,
    is_quick,
    row_margins,
    tf32_counts,
    undecided,
)
from emea.matching.similarity import Similarity
from emea.matching.tf32_vectors import tf32_vectors

NUM_SOURCE, NUM_TARGET, NUM_POOLED = 200, 700, 300


def noisy_copies(
    noise: float = 1.0, length: float = 1.0, spread: float = 0.0, dim: int = 37
) -> Similarity:
    """Vectors with noisy copies; some targets are equal, and some differ by less than TF32 shows.

    Args:
        noise: Size of the noise.
        length: Mean length of the vectors.
        spread: Standard deviation of the logarithms of their lengths.
        dim: Number of dimensions.
    """
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(NUM_TARGET, dim, generator=generator)
    source = target[:NUM_SOURCE] + noise * torch.randn(NUM_SOURCE, dim, generator=generator)
    source, target = (
        length * normalize(side) * (spread * torch.randn(len(side), 1, generator=generator)).exp()
        for side in (source, target)
    )
    offsets = torch.rand(2, NUM_TARGET, generator=generator) / 5
    target[500:520], offsets[1, 500:520] = target[:20], offsets[1, :20]
    target[600:620], offsets[1, 600:620] = target[:20] * (1 + 1e-6), offsets[1, :20]
    return Similarity(source, target, offsets[0, :NUM_SOURCE], offsets[1], scale=2.0)


def tied_scores() -> Similarity:
    """Scores of few values."""
    generator = torch.Generator().manual_seed(1)
    source, target = (
        torch.randint(-1, 2, (size, 6), generator=generator).float()
        for size in (NUM_SOURCE, NUM_TARGET)
    )
    return Similarity(source, target, torch.zeros(NUM_SOURCE), torch.zeros(NUM_TARGET))


def exact_counts(similarity: Similarity, sources: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Counts by the scores of all pairs, one by one."""
    columns = torch.arange(similarity.num_target, device=sources.device)
    rows = sources.repeat_interleave(len(columns))
    scores = similarity.of_pairs(rows, columns.repeat(len(sources))).view(len(sources), -1)
    reference = scores.gather(1, right[:, None])
    better, equal = (
        torch.stack([counted[:, :NUM_POOLED].sum(1), counted.sum(1)])
        for counted in (scores > reference, scores == reference)
    )
    return better, equal


def compared_by_torch(
    margins: Margins, dots: Tensor, first: int, words: Tensor, first_word: int
) -> Tensor:
    """The kernel's result; it sets the bits of the words one by one."""
    offset, length, error = margins.columns[:, first : first + dots.shape[1]]
    middle, of_length, of_error, constant = margins.rows.unsqueeze(2)
    gap = margins.scale * dots - offset - middle
    margin = of_length * length + of_error * error + constant + ROUNDING * offset.abs()
    is_open = gap.abs() <= margin
    for row, column in is_open.nonzero().tolist():
        words[row, first_word + column // WORD] |= torch.tensor(1 << column % WORD).int()
    return torch.stack([(gap > margin).sum(1), is_open.sum(1)])


@pytest.fixture
def in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare on a CPU, in blocks that are smaller than the graphs."""
    monkeypatch.setattr(module, "compare", compared_by_torch)
    monkeypatch.setattr(module, "MAX_ROWS", 50)
    monkeypatch.setattr(module, "TILE", 64)
    monkeypatch.setattr(module, "WORDS_PER_STEP", 100)
    monkeypatch.setitem(module.BLOCK_BYTES, "cpu", 4 * 50 * 2 * 64)


def some_sources() -> Tensor:
    return torch.randperm(NUM_SOURCE, generator=torch.Generator().manual_seed(1))[:130]


def check(similarity: Similarity) -> None:
    sources = some_sources().to(similarity.source.device)
    found = tf32_counts(similarity, sources, sources, NUM_POOLED)
    assert found is not None
    expected = exact_counts(similarity, sources, sources)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


@pytest.mark.usefixtures("in_small_blocks")
@pytest.mark.parametrize("noise", [0.3, 2.0])
@pytest.mark.parametrize(
    ("length", "spread"), [(1.0, 0.0), (0.01, 0.0), (30.0, 0.0), (1.0, 2.0), (1e-15, 0.0)]
)
def test_counts_are_exact(noise: float, length: float, spread: float) -> None:
    similarity = noisy_copies(noise, length, spread)
    check(similarity)
    sources = torch.arange(NUM_SOURCE)
    equal = exact_counts(similarity, sources, sources)[1]
    assert (equal[1, :20] >= 2).all()  # equal targets
    check(replace(similarity, scale=-0.7))
    check(replace(similarity, source_offset=1e4 * similarity.source_offset))
    check(replace(similarity, target_offset=1e4 * similarity.target_offset))


@pytest.mark.usefixtures("in_small_blocks")
@pytest.mark.parametrize("share", [1.0, module.MAX_SHARE])
def test_ties_are_exact(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SHARE", share)  # the smaller one needs all scores
    check(tied_scores())


@pytest.mark.usefixtures("in_small_blocks")
@pytest.mark.parametrize("num_pooled", [1, 32, 33, NUM_TARGET - 1, NUM_TARGET])
def test_pools_of_any_size(num_pooled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "NUM_POOLED", num_pooled)
    check(noisy_copies())


@pytest.mark.usefixtures("in_small_blocks")
@pytest.mark.parametrize("sign", [-1, 1])
def test_products_may_lose_bits(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SHARE", 1.0)
    similarity = noisy_copies(noise=0.5, length=3.0, dim=600)

    def lossy(rows: Tensor, columns: Tensor) -> Tensor:
        """Sums of aligned groups of four products, which lose the most that they can."""
        total = torch.zeros(len(rows), len(columns), dtype=torch.float64)
        for start in range(0, rows.shape[1], 4):
            part = slice(start, start + 4)
            terms = rows[:, None, part].double() * columns[None, :, part].double()
            largest = torch.maximum(terms.abs().amax(2), total.abs())
            unit = 2.0 ** (largest.clamp(min=1e-30).log2().floor() - 23)
            total = total + terms.sum(2) + 6 * sign * unit
        return total.float()

    plain, losses = module.rough_dots, []

    def noted(rows: Tensor, columns: Tensor) -> Tensor:
        dots = lossy(rows, columns)
        losses.append((dots - plain(rows, columns)).abs().max().item())
        return dots

    monkeypatch.setattr(module, "rough_dots", noted)
    check(similarity)
    assert max(losses) > 1e-4


def margins_of(similarity: Similarity, sources: Tensor) -> Margins:
    reference = similarity.of_pairs(sources, sources)
    rows, columns = tf32_vectors(similarity.source[sources]), tf32_vectors(similarity.target)
    return Margins(
        similarity.scale,
        row_margins(similarity, Links(sources, sources, reference), rows),
        torch.stack([similarity.target_offset, columns.lengths, columns.errors]),
    )


@pytest.mark.parametrize("length", [0.5, 3.0])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_products_decide_most_pairs(length: float, spread: float) -> None:
    similarity, sources = noisy_copies(length=length, spread=spread), torch.arange(NUM_SOURCE)
    margins = margins_of(similarity, sources)
    rows, columns = (tf32_vectors(side).values for side in (similarity.source, similarity.target))
    words = torch.zeros(NUM_SOURCE, -(-NUM_TARGET // WORD), dtype=torch.int32)
    counts = compared_by_torch(margins, rows @ columns.T, 0, words, 0)
    assert NUM_SOURCE + 40 <= counts[1].sum() < 0.005 * NUM_SOURCE * NUM_TARGET
    pairs = [pair for row, column in undecided(words) for pair in zip(row, column, strict=True)]
    assert len(pairs) == counts[1].sum()
    assert {(entity, entity) for entity in range(NUM_SOURCE)} <= {
        (int(row), int(column)) for row, column in pairs
    }


@pytest.mark.usefixtures("in_small_blocks")
@pytest.mark.parametrize("number", [torch.nan, torch.inf, 1e38])
@pytest.mark.parametrize("side", ["source", "target", "source_offset", "target_offset"])
def test_without_finite_numbers_there_are_no_bounds(side: str, number: float) -> None:
    similarity, sources = noisy_copies(length=3.0), torch.arange(NUM_SOURCE)
    getattr(similarity, side)[7] = number
    getattr(similarity, side)[9] = -number
    assert tf32_counts(similarity, sources, sources, NUM_POOLED) is None
    others = sources[10:]
    if side.startswith("source"):
        assert tf32_counts(similarity, others, others, NUM_POOLED) is not None


@pytest.mark.usefixtures("in_small_blocks")
def test_ranks_are_those_of_all_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    similarity, links = noisy_copies(), np.stack([np.arange(150)] * 2, axis=1)
    monkeypatch.setattr(int8_counts, "is_quick", lambda *given: False)
    expected = link_ranks(similarity, links, pool=np.arange(180))
    monkeypatch.setattr(module, "is_quick", lambda *given: True)
    found = link_ranks(similarity, links, pool=np.arange(180))
    assert found.in_pool.tolist() == expected.in_pool.tolist()
    assert found.in_all.tolist() == expected.in_all.tolist()
    similarity.target[160] = torch.nan
    assert link_ranks(similarity, links).in_all[7] == expected.in_all[7] + 1


def test_it_is_not_used_on_a_cpu() -> None:
    assert not is_quick(noisy_copies(), 10**9)


INTERPRETED = """
import sys
import torch
from emea.evaluation.tf32_counts import Margins, compare, tf32_counts
from emea.matching.similarity import Similarity
given = torch.load(sys.argv[1], weights_only=False)
similarity, sources = Similarity(*given["similarity"], scale=given["scale"]), given["sources"]
found = {}
found["counts"] = tf32_counts(similarity, sources, sources, given["num_pooled"])
found["words"] = torch.zeros_like(given["words"])
found["compared"] = compare(Margins(*given["margins"]), given["dots"], 40, found["words"], 2)
torch.save(found, sys.argv[1])
"""


def test_the_kernel_in_an_interpreter(tmp_path: Path, interpreted: Callable[..., None]) -> None:
    similarity = noisy_copies(spread=1.0, dim=130)
    sources = torch.arange(NUM_SOURCE)[:37]
    margins = margins_of(similarity, sources)
    dots = (similarity.source[sources] @ similarity.target.T)[:, 40:].contiguous()
    words = torch.zeros(37, 2 + -(-dots.shape[1] // WORD), dtype=torch.int32)
    fields = ("source", "target", "source_offset", "target_offset")
    file = tmp_path / "tensors.pt"
    given = {
        "similarity": [getattr(similarity, name) for name in fields],
        "scale": similarity.scale,
        "sources": sources,
        "num_pooled": NUM_POOLED,
        "margins": tuple(margins),
        "dots": dots,
        "words": words,
    }
    torch.save(given, file)
    interpreted(INTERPRETED, file)
    found = torch.load(file)
    for counts, expected in zip(
        found["counts"], exact_counts(similarity, sources, sources), strict=True
    ):
        assert torch.equal(counts, expected)
    assert torch.equal(found["compared"], compared_by_torch(margins, dots, 40, words, 2))
    assert torch.equal(found["words"], words)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [37, 600])
def test_on_a_gpu(cuda: torch.device, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(similarity: Similarity) -> Similarity:
        names = "source", "target", "source_offset", "target_offset"
        return replace(similarity, **{n: getattr(similarity, n).to(cuda) for n in names})

    for spread in (0.0, 2.0):
        check(moved(noisy_copies(spread=spread, dim=dim)))
    monkeypatch.setattr(module, "MAX_SHARE", 1.0)
    monkeypatch.setattr(module, "MAX_ROWS", 50)
    monkeypatch.setattr(module, "TILE", 64)
    monkeypatch.setitem(module.BLOCK_BYTES, "cuda", 4 * 50 * 2 * 64)
    check(moved(noisy_copies(dim=dim)))
    check(moved(tied_scores()))
    similarity = noisy_copies(spread=1.0, dim=dim)
    sources = torch.arange(NUM_SOURCE)
    margins = margins_of(similarity, sources)
    on_gpu = Margins(margins.scale, margins.rows.to(cuda), margins.columns.to(cuda))
    dots = (similarity.source @ similarity.target.T)[:, 40:].contiguous()
    words = torch.zeros(NUM_SOURCE, 2 + -(-dots.shape[1] // WORD), dtype=torch.int32)
    marked = words.to(cuda)
    found = compare(on_gpu, dots.to(cuda), 40, marked, 2)
    expected = compared_by_torch(margins, dots, 40, words, 2)
    # a GPU may round a product and a sum at once
    assert (found.cpu() - expected).abs().max() <= 1
    set_bits = sum(len(row) for row, _ in undecided(marked))
    assert set_bits == found[1].sum()


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [40, 600, 2048])
def test_tensor_cores_lose_no_more_bits_than_the_bound_allows(cuda: torch.device, dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    for sides in (torch.randn(2, 1000, dim, generator=generator), torch.rand(2, 1000, dim)):
        rows, columns = (tf32_vectors(side.to(cuda)).values for side in sides)
        exact = rows.double() @ columns.double().T
        bound = 1.5 * dim * module.EPS * rows.norm(dim=1)[:, None] * columns.norm(dim=1)
        assert ((module.rough_dots(rows, columns) - exact).abs() < bound).all()
