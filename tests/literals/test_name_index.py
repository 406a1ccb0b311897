"""The index of names, against a comparison with every name."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.literals import similar_texts
from emea.literals.name_index import LONGEST, NameIndex
from emea.literals.similar_texts import CHARACTERS

words = st.text("abc ", min_size=1, max_size=12).filter(str.strip)
NAMES = ["Graz", "Gratz", "Zagreb", "Graz", "Ölüdeniz", "St. John's", "Wien"]


def slow_cosines(names: list[str], query: str) -> np.ndarray:
    """The cosine of a text and each name; n-grams that no name has make the text longer."""
    counts = [Counter(CHARACTERS(" ".join(name.split()))) for name in names]
    wanted = Counter(CHARACTERS(" ".join(query.split())))

    def vector(terms: Counter[str]) -> dict[str, float]:
        holders = {term: sum(term in one for one in counts) for term in terms}
        return {
            term: (1 + math.log(number))
            * (1 + math.log((1 + len(names)) / (1 + holders[term])))
            for term, number in terms.items()
        }

    first = vector(wanted)
    found = []
    for one in counts:
        second = vector(one)
        product = sum(value * second.get(term, 0) for term, value in first.items())
        length = math.hypot(*first.values()) * math.hypot(*second.values())
        found.append(product / length if length else 0.0)
    return np.array(found)


@given(st.lists(words, min_size=1, max_size=8), words)
def test_similarities_are_those_of_all_names(names: list[str], query: str) -> None:
    index = NameIndex(range(len(names)), names)
    found = {one.entity: one for one in index.search(query, len(names))}
    for entity, cosine in enumerate(slow_cosines(names, query)):
        is_equal = names[entity].split() == query.split()
        if entity in found:
            assert found[entity].similarity == pytest.approx(cosine, abs=1e-5)
            assert found[entity].is_equal == is_equal
        else:
            assert cosine == 0


@given(st.lists(words, min_size=2, max_size=8), words)
def test_frequent_n_grams_count_when_names_are_compared(
    names: list[str], query: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar_texts, "MOST_TEXTS", 1)
        found = NameIndex(range(len(names)), names).search(query, len(names))
    cosines = slow_cosines(names, query)
    for one in found:
        assert one.similarity == pytest.approx(cosines[one.entity], abs=1e-5)


def test_equal_names_come_first_and_are_marked() -> None:
    index = NameIndex(range(len(NAMES)), NAMES)
    found = index.search("GRAZ", 3)
    assert [(one.entity, one.is_equal) for one in found[:2]] == [(0, True), (3, True)]
    assert found[2].entity == 1 and not found[2].is_equal
    assert index.search("st johns", 1)[0].is_equal
    assert index.search("Oludeniz", 1)[0].entity == 4


def test_only_some_entities_are_searched() -> None:
    index = NameIndex(range(len(NAMES)), NAMES)
    among = np.arange(len(NAMES)) > 0
    found = index.search("Graz", 3, among)
    assert found[0] == (3, 1.0, True) and 0 not in [one.entity for one in found]
    assert index.search("Graz", 3, ~among) == [(0, 1.0, True)]


def test_an_entity_with_several_names_is_found_once() -> None:
    index = NameIndex([0, 0, 1], ["Wien", "Vienna", "Bern"])
    found = index.search("Vienna", 5)
    assert [one.entity for one in found].count(0) == 1
    assert found[0] == (0, 1.0, True)


def test_names_that_start_with_a_text() -> None:
    index = NameIndex(range(len(NAMES)), NAMES)
    assert index.starting_with("gra", 10) == [1, 0, 3]
    assert index.starting_with("gra", 1) == [1]
    assert index.starting_with("x", 10) == []


@pytest.mark.parametrize("text", ["", " ", "?!", "qqq", "\ud800", "a" * 10 * LONGEST])
def test_odd_texts_are_searched(text: str) -> None:
    found = NameIndex(range(len(NAMES)), NAMES).search(text, 3)
    assert all(0 <= one.similarity <= 1 for one in found)
