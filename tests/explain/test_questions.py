"""Questions about single pairs."""

import json

import numpy as np

from emea.data.graph import KnowledgeGraph
from emea.explain.facts import Facts
from emea.explain.questions import MOST_FACTS, Unsure, question_lines, unsure_pairs


def side(letter: str) -> Facts:
    hub = [[0, 0, tail] for tail in range(1, 20)]
    names = [f"http://{letter}.org/{letter}_{number}" for number in range(20)]
    relations = [f"http://{letter}.org/part_of"]
    labels = ["Graz\u2028\t{source}", *[""] * 19]
    return Facts(KnowledgeGraph(np.array(hub), 20, 1, names, relations, labels=labels))


def test_pairs_in_a_range() -> None:
    suggested = [(3, ((7, 0.8), (5, 0.2))), (1, ((7, 0.81), (6, 0.1)))]
    assert list(unsure_pairs(suggested, 0.2, 0.8)) == [
        Unsure(3, 7, 0.8, [(5, 0.2)]),
        Unsure(3, 5, 0.2, [(7, 0.8)]),
    ]
    assert list(unsure_pairs(suggested, 0.3, 0.3)) == []


def test_a_question_has_what_one_needs_to_answer_it() -> None:
    pairs = [Unsure(0, 0, 0.5, [(2, 0.25)]), Unsure(1, 2, 0.25, [])]
    first, second = map(json.loads, question_lines(pairs, side("a"), side("b")))
    assert (first["source"], first["target"]) == (
        "http://a.org/a_0",
        "http://b.org/b_0",
    )
    assert first["source_label"] == "Graz\u2028\t{source}"
    assert "Graz\u2028\t{source} in the first graph" in first["question"]
    assert len(first["source_facts"]) == MOST_FACTS
    assert first["source_facts"][0] == "part of: a 1"
    assert first["other_candidates"] == [{"target": "http://b.org/b_2", "label": "b 2"}]
    assert first["answer"] is None and first["probability"] == 0.5
    assert second["target_facts"] == ["part of (of this): Graz\u2028\t{source}"]
    assert "a 1 in the first graph, and b 2 in the second" in second["question"]
