"""RDF with small faults is read, and one warning counts them and shows the first one."""

from pathlib import Path

import pytest

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.link_file import read_link_file
from emea.data.formats.repairs import resolved
from emea.data.formats.settings import GraphForm
from emea.data.formats.triple_collector import SAME_AS
from emea.errors import DataError

BASE = "http://relative.invalid/"
PREFIX = "@prefix : <http://a.org/> .\n"
TURTLE = PREFIX + ':a :p :b .\n:b :p <Atlas>, <B> ; :n "x"@gergerger, "y"@en .\n'
XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<rdf:Description rdf:about="http://a">
<e:p rdf:resource="http://b"/>
<e:p rdf:resource="rel"/><e:n xml:lang="gergerger">z</e:n>
</rdf:Description>
<rdf:Description rdf:ID="b"><e:p rdf:resource="http://x/a b"/></rdf:Description>
</rdf:RDF>"""
TRIPLES = """<http://a> <http://p> <http://b> .
<rel> <http://p> <http://b> .
<http://a> <http://n> "z"@gergergerger .
"""
QUADS = "<http://a> <http://p> <http://b> <http://g> .\n<rel> <http://p> <http://b> <http://g> .\n"
JSON = """{"@id": "http://a",
"http://p": [{"@id": "rel"}, {"@value": "z", "@language": "gergerger"}],
"unknown": "z"}"""

ONE_OF_EACH = (
    "1 relative IRI (resolved against http://relative.invalid/; data.base_iri sets another base) "
    "and 1 wrong language tag (left out)"
)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.nt", TRIPLES, "line 2, column 1"),
        ("a.ttl", PREFIX + ':a :p <rel> ;\n:n "z"@gergerger .', "line 2, column 7"),
        ("a.trig", PREFIX + ':a :p <rel> ;\n:n "z"@gergerger .', "line 2, column 7"),
        ("a.n3", PREFIX + ':a :p <rel> ;\n:n "z"@gergerger .', "line 2, column 7"),
        ("a.jsonld", JSON, "line 2, column 22"),
    ],
)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_faults_are_counted_and_the_first_is_shown(
    name: str,
    text: str,
    place: str,
    on_error: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / name).write_text(text)
    graph, reading = read_graph_file(
        tmp_path / name, on_error=on_error, keep_literals=True
    )
    assert f"{BASE}rel" in graph.all_entity_names
    assert graph.attributes is not None
    assert (
        list(graph.attributes.values) == ["z"]
        and graph.attributes.kind(0).language == ""
    )
    assert reading.num_bad == 0
    assert len(caplog.records) == 1
    expected = (
        f"{name} was read with repairs: {ONE_OF_EACH}. The first is 'rel' in {place}."
    )
    assert caplog.records[0].getMessage() == expected


def test_xml_has_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.rdf").write_text(XML)
    graph, _ = read_graph_file(tmp_path / "a.rdf")
    assert graph.all_entity_names == [
        *("http://a", "http://b", f"{BASE}#b", f"{BASE}rel", "http://x/a b")
    ]
    assert "2 relative IRIs" in caplog.text
    assert "1 IRI with characters that an IRI may not contain (kept)" in caplog.text
    assert "The first is 'rel' in line 4." in caplog.text


def test_quads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.nq").write_text(QUADS)
    graph, _ = read_graph_file(tmp_path / "a.nq")
    assert f"{BASE}rel" in graph.all_entity_names
    assert "The first is 'rel' in line 2, column 1." in caplog.text


def test_blank_nodes_stay_the_same_after_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(PREFIX + ":a :p [ :q :b ] .\n:c :p <rel> .\n")
    with_fault, reading = read_graph_file(path)
    path.write_text(PREFIX + f":a :p [ :q :b ] .\n:c :p <{BASE}rel> .\n")
    without, _ = read_graph_file(path)
    assert with_fault.all_entity_names == without.all_entity_names
    assert with_fault.triples.tolist() == without.triples.tolist()
    assert reading.num_duplicates == 0


def test_the_user_can_give_a_base(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.ttl").write_text(PREFIX + ":a :p <rel>, </top> .\n")
    form = GraphForm(base_iri="http://my.org/x/")
    graph, _ = read_graph_file(tmp_path / "a.ttl", form=form)
    assert graph.all_entity_names == [
        "http://a.org/a",
        "http://my.org/top",
        "http://my.org/x/rel",
    ]
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.ttl", TURTLE + ":b :p :c\n:c :p :d .\n", 5),
        ("a.ttl", PREFIX + ":a :p :b .\n:b :p <http://x\n:c :p <http://d> .\n", 3),
        ("a.nt", TRIPLES + "<http://a> <http://n> z .\n", 4),
        ("a.rdf", XML.replace("</rdf:RDF>", "<lost\n"), 7),
        ("a.rdf", XML.replace("<e:n", "lost<e:n"), 4),
        ("a.jsonld", JSON.replace("}]", "}"), 3),
    ],
)
def test_broken_syntax_is_an_error_with_its_line(
    name: str, text: str, line: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=rf"^{name}, line {line}: "):
        read_graph_file(tmp_path / name)


def test_files_of_links_have_faults_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("links.ttl", "links.nt"):
        (tmp_path / name).write_text(
            f"<http://a/1> <{SAME_AS}> <http://b/1> .\n<two> <{SAME_AS}> <http://b/2> .\n"
        )
        found = read_link_file(tmp_path / name).links
        assert found == [("http://a/1", "http://b/1"), (f"{BASE}two", "http://b/2")]
    assert "links.ttl was read with repairs: 1 relative IRI" in caplog.text
    own = read_link_file(tmp_path / "links.ttl", base_iri="http://my.org/").links
    assert own[1][0] == "http://my.org/two"


def test_valid_files_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files without a fault never meet the lenient parser."""
    monkeypatch.setattr("emea.data.formats.rdf._lenient_statements", None)
    (tmp_path / "a.ttl").write_text(PREFIX + ":a :p :b .\n")
    graph, _ = read_graph_file(tmp_path / "a.ttl")
    assert graph.num_entities == 2


@pytest.mark.parametrize("name", ["a.nt", "a.ttl", "a.n3"])
def test_relative_datatypes_are_resolved(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / name).write_text('<http://a> <http://n> "z"^^<type> .\n')
    graph, _ = read_graph_file(tmp_path / name, keep_literals=True, keep_isolated=True)
    assert graph.attributes is not None
    assert list(graph.attributes.values) == ["z"]
    assert graph.attributes.kind(0).datatype == f"{BASE}type"
    assert "read with repairs: 1 relative IRI" in caplog.text
    assert "The first is 'type' in line 1" in caplog.text


def test_a_stray_percent_sign_of_a_relative_iri_is_encoded() -> None:
    assert resolved("http://a.org/", "50%tp/é%20") == "http://a.org/50%25tp/%C3%A9%20"
