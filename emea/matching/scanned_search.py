"""Exact search on a GPU that reads each score once.

Products in reduced precision (TF32) select a few more pairs than needed, and these are scored again
in single precision. TF32 rounds the numbers of a unit vector to 11 significant bits, so a cosine
changes by less than 0.0001. ``topk`` would read all scores about six times.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from emea.kernels.column_scan import GROUP, reads_once, scan
from emea.matching.similarity import Similarity
from emea.runtime.block_memory import block_budget

SPARE = 8
"""Additional pairs per entity that are scored again, because TF32 may misplace them."""

LEAST_SHARE = 4
"""Groups per selected group from which on the scan is faster than ``topk``."""

BLOCK_BYTES = {"cpu": 2**26, "cuda": 2**29}
"""Memory of one block of scores, per type of device. Fewer blocks launch fewer kernels."""

ALIGNED = 16
"""Divisor of the number of columns of a product. With unaligned rows, cuBLAS uses slow kernels, and
Triton reads single numbers."""

LEAST_ROWS, MAX_ROWS = 512, 2**14
"""Rows of a block. Products of fewer rows mostly wait for the targets."""

MAX_BYTES = 2**32
"""Memory of a block that has the least number of rows; with more targets, it has fewer rows."""


def usable(similarity: Similarity, k: int) -> bool:
    """Return whether the scan supports this search and is faster than ``topk``."""
    if similarity.scope is not None or not reads_once(similarity.source):
        return False
    return similarity.num_target // GROUP >= LEAST_SHARE * (k + SPARE)


def scanned(
    similarity: Similarity, k: int, sharpness: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the k best targets of every source entity, best first.

    Args:
        similarity: Scores all pairs.
        k: Number of targets per entity, at most a quarter of the groups of targets.
        sharpness: Sharpness of the softmax; ``None`` to skip its denominator.

    Returns:
        ``[num_source, k]`` targets, their scores in single precision, and ``[num_source]``
        logarithms of the softmax's denominator over all targets (zeros if skipped).
    """
    num_source = similarity.num_source
    num_target = similarity.num_target
    scores = similarity.source.new_empty(num_source, k)
    targets = torch.empty(scores.shape, dtype=torch.int64, device=scores.device)
    log_mass = similarity.source.new_zeros(num_source)
    size = block_budget(block_rows(num_target), scores.device)
    target = _padded(similarity.target)
    all_rows = torch.arange(num_source, device=scores.device)
    for start in range(0, num_source, size):
        block = slice(start, start + size)
        dots = rough_dots(similarity.source[block], target)
        maxima, mass = scan(dots, similarity.target_offset, similarity.scale, sharpness)
        columns, rough = _selected(similarity, dots, maxima, k + SPARE)
        pairs = all_rows[block].repeat_interleave(k + SPARE), columns.flatten()
        exact = similarity.of_pairs(*pairs).view(columns.shape)
        best = exact.topk(k, dim=1)
        scores[block], targets[block] = best.values, columns.gather(1, best.indices)
        if sharpness is not None:
            offset = similarity.source_offset[block].unsqueeze(1)
            rough = sharpness * (rough - offset)
            mass -= sharpness * offset.squeeze(1)
            log_mass[block] = _corrected(mass, rough, sharpness * exact)
    return targets, scores, log_mass


def block_rows(num_target: int) -> dict[str, int]:
    """Return the number of rows of a block of scores, per type of device."""
    row = 4 * num_target
    least = min(LEAST_ROWS * row, MAX_BYTES)
    usual = {kind: max(size, least) // row for kind, size in BLOCK_BYTES.items()}
    return {kind: max(1, min(size, MAX_ROWS)) for kind, size in usual.items()}


def _padded(vectors: Tensor) -> Tensor:
    """Return the vectors with zeros appended, so that their number is a multiple of ``ALIGNED``."""
    missing = -len(vectors) % ALIGNED
    return torch.nn.functional.pad(vectors, (0, 0, 0, missing)) if missing else vectors


def rough_dots(source: Tensor, target: Tensor) -> Tensor:
    """Return the dot products of all pairs, on CUDA in reduced precision."""
    with reduced_precision():
        return source @ target.T


@contextmanager
def reduced_precision() -> Iterator[None]:
    """Let CUDA multiply matrices of single precision with TF32."""
    try:
        before = torch.backends.cuda.matmul.allow_tf32
    except (
        RuntimeError
    ):  # the program uses torch's other interface, which must not be mixed
        yield
        return
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _selected(
    similarity: Similarity, dots: Tensor, maxima: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Return the columns of the k best scores of each row, and the scores without source offset.

    They are in the k best groups.
    """
    groups = maxima.topk(k, dim=1).indices
    members = torch.arange(GROUP, device=groups.device)
    columns = (groups.unsqueeze(2) * GROUP + members).flatten(1)
    is_target = columns < similarity.num_target
    columns = columns.clamp_(max=similarity.num_target - 1)
    scores = (
        similarity.scale * dots.gather(1, columns) - similarity.target_offset[columns]
    )
    best = scores.masked_fill_(~is_target, -torch.inf).topk(k, dim=1)
    return columns.gather(1, best.indices), best.values


def _corrected(log_mass: Tensor, rough: Tensor, exact: Tensor) -> Tensor:
    """Return a softmax's denominator with the rough logits of some pairs replaced by exact ones.

    Args:
        log_mass: ``[n]`` logarithm of the denominator over all pairs.
        rough: ``[n, m]`` logits of some pairs in reduced precision.
        exact: ``[n, m]`` their exact logits.
    """
    peak = torch.maximum(rough.amax(1), exact.amax(1)).unsqueeze(1)
    rest = (log_mass - peak.squeeze(1)).exp() - (rough - peak).exp().sum(1)
    return peak.squeeze(1) + (rest.clamp(min=0) + (exact - peak).exp().sum(1)).log()
