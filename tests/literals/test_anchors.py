"""Anchors in other scripts and languages, and their precision as the neighbours show it."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from emea.data.attributes import Kind
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.literals.match_literals import EqualLiterals, SimilarLiterals
from emea.literals.readings import readings
from emea.literals.structure_support import Neighbours, structure_support
from tests.literals.pairs_with_values import graph_with_values, pair_with_values

NUM = 300


def edges(seed: int, num_entities: int = NUM) -> list[tuple[int, int, int]]:
    ends = np.random.default_rng(seed).integers(0, num_entities, (3 * num_entities, 2))
    return [(int(head), 0, int(tail)) for head, tail in ends if head != tail]


def pair_of_pairs(right: np.ndarray) -> tuple[GraphPair, np.ndarray]:
    """Two equal graphs, and pairs of entities of which some are shifted by one and wrong."""
    graph = graph_with_values(NUM, [(0, 0, "x")], edges(1))
    sources = np.arange(NUM)
    targets = np.where(right, sources, (sources + 1) % NUM)
    return pair_with_values(graph, graph), np.stack([sources, targets], axis=1)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_the_precision_of_a_kind_is_estimated_without_links(share: float) -> None:
    kinds = (np.arange(NUM) >= NUM // 2).astype(np.int64)
    right = (kinds == 0) | (np.random.default_rng(0).random(NUM) < share)
    pair, pairs = pair_of_pairs(right)
    decoys = np.stack([pairs[:, 0], np.roll(pairs[:, 1], 7)], axis=1)
    prior = np.array([0.9, 0.5])
    found = structure_support(
        Neighbours(pair.source, pair.target), pairs, kinds, prior, decoys
    )
    assert found.precision[0] > 0.95
    assert found.precision[1] == pytest.approx(right[kinds == 1].mean(), abs=0.1)
    assert np.median(found.likelihood_ratio[right]) > 10
    assert share == 1 or np.median(found.likelihood_ratio[~right]) < 0.1
    degrees = np.diff(Neighbours(pair.source, pair.target).source.indptr)
    assert found.num_confirming == pytest.approx(degrees.mean(), rel=0.2)


@pytest.mark.parametrize(
    ("prior", "least", "most"), [(0.8, 0.8, 0.8), (0.6, 0.0, 0.05)]
)
def test_a_low_prior_does_not_count_if_no_pair_is_right(
    prior: float, least: float, most: float
) -> None:
    pair, pairs = pair_of_pairs(np.zeros(NUM, dtype=bool))
    decoys = np.stack([pairs[:, 0], np.roll(pairs[:, 1], 7)], axis=1)
    neighbours, priors = Neighbours(pair.source, pair.target), np.array([prior])
    found = structure_support(
        neighbours, pairs, np.zeros(NUM, dtype=np.int64), priors, decoys
    )
    assert least <= found.precision[0] <= most and (found.likelihood_ratio == 1).all()
    assert found.num_confirming == 0


def test_neighbours_agree_as_sets_would_have_it() -> None:
    graph = graph_with_values(30, [(0, 0, "x")], edges(2, 30))
    other = graph_with_values(30, [(0, 0, "x")], edges(3, 30))
    rng = np.random.default_rng(4)
    pairs = np.stack([rng.permutation(30), rng.permutation(30)], axis=1)
    anchors = pairs[:20]
    counts, agreeing = Neighbours(graph, other).agreement(pairs, anchors)
    near = [{e: set() for e in range(30)} for _ in range(2)]
    for one, found in zip((graph, other), near, strict=True):
        for head, _, tail in one.triples.tolist():
            found[head].add(tail)
            found[tail].add(head)
    linked = dict(anchors.tolist())
    for (left, right), count, number in zip(
        pairs.tolist(), counts, agreeing, strict=True
    ):
        known = near[0][left] & set(linked), near[1][right] & set(linked.values())
        assert count == min(map(len, known))
        assert number == sum(linked[one] in near[1][right] for one in known[0])


def with_language(graph: KnowledgeGraph, language: str) -> KnowledgeGraph:
    assert graph.attributes is not None
    attributes = replace(graph.attributes, kind_names=(Kind(language=language),))
    return replace(graph, attributes=attributes)


def labelled(
    words: list[str], links: list[tuple[int, int, int]], language: str = ""
) -> KnowledgeGraph:
    facts = [(entity, 0, word) for entity, word in enumerate(words) if word]
    return with_language(graph_with_values(len(words), facts, links), language)


def matched(source: KnowledgeGraph, target: KnowledgeGraph) -> LiteralMatches:
    return EqualLiterals()(pair_with_values(source, target))


def test_an_equal_word_of_another_language_is_a_candidate_with_less_weight() -> None:
    german, english = labelled(["Gift"], [], "de"), labelled(["gift"], [], "en")
    found = matched(german, english)
    assert found.anchors.tolist() == [[0, 0]] and found.probs.tolist() == [
        pytest.approx(0.6)
    ]
    regional = matched(german, labelled(["gift"], [], "de-AT"))
    assert regional.anchors.tolist() == [[0, 0]] and regional.probs.tolist() == [1.0]
    assert matched(german, labelled(["gift"], [])).probs.tolist() == [1.0]


def test_names_that_are_equal_in_both_languages_are_anchors_if_neighbours_agree() -> (
    None
):
    names = [f"name{number}" for number in range(NUM)]
    source = labelled(names, edges(1), "de")
    agreeing = matched(source, labelled(names, edges(1), "en"))
    assert len(agreeing.anchors) > 0.9 * NUM and agreeing.anchor_probs.mean() > 0.9
    assert agreeing.probs.mean() > 0.9
    strange = matched(source, labelled(names, edges(9), "en"))
    assert not len(strange.anchors) and strange.probs.max() < 0.5


def test_neighbours_raise_right_pairs_and_lower_names_that_are_equal_by_accident() -> (
    None
):
    names = [f"name{number}" for number in range(NUM)]
    moved = [*names[1:60], names[0], *names[60:]]
    found = matched(labelled(names, edges(1), "de"), labelled(moved, edges(1), "en"))
    is_right = found.anchors[:, 0] == found.anchors[:, 1]
    # without the neighbours, all would have the precision of the kind
    right, wrong = found.anchor_probs[is_right], found.anchor_probs[~is_right]
    assert len(right) == NUM - 60 and np.quantile(right, 0.1) > 0.99
    assert np.median(wrong) < 0.8 < wrong.max() < np.median(right)


def test_a_value_counts_less_if_others_of_its_attribute_are_shared() -> None:
    # four different values of five entities in the source graph, five of six in the target
    texts = "abcxx", "adeyyf"
    sides = [[(one, 0, text) for one, text in enumerate(side)] for side in texts]
    found = matched(*(graph_with_values(len(side), side) for side in sides))
    assert found.anchors.tolist() == [[0, 0]]
    assert found.anchor_probs.tolist() == [pytest.approx(0.9 * 4 / 5 * 5 / 6)]


def test_votes_of_two_attributes_check_each_other() -> None:
    # the first attribute of one graph is the second one of the other
    facts = [
        [
            (one, attribute, f"{text}{one}")
            for one in range(20)
            for attribute, text in of
        ]
        for of in ([(0, "u"), (1, "v")], [(1, "u"), (0, "v")])
    ]
    found = matched(*(graph_with_values(20, side) for side in facts))
    # 20 votes of each kind agree with the other kind; the prior precision counts for 10 votes
    of_kind = (20 + 10 * 0.9) / (20 + 10)
    assert len(found.anchors) == 20
    assert found.anchor_probs == pytest.approx(1 - (1 - of_kind) ** 2, abs=1e-9)


RUSSIAN = ["Новосибирск", "Екатеринбург", "Краснодар", "Владивосток"]
LATIN = ["Novosibirsk", "Yekaterinburg", "Krasnodar", "Vladivostok"]


def test_texts_in_other_scripts_are_compared_in_latin_letters() -> None:
    pair = pair_with_values(labelled(RUSSIAN, []), labelled(LATIN, []))
    same = {(number, number) for number in range(len(LATIN))}
    found = SimilarLiterals()(pair)
    assert set(map(tuple, found.anchors.tolist())) == same
    assert found.source.entity_name(int(found.pairs[0, 0])).strip('"') in RUSSIAN
    assert set(found.anchor_kinds) == {"equal after transliteration", "similar"}
    assert not len(SimilarLiterals(transliterate="never")(pair).anchors)
    equal = EqualLiterals()(pair)
    assert 1 <= len(equal.anchors) < len(LATIN) and equal.anchor_probs.max() < 0.9


def test_texts_in_one_script_stay_unchanged_unless_wanted() -> None:
    texts = ["são paulo", "wien"], ["sao paulo", "vienna"]
    assert (
        readings(*texts, "auto") is None
        and readings(["москва"], ["мир"], "auto") is None
    )
    assert readings(*texts, "always") == (
        ["sao paulo", "wien"],
        ["sao paulo", "vienna"],
    )
    assert readings(["москва"], ["moskva"], "never") is None
    assert readings(["москва"], ["1999"], "auto") is None


def test_japanese_is_read_with_or_without_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pykakasi", None)
    without = readings(["東京タワー"], ["tokyo tower"], "auto")
    assert without is not None and without[0][0].isascii()
    monkeypatch.delitem(sys.modules, "pykakasi")
    pytest.importorskip("pykakasi")
    found = readings(["東京タワー"], ["tokyo tower"], "auto")
    assert found is not None and found[0][0].startswith("tou")
