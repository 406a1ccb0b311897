"""Names of entities: search by name, IRIs and prefixes."""

import re
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.names import (
    MOST_LABELLED,
    EntityIndex,
    Prefixes,
    entity_iri,
    local_name,
    own_name,
    with_missing_names,
)
from emea.errors import DataError

from ..answer.odd_alignments import NAMES

CITIES = (
    "http://a.org/Berlin",
    "http://a.org/Paris",
    "http://b.org/x#Paris",
    "Bern_(city)",
)


@pytest.fixture
def index() -> EntityIndex:
    return EntityIndex(KnowledgeGraph(np.empty((0, 3)), 4, 0, CITIES), "source entity")


def test_whole_names_and_unique_endings_are_found(index: EntityIndex) -> None:
    assert [index.find(name) for name in CITIES] == [0, 1, 2, 3]
    assert index.find("Berlin") == 0


def test_an_ending_of_several_is_refused(index: EntityIndex) -> None:
    with pytest.raises(DataError, match="more than one source entity") as error:
        index.find("Paris")
    assert CITIES[1] in str(error.value) and CITIES[2] in str(error.value)


def test_unique_labels_are_found() -> None:
    labels = ["capital", "town", "town", "Paris"]
    graph = KnowledgeGraph(np.empty((0, 3)), 4, 0, CITIES, labels=labels)
    index = EntityIndex(graph, "source entity")
    assert index.find("capital") == 0
    for several in ("town", "Paris"):  # names take precedence over labels
        with pytest.raises(DataError, match="more than one source entity: http:"):
            index.find(several)


def test_unknown_names_bring_the_nearest(index: EntityIndex) -> None:
    with pytest.raises(
        DataError, match=r"no source entity 'berlim'.*nearest names are.*Berlin"
    ):
        index.find("berlim")
    with pytest.raises(
        DataError, match=r"no source entity 'http://c.org/Berlin'.*a.org/Berlin"
    ):
        index.find("http://c.org/Berlin")
    with pytest.raises(DataError, match=r"no source entity 'zzzzzz'$"):
        index.find("zzzzzz")


def test_without_names_ids_are_names() -> None:
    index = EntityIndex(KnowledgeGraph(np.empty((0, 3)), 3, 0), "target entity")
    assert index.find("2") == 2
    with pytest.raises(DataError, match="no target entity '7'"):
        index.find("7")


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("http://x.org/y/Z_1", "Z_1"),
        ("http://x.org/y#Z", "Z"),
        ("http://x.org/", "x.org"),
        ("http://x.org/Caf%C3%A9", "Café"),
        ("AC/DC", "AC/DC"),
        ("", ""),
    ],
)
def test_local_names(name: str, local: str) -> None:
    assert local_name(name) == local


IRIREF = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
"""Of the grammar of N-Triples, without escapes and with a scheme."""


@pytest.mark.parametrize(
    ("name", "iri"),
    [
        ("http://dbpedia.org/resource/Berlin", "http://dbpedia.org/resource/Berlin"),
        ("http://zh.dbpedia.org/resource/柏林", "http://zh.dbpedia.org/resource/柏林"),
        ("http://d.org/AC/DC_(band)#it's", "http://d.org/AC/DC_(band)#it's"),
        ('http://d.org/"Heroes" [x]', "http://d.org/%22Heroes%22%20%5Bx%5D"),
        ("http://d.org/100%_a%20b", "http://d.org/100%25_a%20b"),
        ("http://d.org/a#b#c", "http://d.org/a#b%23c"),
        ("urn:isbn:0451450523", "urn:isbn:0451450523"),
        ("Batman: Year One", "urn:emea:my%20pair:source:Batman%3A%20Year%20One"),
        ("柏林", "urn:emea:my%20pair:source:%E6%9F%8F%E6%9E%97"),
        ("17", "urn:emea:my%20pair:source:17"),
        ("http://", "urn:emea:my%20pair:source:http%3A%2F%2F"),
    ],
)
def test_iris_stay_and_names_find_a_place(name: str, iri: str) -> None:
    assert entity_iri(name, "my pair", "source") == iri


@given(NAMES, st.sampled_from(["source", "target"]))
def test_any_name_gives_an_iri_from_which_it_can_be_read(name: str, side: str) -> None:
    iri = entity_iri(name, "pair", side)
    assert IRIREF.fullmatch(iri)
    assert iri.count("#") <= 1
    assert not re.search(r"%(?![0-9A-Fa-f]{2})", iri)
    assert own_name(iri) == (
        None if iri == name or not iri.startswith("urn:emea:") else name
    )
    start = f"urn:emea:pair:{side}:"
    assert unquote(iri.removeprefix(start)) == (
        name if iri.startswith(start) else unquote(name)
    )


DBR = {"dbr": "http://dbpedia.org/resource/"}


def test_short_names_in_full() -> None:
    assert list(Prefixes(DBR).spellings("dbr:A:b")) == [
        "dbr:A:b",
        "http://dbpedia.org/resource/A:b",
    ]


def test_full_names_in_short() -> None:
    full = "http://dbpedia.org/resource/A"
    assert list(Prefixes(DBR).spellings(f"<{full}>")) == [f"<{full}>", full, "dbr:A"]


def test_what_the_user_says_goes_before_what_a_file_says() -> None:
    both = Prefixes(DBR).with_others({"dbr": "http://other/", "x": "http://x/"})
    assert both.namespaces == {**DBR, "x": "http://x/"}


def words_of(number: int) -> str:
    """A name of two words that differs from all others in more than a digit."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return f"{letters[number // 26] * 4}_{letters[number % 26] * 5}"


@pytest.mark.parametrize(
    ("num_labelled", "are_named"), [(0, True), (4, True), (5, False)]
)
def test_iris_name_entities_where_hardly_any_has_a_label(
    num_labelled: int, are_named: bool
) -> None:
    num_entities = 40
    assert round(MOST_LABELLED * num_entities) == 4
    names = [f"http://x.org/{words_of(number)}" for number in range(num_entities)]
    labels = ["a label"] * num_labelled + [""] * (num_entities - num_labelled)
    graph = KnowledgeGraph(
        np.zeros((0, 3), dtype=np.int64),
        num_entities,
        0,
        entity_names=names,
        labels=labels,
    )

    found = with_missing_names(graph, "graph.ttl")

    if not are_named:
        assert found is graph
        return
    assert found.attributes is not None
    expected = [
        (entity, words_of(entity).replace("_", " "))
        for entity in range(num_labelled, num_entities)
    ]
    given = [
        (entity, found.attributes.values[value])
        for entity, _, value in found.attributes.triples.tolist()
    ]
    assert given == expected


def test_iris_that_end_in_numbers_name_no_entity() -> None:
    names = [f"http://x.org/entity{number}" for number in range(40)]
    graph = KnowledgeGraph(np.zeros((0, 3), dtype=np.int64), 40, 0, entity_names=names)

    assert with_missing_names(graph, "graph.ttl") is graph
