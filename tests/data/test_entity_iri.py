import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.names import entity_iri, own_name

from ..answer.odd_alignments import NAMES

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
    assert own_name(iri) == (None if iri == name or not iri.startswith("urn:emea:") else name)
    start = f"urn:emea:pair:{side}:"
    assert unquote(iri.removeprefix(start)) == (name if iri.startswith(start) else unquote(name))


@given(NAMES)
def test_an_iri_is_its_own(name: str) -> None:
    iri = entity_iri(name, "pair", "source")
    assert entity_iri(iri, "another", "target") == iri
