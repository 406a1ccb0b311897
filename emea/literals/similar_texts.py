"""Finds similar texts in two lists by the cosine similarity of their character n-grams."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from emea.data.arrays import FloatArray, IntArray
from emea.data.settings import Cardinality
from emea.literals.term_weights import Terms, character_terms, term_weights, word_terms

CHARACTERS = character_terms
WORDS = word_terms
"""What texts are compared by: functions that split a text into terms."""

MOST_PRODUCTS = 2**26
"""Products of n-gram weights that are computed at once, which limits the memory."""

MOST_TEXTS = 2_000
"""N-grams that occur in more texts than this are left out of the search."""


class SimilarPairs(NamedTuple):
    """Pairs of similar items of two lists.

    ``margins`` is the cosine of a pair minus that of the best other pair of the two items. It is
    positive only for the best pair of each item that has at most one counterpart.
    """

    rows: IntArray
    columns: IntArray
    cosines: FloatArray
    margins: FloatArray


def similar_texts(
    source: Sequence[str],
    target: Sequence[str],
    *,
    least: float,
    num_similar: int,
    features: Terms = CHARACTERS,
    cardinality: Cardinality = Cardinality.ONE_TO_ONE,
) -> SimilarPairs:
    """Return pairs of similar texts, with the best few pairs of each text.

    Texts are vectors of TF-IDF weights of their character n-grams. The product of sparse matrices
    works as an inverted index: only texts that share an n-gram are compared. N-grams of very many
    texts are left out of the search, because they hardly change the similarity.

    Args:
        source: Normal forms of the source values.
        target: Normal forms of the target values.
        least: The minimum cosine similarity.
        num_similar: The number of pairs to keep for each text.
        features: What texts are compared by: ``CHARACTERS`` (n-grams) or ``WORDS``.
        cardinality: How many counterparts a text may have, see ``best_pairs``.
    """
    nothing = np.zeros(0, dtype=np.int64)
    if not source or not target:
        return SimilarPairs(nothing, nothing, np.zeros(0), np.zeros(0))
    first, second = term_weights(source, target, features)
    keep = sp.diags((~frequent_features(first, second)).astype(np.float32))
    index = (second @ keep).T.tocsr()
    index.eliminate_zeros()
    wanted = (first @ keep).tocsr()
    wanted.eliminate_zeros()
    found = [
        _best(block @ index, start, least, max(2, num_similar))
        for start, block in product_blocks(wanted, np.diff(index.indptr))
    ]
    rows, columns, cosines = (
        np.concatenate(parts) for parts in zip(*found, strict=True)
    )
    return best_pairs(rows, columns, cosines, num_similar, cardinality)


def frequent_features(first: sp.csr_matrix, second: sp.csr_matrix) -> np.ndarray:
    """Return whether each feature occurs in too many texts of either list to search by it."""
    counts = np.maximum(np.diff(first.tocsc().indptr), np.diff(second.tocsc().indptr))
    frequent: np.ndarray = counts > MOST_TEXTS
    return frequent


def best_pairs(
    rows: IntArray,
    columns: IntArray,
    cosines: FloatArray,
    num_similar: int,
    cardinality: Cardinality = Cardinality.ONE_TO_ONE,
) -> SimilarPairs:
    """Return the best few pairs of each row that are among the best few of their column.

    If a row may have several counterparts, then the margin of a pair does not depend on the other
    pairs of its row.
    """
    cosines = np.minimum(cosines, 1.0).astype(np.float64)
    unique = [(rows, columns)[side] for side in cardinality.unique_sides.values()]
    margins = np.min(
        [cosines, *(_margins(groups, cosines) for groups in unique)], axis=0
    )
    kept = best_few(columns, cosines, num_similar) & best_few(
        rows, cosines, num_similar
    )
    return SimilarPairs(rows[kept], columns[kept], cosines[kept], margins[kept])


def _margins(groups: IntArray, values: FloatArray) -> FloatArray:
    """Return each value minus the largest other value of its group, which counts at least 0."""
    size = int(groups.max(initial=-1)) + 1
    first = np.zeros(size)
    second = np.zeros(size)
    np.maximum.at(first, groups, values)
    is_first = np.zeros(len(groups), dtype=bool)
    is_first[
        np.unique(np.where(values == first[groups], groups, size), return_index=True)[1]
    ] = True
    is_first &= values == first[groups]
    np.maximum.at(second, groups[~is_first], values[~is_first])
    return values - np.where(is_first, second[groups], first[groups])


def product_blocks(
    matrix: sp.csr_matrix, sizes: IntArray
) -> list[tuple[int, sp.csr_matrix]]:
    """Return blocks of rows, each with a bounded number of products."""
    products = np.add.reduceat(
        np.append(sizes[matrix.indices], 0), np.minimum(matrix.indptr[:-1], matrix.nnz)
    )
    products[np.diff(matrix.indptr) == 0] = 0
    number = np.cumsum(products) // MOST_PRODUCTS
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(starts[1:], matrix.shape[0])
    ranges = zip(starts.tolist(), ends.tolist(), strict=True)
    return [(start, matrix[start:end]) for start, end in ranges]


def _best(
    cosines: sp.csr_matrix, start: int, least: float, num_similar: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the largest entries of each row that are at least ``least``."""
    entries = cosines.tocoo()
    kept = entries.data >= least
    rows, columns = (ids[kept].astype(np.int64) for ids in (entries.row, entries.col))
    values = entries.data[kept]
    best = best_few(rows, values, num_similar)
    return rows[best] + start, columns[best], values[best]


def best_few(groups: IntArray, values: FloatArray, number: int) -> np.ndarray:
    """Return whether an entry is among the largest of its group. The first of equal ones wins."""
    order = np.lexsort((-values, groups))
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered)
    kept = np.zeros(len(groups), dtype=bool)
    kept[order[np.arange(len(groups)) - starts < number]] = True
    return kept
