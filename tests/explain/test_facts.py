"""What a graph says about an entity."""

import numpy as np
import pytest

from emea.data.attributes import AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.explain.facts import Facts

NAMES = ["http://x.org/Graz_City", "http://x.org/Austria", "http://x.org/City", "_:b1"]
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


@pytest.fixture(scope="module")
def facts() -> Facts:
    attributes = AttributeTriples(
        np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 0, 3]]),
        ["rdfs:label", "founded"],
        ["Graz", "Gradec", "1128", "Austria"],
        np.zeros(4, dtype=np.int64),
    )
    return Facts(
        KnowledgeGraph(
            np.array([[0, 0, 1], [0, 1, 2], [3, 0, 0], [1, 1, 2]]),
            4,
            2,
            NAMES,
            ["http://x.org/located_in", TYPE],
            attributes,
            ["Graz", "", "", ""],
        )
    )


def test_titles_and_names(facts: Facts) -> None:
    assert [facts.title(one) for one in range(4)] == ["Graz", "Austria", "City", "_:b1"]
    assert list(facts.all_titles(0)) == ["Graz", "Graz", "Gradec"]
    assert facts.entity("http://x.org/Austria") == 1
    assert facts.entity("Austria") is None


def test_statements_in_words(facts: Facts) -> None:
    assert [one.words() for one in facts.about(0)] == [
        "rdfs:label: Graz",
        "rdfs:label: Gradec",
        "founded: 1128",
        "located in: Austria",
        "type: City",
        "located in (of this): _:b1",
    ]
    assert len(facts.about(0, 2)) == 2


def test_values_of_attributes_and_relations(facts: Facts) -> None:
    assert [one.text for one in facts.values(0, "rdfs:label", 5)] == ["Graz", "Gradec"]
    assert len(facts.values(0, "rdfs:label", 1)) == 1
    (located,) = facts.values(0, "http://x.org/located_in", 5)
    assert (located.text, located.other) == ("Austria", 1)
    assert facts.values(1, "founded", 5) == facts.values(0, "nothing", 5) == []


def test_types_and_properties(facts: Facts) -> None:
    assert facts.types(0) == facts.types(1) == [2]
    assert facts.types(3) == []
    assert facts.all_types == [2]
    has_city = [True, True, False, False]
    assert facts.having_types([NAMES[2], "?"], needs_all=False).tolist() == has_city
    assert not facts.having_types([NAMES[2], "?"], needs_all=True).any()
    assert facts.having_types([NAMES[2]] * 2, needs_all=True).tolist() == has_city
    assert facts.properties == [
        "rdfs:label",
        TYPE,
        "http://x.org/located_in",
        "founded",
    ]
