"""TF-IDF weights of texts, with the same bits as scikit-learn's ``TfidfVectorizer``.

Importing scikit-learn costs nearly as much time and memory as importing torch, because it imports
pandas and scipy.stats. The weights take a page of code.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp

Terms = Callable[[str], Iterator[str]]
"""Splits a text into its terms; a term that occurs twice is returned twice."""

LENGTHS = (2, 3)
"""Lengths of the n-grams of characters."""


def word_terms(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case."""
    return iter(re.findall(r"\S+", text.lower()))


def character_terms(text: str) -> Iterator[str]:
    """Yield the n-grams of each word of a text in lower case, with a space at both ends.

    An n-gram never contains parts of two words.
    """
    for word in text.lower().split():
        padded = f" {word} "
        for length in LENGTHS:
            for start in range(max(1, len(padded) - length + 1)):
                yield padded[start : start + length]


def term_weights(
    source: Sequence[str], target: Sequence[str], terms: Terms
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the TF-IDF weights of two lists of texts, each row with length 1.

    The weight of a term in a text is ``(1 + log tf) (1 + log((1 + n) / (1 + df)))``, where ``tf``
    counts the term in the text and ``df`` the texts of both lists that have it.

    Args:
        source: The first texts.
        target: The second texts.
        terms: Splits a text.

    Returns:
        ``[num_texts, num_terms]`` for both lists, with the terms in alphabetic order.
    """
    counts = _counted([*source, *target], terms)
    num_texts, num_terms = counts.shape
    frequency = np.bincount(counts.indices, minlength=num_terms).astype(np.float32)
    frequency += 1
    inverse = np.full_like(frequency, num_texts + 1)
    inverse /= frequency
    np.log(inverse, out=inverse)
    inverse += 1

    np.log(counts.data, out=counts.data)
    counts.data += 1
    counts.data *= inverse[counts.indices]
    _scale_to_unit_length(counts)
    return counts[: len(source)], counts[len(source) :]


def _counted(texts: Sequence[str], terms: Terms) -> sp.csr_matrix:
    """Return how often each term occurs in each text, as single-precision numbers."""
    numbers: dict[str, int] = {}
    columns: list[int] = []
    values: list[int] = []
    ends = [0]
    for text in texts:
        for term, count in Counter(terms(text)).items():
            columns.append(numbers.setdefault(term, len(numbers)))
            values.append(count)
        ends.append(len(columns))
    # terms are numbered in alphabetic order, which decides the order of later sums
    place = np.zeros(len(numbers), dtype=np.int32)
    for rank, term in enumerate(sorted(numbers)):
        place[numbers[term]] = rank
    found = sp.csr_matrix(
        (
            np.array(values, dtype=np.float32),
            place[np.array(columns, dtype=np.int64)],
            np.array(ends, dtype=np.int64),
        ),
        shape=(len(texts), len(numbers)),
    )
    found.sort_indices()
    return found


def _scale_to_unit_length(matrix: sp.csr_matrix) -> None:
    """Divide each row by its length, in place; rows of zeros do not change."""
    num_rows = matrix.shape[0]
    rows = np.repeat(np.arange(num_rows), np.diff(matrix.indptr))
    # bincount adds in the order of the entries, in double precision
    squares = np.bincount(rows, weights=matrix.data * matrix.data, minlength=num_rows)
    lengths = np.sqrt(squares)
    lengths[lengths == 0] = 1
    matrix.data[:] = matrix.data / lengths[rows]
