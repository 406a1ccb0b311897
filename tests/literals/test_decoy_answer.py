"""Evidence of neighbours for the candidates that decoys judge."""

import numpy as np
import pytest

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.literals.decoy_answer import RelatedPairs, _has_neighbour, _neighbours


def chain(length: int) -> KnowledgeGraph:
    """Entities 0 - 1 - 2 - ..., and one more without triples."""
    triples = [(one, 0, one + 1) for one in range(length - 1)]
    return KnowledgeGraph(np.array(triples), length + 1, 1)


def test_neighbours_of_entities() -> None:
    found = _has_neighbour(chain(5), np.array([0, 3]))
    assert found.tolist() == [False, True, True, False, True, False]


def test_candidates_get_the_probability_of_their_own_pair() -> None:
    pair = GraphPair("x", chain(4), chain(4), np.zeros((0, 2), dtype=np.int64))
    # not in the order of their numbers
    pairs = np.array([[2, 3], [0, 1], [1, 1]])
    probs = np.array([0.8, 0.25, 0.5])
    related = RelatedPairs(
        pairs=pairs, log_doubt=np.log1p(-probs), matched=np.array([[1, 1]])
    )
    candidates = np.array([[0, 1], [1, 1], [2, 3], [2, 2], [3, 0], [0, 3]])
    words = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    first, [column] = _neighbours(pair, related, candidates, words)
    assert first.tolist() == pytest.approx([0.35, 0.7, 1.1, 0.4, 0.5, 0.6])
    levels = np.asarray(column.levels).tolist()
    # above 1: supported; 1: both are neighbours of the matched entity; 0: one of them is not
    assert min(levels[:3]) > 1
    assert levels[1:3] == sorted(levels[1:3]) and levels[0] < levels[2]
    assert levels[3:] == [1, 0, 0]


def test_without_related_pairs_only_words_count() -> None:
    pair = GraphPair("x", chain(4), chain(4), np.zeros((0, 2), dtype=np.int64))
    none = RelatedPairs(
        np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.array([[1, 1]])
    )
    first, columns = _neighbours(pair, none, np.array([[0, 0]]), np.array([0.5]))
    assert first.tolist() == [0.5] and columns == []
