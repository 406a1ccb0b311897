import re

from hypothesis import given
from hypothesis import strategies as st

from emea.answer.sssom import CompactURIs
from emea.data.names import entity_iri, entity_uri

from .odd_alignments import NAMES


def test_one_namespace_is_the_prefix() -> None:
    uris = ["http://d.org/resource/Berlin", "http://d.org/resource/Bern", "urn:emea:zh:source:1"]
    compact = CompactURIs(uris, "source")
    assert compact.prefixes == {
        "source_emea": "urn:emea:zh:source:",
        "source_http": "http://d.org/resource/",
    }
    assert [compact(uri) for uri in uris] == [
        "source_http:Berlin",
        "source_http:Bern",
        "source_emea:1",
    ]


def test_the_prefix_of_many_namespaces_is_what_they_share() -> None:
    compact = CompactURIs(["http://a.org/x", "http://b.org/y#z", "urn:isbn:1"], "target")
    assert compact.prefixes["target_http"] == "http://"
    assert compact("http://b.org/y#z") == "target_http:b.org/y#z"
    assert compact("urn:isbn:1") == "target_urn:1"


def test_the_vocabulary_of_rdf_does_not_shorten_the_prefix() -> None:
    owl = "http://www.w3.org/2002/07/owl#"
    uris = ["http://purl.org/obo/A_1", "http://purl.org/obo/A_2", f"{owl}Class", owl]
    compact = CompactURIs(uris, "source")
    assert compact.prefixes == {"source_http": "http://purl.org/obo/", "owl": owl}
    assert [compact(uri) for uri in uris[1:]] == ["source_http:A_2", "owl:Class", owl]


def test_two_prefixes_never_stand_for_one_namespace() -> None:
    source = CompactURIs(["http://a.org/x", "http://a.org/y"], "source")
    target = CompactURIs(["http://a.org/z", "urn:isbn:1"], "target", known=source.prefixes)
    assert target.prefixes == {"source_http": "http://a.org/", "target_urn": "urn:isbn:"}
    assert target("http://a.org/z") == "source_http:z"


def test_the_reference_is_not_empty() -> None:
    assert CompactURIs(["http://a.org/x/"], "source")("http://a.org/x/") == "source_http:x/"


def test_a_colon_in_the_first_segment_keeps_the_uri_in_full() -> None:
    uris = ["http://a.org/Batman:_Year_One", "http://a.org/x/a:b", "http://a.org/y"]
    compact = CompactURIs(uris, "source")
    assert [compact(uri) for uri in uris] == [uris[0], "source_http:x/a:b", "source_http:y"]


def test_characters_outside_ascii_are_percent_encoded() -> None:
    assert entity_uri("http://a.org/柏林%20x") == "http://a.org/%E6%9F%8F%E6%9E%97%20x"


@given(st.lists(NAMES, min_size=1, max_size=6))
def test_every_form_expands_again(names: list[str]) -> None:
    uris = [entity_uri(entity_iri(name, "pair", "source")) for name in names]
    compact = CompactURIs(uris, "source")
    assert all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in compact.prefixes)
    for uri in uris:
        assert uri.isascii()
        prefix, _, rest = compact(uri).partition(":")
        assert rest
        assert compact(uri) == uri or compact.prefixes[prefix] + rest == uri
