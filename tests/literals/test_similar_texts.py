"""The search for similar texts, against all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from emea.data.settings import Cardinality
from emea.literals import similar_texts as module
from emea.literals.similar_texts import CHARACTERS, WORDS, best_pairs, similar_texts

texts = st.lists(st.text("abc ", min_size=1).filter(str.strip), min_size=1, max_size=8)

WAYS = {
    "characters": (CHARACTERS, {"analyzer": "char_wb", "ngram_range": (2, 3)}),
    "words": (WORDS, {"token_pattern": r"\S+"}),
}
"""What texts are compared by, and the same in scikit-learn's words."""


@given(
    texts,
    texts,
    st.sampled_from([1, 2**26]),
    st.sampled_from(["characters", "words"]),
    st.sampled_from(Cardinality),
)
def test_as_all_pairs_would_have_it(
    source: list[str],
    target: list[str],
    products: int,
    compared: str,
    cardinality: Cardinality,
) -> None:
    features, settings = WAYS[compared]
    usual, module.MOST_PRODUCTS = module.MOST_PRODUCTS, products
    try:
        rows, columns, cosines, margins = similar_texts(
            source,
            target,
            least=0.4,
            num_similar=100,
            features=features,
            cardinality=cardinality,
        )
    finally:
        module.MOST_PRODUCTS = usual
    vectors = TfidfVectorizer(sublinear_tf=True, **settings)
    vectors.fit([*source, *target])
    every = (vectors.transform(source) @ vectors.transform(target).T).toarray()
    found = np.zeros_like(every)
    found[rows, columns] = cosines
    clear = np.abs(every - 0.4) > 1e-5
    np.testing.assert_allclose(
        found[clear], np.where(every >= 0.4, every, 0)[clear], atol=1e-5
    )
    for row, column, cosine, margin in zip(
        rows, columns, cosines, margins, strict=True
    ):
        rivals = list(np.delete(found[row], column)) if cardinality.one_target else []
        rivals += (
            list(np.delete(found[:, column], row)) if cardinality.one_source else []
        )
        assert margin == pytest.approx(cosine - max(rivals, default=0))


def test_each_text_keeps_its_best() -> None:
    source, target = ["abcdef"], ["abcdef", "abcdeg", "abcxyz", "zzz"]
    rows, columns, cosines, margins = similar_texts(
        source, target, least=0.1, num_similar=2
    )
    assert rows.tolist() == [0, 0] and sorted(columns.tolist()) == [0, 1]
    assert cosines.max() <= 1
    best = columns.tolist().index(0)
    assert margins[best] > 0 > margins[1 - best]


def test_nothing_is_similar_to_nothing() -> None:
    assert all(
        not len(column) for column in similar_texts([], ["a"], least=0.5, num_similar=3)
    )


def test_a_pair_is_among_the_best_of_both_of_its_texts() -> None:
    # all three sources have only target 0, and source 0 has three targets
    rows, columns = np.array([0, 0, 0, 1, 2]), np.array([0, 1, 2, 0, 0])
    cosines = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    kept = best_pairs(rows, columns, cosines, 2)
    found = set(zip(kept[0].tolist(), kept[1].tolist(), strict=True))
    # (0, 2) is the third of its source, and (2, 0) the third of its target
    assert found == {(0, 0), (0, 1), (1, 0)}
