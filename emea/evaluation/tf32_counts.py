"""Counts of the targets that score better than a link's, by TF32 products and their bounds.

A GPU computes products in TF32 several times faster than in single precision. The errors of the
rounded vectors are known, so a product decides for most pairs which score is better. One kernel
reads each product once. The other pairs are scored exactly, like those of the links, so that ties
are exact.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from emea.evaluation.all_counts import all_counts
from emea.matching.compiled import supports_triton
from emea.matching.pair_table import group_sizes
from emea.matching.scanned_search import rough_dots
from emea.matching.similarity import Similarity
from emea.matching.tf32_vectors import TF32Vectors, tf32_vectors
from emea.runtime.block_memory import block_budget

MIN_PAIRS = 10**8
"""Pairs of links and targets from which bounds save time."""

BLOCK_BYTES = {"cpu": 2**26, "cuda": 2**29}
"""Memory of one block of products, and of the marks of undecided pairs, per type of device."""

MAX_ROWS = 2**14
"""Links that are compared at a time."""

ROWS, TILE, NUM_WARPS = 8, 512, 4
"""Rows and columns that one program of the kernel compares, and its groups of 32 threads."""

WORD = 32
"""Undecided pairs that one number marks."""

WORDS_PER_STEP = 2**18
"""Marks that are read at a time."""

MAX_SHARE = 1 / 64
"""Share of undecided pairs up to which their scores take less time than those of all pairs."""

EPS, TINY = torch.finfo(torch.float32).eps, torch.finfo(torch.float32).tiny

ROUNDING = 4 * EPS
"""Rounding error of a score relative to its offsets."""


def is_quick(similarity: Similarity, num_links: int) -> bool:
    """Return whether bounds are quicker than scores of all pairs."""
    return supports_triton(similarity.source) and num_links * similarity.num_target >= MIN_PAIRS


class Margins(NamedTuple):
    """Holds how much a product of rounded vectors must differ from a reference to decide.

    A score is ``scale * product - columns[0]``. It is certainly better than ``rows[0]``, or
    certainly worse, if the difference exceeds ``rows[1] * columns[1] + rows[2] * columns[2] +
    rows[3] + ROUNDING * |columns[0]|``. This follows from the inequality of Cauchy and Schwarz:
    ``|<a, b> - <a', b'>| <= |a - a'| |b| + |a'| |b - b'|``.

    Args:
        scale: Factor of the products.
        rows: ``[4, num_rows]`` numbers of the rows.
        columns: ``[3, num_columns]`` offsets, lengths and errors of the columns.
    """

    scale: float
    rows: Tensor
    columns: Tensor


class Links(NamedTuple):
    """Holds some links to rank.

    Args:
        sources: ``[num_links]`` source ids.
        right: ``[num_links]`` target ids.
        reference: ``[num_links]`` their scores.
    """

    sources: Tensor
    right: Tensor
    reference: Tensor


def row_margins(similarity: Similarity, links: Links, rows: TF32Vectors) -> Tensor:
    """Return the numbers of the rows of ``Margins``."""
    scale, dim = abs(similarity.scale), similarity.source.shape[1]
    # Tensor cores may drop bits. They add four or more products and the sum so far after aligning
    # them to the largest, so that each term and the result lose less than one last digit: at most
    # 1.5 * dim in total. The exact score is a rounded sum, too: 0.5 * dim.
    of_sums = (2 * dim + 8) * EPS
    offset = similarity.source_offset[links.sources]
    middle = links.reference + offset
    length = rows.lengths + rows.errors
    # products of tiny numbers may vanish
    vanished = 8 * (scale * dim + 8) * TINY
    return torch.stack(
        [
            middle,
            scale * (rows.errors + of_sums * length),
            scale * length,
            ROUNDING * (offset.abs() + middle.abs()) + vanished,
        ]
    )


def tf32_counts(
    similarity: Similarity, sources: Tensor, right: Tensor, num_pooled: int
) -> tuple[Tensor, Tensor] | None:
    """Return the counts of ``all_counts``, or ``None`` if a number could be infinite or NaN.

    This is the case if a vector or an offset is not finite, or if a product could overflow. The
    arguments are those of ``all_counts``.
    """
    reference = similarity.of_pairs(sources, right)
    if not _is_finite(similarity, sources, reference):
        return None
    vectors = tf32_vectors(similarity.target)
    of_columns = torch.stack([similarity.target_offset, vectors.lengths, vectors.errors])
    better, equal = torch.zeros(2, 2, len(sources), dtype=torch.int64, device=sources.device)
    budget = block_budget(BLOCK_BYTES, sources.device)
    # one bit marks a pair
    size = max(1, min(MAX_ROWS, 8 * budget // similarity.num_target))
    for start in range(0, len(sources), size):
        part = slice(start, start + size)
        links = Links(sources[part], right[part], reference[part])
        counts = _of_links(similarity, links, vectors, of_columns, num_pooled)
        if counts is None:
            counts = all_counts(similarity, links.sources, links.right, num_pooled)
        better[:, part], equal[:, part] = counts
    return better, equal


def _is_finite(similarity: Similarity, sources: Tensor, reference: Tensor) -> bool:
    sides = (similarity.source, sources), (similarity.target, slice(None))
    lengths = [torch.linalg.vector_norm(side, dim=1)[some].max() for side, some in sides]
    offsets = similarity.source_offset[sources], similarity.target_offset
    largest = [abs(similarity.scale) * lengths[0] * lengths[1]]
    largest += [values.abs().max() for values in (*offsets, reference)]
    # the factor covers the sum of all of them, and the rounding of vectors
    return bool((8 * torch.stack([*largest, *lengths])).isfinite().all())


def _of_links(
    similarity: Similarity,
    links: Links,
    vectors: TF32Vectors,
    of_columns: Tensor,
    num_pooled: int,
) -> tuple[Tensor, Tensor] | None:
    """Return the counts of some links; ``None`` if too many pairs are undecided."""
    rows = tf32_vectors(similarity.source.index_select(0, links.sources))
    margins = Margins(similarity.scale, row_margins(similarity, links, rows), of_columns)
    num_links = len(links.sources)
    both = (0, num_pooled), (num_pooled, similarity.num_target)
    parts = [compared(margins, rows.values, vectors.values, columns) for columns in both]
    better, open_counts = torch.stack([counts for counts, _ in parts], dim=1)
    if int(open_counts.sum()) > MAX_SHARE * num_links * similarity.num_target:
        return None
    equal = torch.zeros_like(better)
    for place, (columns, (_, words)) in enumerate(zip(both, parts, strict=True)):
        if columns[0] == columns[1]:
            continue
        for row, column in undecided(words):
            column += columns[0]
            scores = similarity.of_pairs(links.sources[row], column)
            right = links.reference[row]
            better[place] += group_sizes(row, num_links, scores > right)
            equal[place] += group_sizes(row, num_links, scores == right)
    return better.cumsum(0), equal.cumsum(0)


def compared(
    margins: Margins, rows: Tensor, vectors: Tensor, columns: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Compare the products of all rows and some columns with the references of the rows.

    Args:
        margins: The references, and how much a product must differ from them.
        rows: ``[num_rows, dim]`` rounded vectors of the rows.
        vectors: ``[num_columns, dim]`` rounded vectors of all columns.
        columns: The first column, and the end of the columns.

    Returns:
        ``[2, num_rows]`` numbers of better and of undecided pairs, and ``[num_rows, num_words]``
        words with a bit for each undecided pair.
    """
    first, last = columns
    counts = torch.zeros(2, len(rows), dtype=torch.int64, device=rows.device)
    num_words = -(-(last - first) // WORD)
    words = torch.zeros(len(rows), num_words, dtype=torch.int32, device=rows.device)
    budget = block_budget(BLOCK_BYTES, rows.device)
    width = max(1, budget // (rows.element_size() * len(rows) * TILE)) * TILE
    for start in range(first, last, width):
        dots = rough_dots(rows, vectors[start : min(start + width, last)])
        counts += compare(margins, dots, start, words, (start - first) // WORD)
    return counts, words


def compare(margins: Margins, dots: Tensor, first: int, words: Tensor, first_word: int) -> Tensor:
    """Compare a block of products.

    Args:
        margins: The references, and how much a product must differ from them.
        dots: ``[num_rows, n]`` products.
        first: First column of the block.
        words: ``[num_rows, num_words]`` zeros, in which the bits of undecided pairs are set.
        first_word: First word of the block.

    Returns:
        ``[2, num_rows]`` numbers of better and of undecided pairs.
    """
    num_rows, num_columns = dots.shape
    num_tiles = -(-num_columns // TILE)
    columns = margins.columns[:, first : first + num_columns].contiguous()
    counts = torch.empty(2, num_rows, num_tiles, dtype=torch.int32, device=dots.device)
    _kernel()[(num_tiles, -(-num_rows // ROWS))](
        *(dots, margins.rows, columns, counts, words, num_rows, num_columns, num_tiles),
        *(first_word, words.shape[1], margins.scale, ROUNDING),
        ROWS=ROWS,
        TILE=TILE,
        WORD=WORD,
        num_warps=NUM_WARPS,
    )
    return counts.sum(2)


def undecided(words: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield row and column of each bit that is set, in steps of bounded memory."""
    num_words, flat = words.shape[1], words.view(-1)
    bits = torch.arange(WORD, device=words.device)
    for places in torch.split(flat.nonzero().squeeze(1), WORDS_PER_STEP):
        is_set = (flat[places].unsqueeze(1) >> bits) & 1
        word, bit = is_set.nonzero(as_tuple=True)
        place = places[word]
        yield place // num_words, place % num_words * WORD + bit


@functools.cache
def _kernel() -> Any:
    # imported on first use, because torch does not always come with Triton
    from emea.evaluation.triton_compare import compare_kernel

    return compare_kernel
