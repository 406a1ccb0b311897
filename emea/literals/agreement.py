"""How far the attributes of candidate pairs agree, as a few ordered levels for each attribute."""

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from emea.data.arrays import FloatArray, IntArray
from emea.data.names import local_name
from emea.literals.records import Records, Values, WordVectors, row_cosines
from emea.literals.similar_texts import CHARACTERS
from emea.literals.term_weights import term_weights

TEXT_STEPS, WORD_STEPS = 7, 19
"""Steps of the cosine of two texts, to which equality is added, and of all words of two records."""

TEXTS_AGREE = 4
"""Levels, from the largest, of two texts that mean the same: equal, or a cosine of at least 4/7."""

SAME, NEAR, CLOSE, APART = 1e-9, 0.05, 0.25, 1.0
"""Differences of numbers, in units of the spread of their attribute, that end their levels."""

NEIGHBOUR_STEPS = (-4, -3, -2, -1, 0, 1, 2, 4, 6, 9, 13, 18)
"""Log odds of the evidence of neighbours that end its levels."""

MOST_VALUES = 6
"""Values of an attribute of one entity that are compared."""

MOST_CHARACTERS = 120
"""Characters of a text that are compared; all words of a record count in a column of their own."""

NUMERIC = 0.9
"""Share of the values of an attribute that are numbers or dates if it is compared as such."""

LEAST_LIFT = 0.03
"""Two attributes correspond if the mean similarity of their values is by so much larger in the best
pairs than in their runners-up."""

MOST_SAMPLED, FEWEST_COMPARED, MOST_COLUMNS = 1500, 10, 30
"""Best pairs in which attributes are compared, pairs with both, and attributes that are kept."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DATE = re.compile(r"(-?\d{4,})-(\d\d)-(\d\d)")


class Column(NamedTuple):
    """The agreement of each candidate pair in one kind of evidence.

    Args:
        name: What is compared.
        levels: ``[num_pairs]`` from 1 (least) to ``num_levels``; 0 if a value is missing.
        num_levels: The number of levels.
        is_attribute: Whether this is evidence of its own, not another view of all values.
        num_agreeing: The number of levels, from the largest, that right pairs usually have; 0 if
            it is not known in advance.
    """

    name: str
    levels: IntArray
    num_levels: int
    is_attribute: bool
    num_agreeing: int = 0


class Attributes(NamedTuple):
    """Two attributes that may correspond, and whether their values are numbers or dates."""

    source: int
    target: int
    is_numeric: bool


def as_number(text: str) -> float:
    """Return a number, or a date as a year with a fraction; NaN for other texts."""
    if (date := _DATE.fullmatch(text)) is not None:
        year, month, day = map(int, date.groups())
        return year + (month - 1) / 12 + (day - 1) / 372
    return float(text) if _NUMBER.fullmatch(text) else np.nan


class _Side:
    """The records of one graph, prepared for comparisons."""

    def __init__(
        self, records: Records, vectors: sp.csr_matrix, used: IntArray
    ) -> None:
        self.records = records
        self.vectors = vectors
        self.row_of = np.zeros(len(records.texts), dtype=np.int64)
        self.row_of[used] = np.arange(len(used))
        attributes = np.unique(records.attributes).tolist()
        self.columns = {one: records.column(one, MOST_VALUES) for one in attributes}
        self.is_numeric = {
            one: self._numeric_share(one) >= NUMERIC for one in attributes
        }

    @cached_property
    def numbers(self) -> FloatArray:
        """The number of each value, NaN if it is none."""
        return np.array([as_number(text) for text in self.records.texts], dtype=float)

    def _numeric_share(self, attribute: int) -> float:
        values = np.unique(self.columns[attribute].values)
        return float(np.isfinite(self.numbers[values]).mean()) if len(values) else 0.0


class Agreement:
    """Compares the attributes of candidate pairs.

    Args:
        source: The records of the source graph.
        target: The records of the target graph.
    """

    def __init__(self, source: Records, target: Records) -> None:
        used = [np.unique(records.values) for records in (source, target)]
        texts = [
            [records.texts[value][:MOST_CHARACTERS] for value in values]
            for records, values in zip((source, target), used, strict=True)
        ]
        first, second = term_weights(texts[0], texts[1], CHARACTERS)
        self.source = _Side(source, first, used[0])
        self.target = _Side(target, second, used[1])

    def columns(
        self, pairs: IntArray, best: IntArray, runners_up: IntArray
    ) -> Iterator[Column]:
        """Yield the agreement of the pairs in all attributes that correspond.

        Args:
            pairs: ``[num_pairs, 2]`` candidate pairs.
            best: ``[n]`` places of pairs that are probably right.
            runners_up: ``[n]`` the second best pair of the same source entities.
        """
        for attributes in self._corresponding(pairs, best, runners_up):
            yield self._column(attributes, pairs)

    def alike(self, pairs: IntArray, names: Collection[str]) -> Iterator[Column]:
        """Yield the agreement of the pairs in attributes with equal names.

        Args:
            pairs: ``[num_pairs, 2]`` candidate pairs.
            names: Names of columns that are left out, because they are known to correspond.
        """
        for attributes in self.comparable():
            source = self.source.records.names[attributes.source]
            target = self.target.records.names[attributes.target]
            is_alike = local_name(source).lower() == local_name(target).lower()
            if is_alike and self._name(attributes) not in names:
                num_agreeing = 1 if attributes.is_numeric else TEXTS_AGREE
                column = self._column(attributes, pairs)
                yield column._replace(num_agreeing=num_agreeing)

    def _column(self, attributes: Attributes, pairs: IntArray) -> Column:
        """Return the agreement of the pairs in two attributes."""
        found = self._similarity(attributes, pairs)
        compared = np.nan_to_num(found, neginf=-np.inf)
        if attributes.is_numeric:
            levels = 5 - np.digitize(-compared, [SAME, NEAR, CLOSE, APART], right=True)
            num_levels = 5
        else:
            steps = np.arange(1, TEXT_STEPS) / TEXT_STEPS
            levels = 1 + np.digitize(compared, [*steps, 1.5])
            num_levels = TEXT_STEPS + 1
        levels = np.where(np.isnan(found), 0, levels)
        return Column(self._name(attributes), levels, num_levels, True)

    def _name(self, attributes: Attributes) -> str:
        source = self.source.records.names[attributes.source]
        target = self.target.records.names[attributes.target]
        return source if source == target else f"{source} = {target}"

    def _corresponding(
        self, pairs: IntArray, best: IntArray, runners_up: IntArray
    ) -> list[Attributes]:
        """Return attributes that agree more in the best pairs than in their runners-up.

        Each attribute is compared with its best counterpart on the other side.
        """
        if len(best) > MOST_SAMPLED:
            sample = np.random.default_rng(0).permutation(len(best))[:MOST_SAMPLED]
            best = best[sample]
            runners_up = runners_up[sample]
        lifts = []
        for attributes in self.comparable():
            lift = self._lift(attributes, pairs[best], pairs[runners_up])
            if lift is not None:
                lifts.append((lift, attributes))
        chosen: list[Attributes] = []
        seen: tuple[set[int], set[int]] = (set(), set())
        for _, attributes in sorted(lifts, reverse=True):
            if attributes.source in seen[0] and attributes.target in seen[1]:
                continue
            seen[0].add(attributes.source)
            seen[1].add(attributes.target)
            chosen.append(attributes)
        return chosen[:MOST_COLUMNS]

    def comparable(self) -> Iterator[Attributes]:
        """Yield the pairs of attributes that may correspond."""
        for first, is_numeric in self.source.is_numeric.items():
            for second, other in self.target.is_numeric.items():
                if is_numeric == other:
                    yield Attributes(first, second, is_numeric)

    def _lift(
        self, attributes: Attributes, best: IntArray, runners_up: IntArray
    ) -> float | None:
        """Return by how much two attributes agree more in the best pairs, times their number.

        The result is ``None`` if few pairs have both, or if they do not agree more.
        """
        likeness = []
        for pairs in (best, runners_up):
            found = self._similarity(attributes, pairs)
            found = found[~np.isnan(found)]
            if attributes.is_numeric:
                found = np.maximum(1 + found, 0)
            likeness.append(np.minimum(found, 1))
        right, wrong = likeness
        if len(right) < FEWEST_COMPARED:
            return None
        lift = float(right.mean() - (wrong.mean() if len(wrong) else 0.0))
        return lift * len(right) if lift > LEAST_LIFT else None

    def _similarity(self, attributes: Attributes, pairs: IntArray) -> FloatArray:
        """Return the largest similarity of the values of two attributes; NaN if one is missing.

        Texts have their cosine, and 2 if they are equal. Numbers have their negative difference,
        in units of the spread of both attributes.
        """
        first = self.source.columns[attributes.source]
        second = self.target.columns[attributes.target]
        rows, values, others = _value_pairs(first, second, pairs)
        if attributes.is_numeric:
            distance = np.abs(self.source.numbers[values] - self.target.numbers[others])
            found = -np.nan_to_num(distance, nan=np.inf) / self._spread(first, second)
        else:
            found = self._text_similarity(values, others)
        best = np.full(len(pairs), -np.inf)
        np.maximum.at(best, rows, found)
        best[np.bincount(rows, minlength=len(pairs)) == 0] = np.nan
        return best

    def _text_similarity(self, values: IntArray, others: IntArray) -> FloatArray:
        """Return the cosine of the texts of two values, and 2 if they are equal."""
        keys = values * len(self.target.records.texts) + others
        distinct, place = np.unique(keys, return_inverse=True)
        first, second = np.divmod(distinct, len(self.target.records.texts))
        rows = self.source.row_of[first]
        columns = self.target.row_of[second]
        found = row_cosines(self.source.vectors, self.target.vectors, rows, columns)
        texts = self.source.records.texts
        other_texts = self.target.records.texts
        are_equal = [
            texts[one] == other_texts[other]
            for one, other in zip(first.tolist(), second.tolist(), strict=True)
        ]
        found[np.array(are_equal, dtype=bool)] = 2.0
        return np.asarray(found[place.reshape(-1)])

    def _spread(self, first: Values, second: Values) -> float:
        """Return the interquartile range of the numbers of two attributes, which is positive."""
        both = np.concatenate(
            [self.source.numbers[first.values], self.target.numbers[second.values]]
        )
        low, high = np.nanquantile(both, [0.25, 0.75])
        return float(max(high - low, 1e-3 * abs(high), 1e-6))


def _value_pairs(
    first: Values, second: Values, pairs: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return all pairs of values of each pair of entities: its row, and both values."""
    sizes = first.sizes[pairs[:, 0]]
    other_sizes = second.sizes[pairs[:, 1]]
    counts = sizes * other_sizes
    rows = np.repeat(np.arange(len(pairs)), counts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    own, other = np.divmod(place, np.maximum(other_sizes[rows], 1))
    values = first.values[first.starts[pairs[rows, 0]] + own]
    others = second.values[second.starts[pairs[rows, 1]] + other]
    return rows, values, others


def word_column(vectors: WordVectors, pairs: IntArray, cosines: FloatArray) -> Column:
    """Return the cosine of all words of both records as levels."""
    first, second = (np.diff(one.indptr) > 0 for one in vectors)
    have_words = first[pairs[:, 0]] & second[pairs[:, 1]]
    levels = 1 + np.minimum((cosines * WORD_STEPS).astype(np.int64), WORD_STEPS - 1)
    return Column("all words", np.where(have_words, levels, 0), WORD_STEPS, False)


def code_column(first: list[str], second: list[str], pairs: IntArray) -> Column:
    """Return whether words with a digit, such as model numbers, differ, or are shared.

    Level 1 means that none is shared, 2 that both records have others, too, and 3 that one record
    has all of those of the other.
    """
    codes = [
        [
            {word for word in text.split() if any(map(str.isdigit, word))}
            for text in texts
        ]
        for texts in (first, second)
    ]
    levels = np.zeros(len(pairs), dtype=np.int64)
    for row, (source, target) in enumerate(pairs.tolist()):
        own = codes[0][source]
        other = codes[1][target]
        if own and other:
            num_shared = len(own & other)
            has_all = num_shared == min(len(own), len(other))
            levels[row] = 1 + (num_shared > 0) + (num_shared > 0 and has_all)
    return Column("words with digits", levels, 3, False)


def neighbour_column(log_odds: FloatArray, are_compared: np.ndarray) -> Column:
    """Return the evidence of matched neighbours as levels.

    Args:
        log_odds: ``[num_pairs]`` log odds of the evidence, minus infinity without any.
        are_compared: ``[num_pairs]`` whether both entities have neighbours with a match.
    """
    found = np.digitize(log_odds, NEIGHBOUR_STEPS) + 2
    levels = np.where(np.isfinite(log_odds), found, are_compared.astype(np.int64))
    return Column("neighbours", levels, len(NEIGHBOUR_STEPS) + 2, True)
