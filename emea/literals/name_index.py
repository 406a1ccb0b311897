"""Finds the names of a graph that are similar to a text, one text at a time and fast."""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.literals.readings import reader
from emea.literals.similar_texts import CHARACTERS, frequent_features
from emea.literals.term_weights import term_weights
from emea.literals.value_nodes import normalised_value

LONGEST = 200
"""Characters of a text that are compared: the time of a search grows with them."""

FURTHER = 10
"""Names that are compared with all n-grams, for each one that is asked for."""


class Found(NamedTuple):
    """An entity with a similar name.

    Args:
        entity: The entity.
        similarity: The cosine similarity of its most similar name, from 0 to 1.
        is_equal: Whether the normal forms are equal.
    """

    entity: int
    similarity: float
    is_equal: bool


class NameIndex:
    """An inverted index of the n-grams of names, with the weights of `similar_texts`.

    Names are compared in normal form and in Latin letters. N-grams of very many names are left out
    of the search, and count when the names found are compared.

    Args:
        entities: The entity of each name.
        names: The names. An entity may have several.
    """

    def __init__(self, entities: Sequence[int], names: Sequence[str]) -> None:
        forms = [_normal_form(name) for name in names]
        self.entities: IntArray = np.array(entities, dtype=np.int64)
        self._equal: dict[str, list[int]] = defaultdict(list)
        for entity, form in zip(entities, forms, strict=True):
            if form and entity not in self._equal[form]:
                self._equal[form].append(entity)
        self._sorted = sorted(form for form in self._equal if form)
        self._read = reader(forms)
        texts = [self._read(form) for form in forms]
        nothing, self._weights = term_weights([], texts, CHARACTERS)
        # columns are in alphabetic order
        distinct = sorted({term for text in texts for term in CHARACTERS(text)})
        self._columns = {term: column for column, term in enumerate(distinct)}
        counts = np.bincount(self._weights.indices, minlength=len(distinct))
        self._inverse: FloatArray = 1 + np.log((1 + len(texts)) / (1 + counts))
        self._unknown = 1 + math.log(1 + len(texts))
        self._is_frequent = frequent_features(nothing, self._weights)
        self._index = self._weights.tocsc()

    def search(
        self, text: str, number: int, among: np.ndarray | None = None
    ) -> list[Found]:
        """Return the entities with the most similar names, the most similar first.

        Args:
            text: The text.
            number: Maximum number of entities.
            among: Whether each entity may be found; ``None`` means all.
        """
        form = _normal_form(text)
        equal = [
            entity
            for entity in self._equal.get(form, [])
            if among is None or among[entity]
        ]
        best = dict.fromkeys(equal, 1.0)
        rows, similarities = self._similar(self._read(form), FURTHER * number, among)
        for entity, similarity in zip(
            self.entities[rows].tolist(), similarities.tolist(), strict=True
        ):
            best[entity] = max(similarity, best.get(entity, 0.0))
        ranked = sorted(best, key=lambda one: (-best[one], one not in equal, one))
        return [Found(one, best[one], one in equal) for one in ranked[:number]]

    def starting_with(self, prefix: str, number: int) -> list[int]:
        """Return the entities with a name that starts with a text, in alphabetic order."""
        form = _normal_form(prefix)
        found: dict[int, None] = {}
        for place in range(bisect_left(self._sorted, form), len(self._sorted)):
            name = self._sorted[place]
            if not name.startswith(form) or len(found) >= number:
                break
            found.update(dict.fromkeys(self._equal[name]))
        return list(found)[:number]

    def _similar(
        self, text: str, number: int, among: np.ndarray | None
    ) -> tuple[IntArray, FloatArray]:
        """Return the rows of the most similar names, and their cosine similarities."""
        columns, weights = self._query(text)
        rare = ~self._is_frequent[columns]
        searched = rare if rare.any() else np.ones_like(rare)
        # the names that share an n-gram, by the part of the cosine that these n-grams give
        parts = np.zeros(len(self.entities))
        for column, weight in zip(columns[searched], weights[searched], strict=True):
            start, end = self._index.indptr[column : column + 2]
            parts[self._index.indices[start:end]] += (
                weight * self._index.data[start:end]
            )
        if among is not None:
            parts[~among[self.entities]] = 0
        number = min(number, int((parts > 0).sum()))
        rows = np.argpartition(-parts, number - 1)[:number] if number else columns[:0]
        # the whole cosine of these
        query = np.zeros(len(self._columns))
        query[columns] = weights
        cosines = np.minimum(self._weights[rows] @ query, 1.0)
        return rows, cosines

    def _query(self, text: str) -> tuple[IntArray, FloatArray]:
        """Return the columns and weights of the n-grams of a text that some name has.

        Other n-grams make the text longer, and therefore less similar to all names.
        """
        columns = []
        weights = []
        squares = 0.0
        for term, count in Counter(CHARACTERS(text)).items():
            column = self._columns.get(term)
            inverse = self._unknown if column is None else self._inverse[column]
            weight = (1 + math.log(count)) * float(inverse)
            squares += weight * weight
            if column is not None:
                columns.append(column)
                weights.append(weight)
        length = math.sqrt(squares) or 1.0
        return np.array(columns, dtype=np.int64), np.array(weights) / length


def _normal_form(text: str) -> str:
    return normalised_value(text[:LONGEST])
