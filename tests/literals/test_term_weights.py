"""TF-IDF weights, compared bit for bit with scikit-learn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.literals.term_weights import Terms, character_terms, term_weights, word_terms

texts = st.lists(st.text("abcÄßİ  \t\n") | st.text(), max_size=8)


@given(
    texts,
    texts,
    st.sampled_from(
        [
            (character_terms, {"analyzer": "char_wb", "ngram_range": (2, 3)}),
            (word_terms, {"token_pattern": r"\S+"}),
        ]
    ),
)
def test_weights_are_those_of_scikit_learn(
    source: list[str], target: list[str], ways: tuple[Terms, dict[str, Any]]
) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms, settings = ways
    vectoriser = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **settings)
    try:
        vectoriser.fit([*source, *target])
    except ValueError:  # there is no term, which scikit-learn refuses
        assert not [term for text in [*source, *target] for term in terms(text)]
        return
    for found, listed in zip(
        term_weights(source, target, terms), (source, target), strict=True
    ):
        if not listed:
            assert found.shape[0] == 0
            continue
        expected = vectoriser.transform(listed).tocsr()
        assert found.shape == expected.shape
        assert found.indptr.tolist() == expected.indptr.tolist()
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.data.dtype == expected.data.dtype == np.float32
        assert found.data.tobytes() == expected.data.tobytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ab", [" a", "ab", "b ", " ab", "ab "]),
        ("a b", [" a", "a ", " a ", " b", "b ", " b "]),
        (" ", []),
    ],
)
def test_character_terms_do_not_cross_words(text: str, expected: list[str]) -> None:
    assert list(character_terms(text)) == expected
