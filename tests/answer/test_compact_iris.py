import re

from hypothesis import given
from hypothesis import strategies as st

from emea.answer.sssom import CompactIris
from emea.data.names import entity_iri

from .odd_alignments import NAMES


def test_one_namespace_is_the_prefix() -> None:
    iris = ["http://d.org/resource/Berlin", "http://d.org/resource/Bern", "urn:emea:zh:source:1"]
    compact = CompactIris(iris, "source")
    assert compact.prefixes == {"emea": "urn:emea:", "source_http": "http://d.org/resource/"}
    assert [compact(iri) for iri in iris] == [
        "source_http:Berlin",
        "source_http:Bern",
        "emea:zh:source:1",
    ]


def test_of_many_namespaces_what_they_share() -> None:
    compact = CompactIris(["http://a.org/x", "http://b.org/y#z", "urn:isbn:1"], "target")
    assert compact.prefixes["target_http"] == "http://"
    assert compact("http://b.org/y#z") == "target_http:b.org/y#z"
    assert compact("urn:isbn:1") == "target_urn:1"


def test_something_is_left_to_refer_to() -> None:
    assert CompactIris(["http://a.org/x/"], "source")("http://a.org/x/") == "source_http:x/"


@given(st.lists(NAMES, min_size=1, max_size=6))
def test_every_form_expands_again(names: list[str]) -> None:
    iris = [entity_iri(name, "pair", "source") for name in names]
    compact = CompactIris(iris, "source")
    assert all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in compact.prefixes)
    for iri in iris:
        prefix, _, rest = compact(iri).partition(":")
        assert rest
        assert compact.prefixes[prefix] + rest == iri
