"""What the triples of an ontology mean."""

import logging
from pathlib import Path

import numpy as np
import pytest

from emea.config.settings.data import GraphForm
from emea.data.entity_kinds import RDF, RDFS, EntityKind, entity_kinds
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.ontology import words
from emea.data.graph import KnowledgeGraph
from emea.data.sources.own_files import read_own_files
from emea.errors import DataError
from emea.record.pair_file import read_pair, write_pair

from ...ontologies import PREFIXES, SOURCE, write_ontologies

A = "http://a.org#"
OBO = "http://www.geneontology.org/formats/oboInOwl#"


def read(path: Path, text: str = SOURCE, keep_literals: bool = True, **form) -> KnowledgeGraph:
    path.write_text(PREFIXES.replace("{side}", "a") + text)
    return read_graph_file(path, keep_literals=keep_literals, form=GraphForm(**form))[0]


def short(name: str) -> str:
    for namespace, prefix in ((A, ""), (RDFS, "rdfs:"), (RDF, "rdf:"), (OBO, "obo:")):
        name = name.replace(namespace, prefix)
    return name.replace("http://www.w3.org/2002/07/owl#", "owl:")


def edges(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    return {
        (
            short(graph.entity_name(head)),
            short(graph.relation_name(relation)),
            short(graph.entity_name(tail)),
        )
        for head, relation, tail in graph.triples.tolist()
    }


def literals(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    found = graph.attributes
    assert found is not None
    return {
        (short(graph.entity_name(entity)), short(found.attribute_names[name]), found.values[value])
        for entity, name, value in found.triples.tolist()
    }


def test_terms_and_their_kinds(tmp_path: Path) -> None:
    graph = read(tmp_path / "a.ttl")
    kinds = entity_kinds(graph).tolist()
    named = {
        kind: {short(graph.entity_name(n)) for n, one in enumerate(kinds) if one == kind}
        for kind in EntityKind
    }
    assert named[EntityKind.CLASS] == {
        *("Person", "Document", "Email", "Author", "ConferencePaper", "Chair"),
    }
    assert named[EntityKind.PROPERTY] == {"writesPaper", "hasAuthor", "email"}
    assert named[EntityKind.INDIVIDUAL] == {"emea2022", "liu"}


def test_class_expressions_become_edges(tmp_path: Path) -> None:
    assert edges(read(tmp_path / "a.ttl")) == {
        ("Author", "rdfs:subClassOf", "Person"),
        ("Author", "writesPaper", "ConferencePaper"),
        ("ConferencePaper", "rdfs:subClassOf", "Document"),
        ("ConferencePaper", "hasAuthor", "Author"),
        ("ConferencePaper", "hasAuthor", "Chair"),
        ("Chair", "rdfs:subClassOf", "Person"),
        ("writesPaper", "rdfs:domain", "Author"),
        ("writesPaper", "rdfs:range", "ConferencePaper"),
        ("hasAuthor", "owl:inverseOf", "writesPaper"),
        ("hasAuthor", "rdfs:domain", "ConferencePaper"),
        ("email", "rdfs:domain", "Person"),
        ("email", "rdfs:domain", "Email"),
        ("emea2022", "rdf:type", "ConferencePaper"),
        ("emea2022", "hasAuthor", "liu"),
        ("liu", "rdf:type", "Author"),
    }


def test_names_synonyms_and_annotations_become_literals(tmp_path: Path) -> None:
    graph = read(tmp_path / "a.ttl")
    assert literals(graph) == {
        *((name, "rdfs:label", name) for name in ("Person", "Document", "Email", "Author")),
        ("ConferencePaper", "rdfs:label", "Conference Paper"),
        ("ConferencePaper", "obo:hasRelatedSynonym", "article"),
        ("Chair", "rdfs:label", "session chair"),
        ("Chair", "urn:emea:iri_name", "Chair"),
        ("writesPaper", "rdfs:label", "writes Paper"),
        ("hasAuthor", "rdfs:label", "has Author"),
        ("email", "rdfs:label", "email"),
        ("emea2022", "rdfs:label", "EMEA"),
        ("Document", "seeAlsoPage", "http://pages.org/document"),
    }
    labels = dict(zip(map(short, graph.all_entity_names), graph.labels or (), strict=True))
    assert labels["Chair"] == "session chair"
    assert labels["liu"] == ""


def test_without_literals_the_terms_stay_the_same(tmp_path: Path) -> None:
    graph, complete = (read(tmp_path / "a.ttl", keep_literals=keep) for keep in (False, True))
    assert edges(graph) == edges(complete)
    assert graph.attributes is None
    assert "OldPaper" not in map(short, graph.all_entity_names)


def test_the_option_can_be_forced_on_and_off(tmp_path: Path) -> None:
    plain = read(tmp_path / "a.ttl", ontology=False)
    assert plain.kinds is None
    assert any(name.startswith("_:") for name in plain.all_entity_names)
    undeclared = ":x rdfs:subClassOf :y . :y rdfs:subClassOf :z ."
    assert read(tmp_path / "b.ttl", undeclared).kinds is None
    forced = read(tmp_path / "b.ttl", undeclared, ontology=True)
    assert forced.kinds is not None
    assert set(forced.kinds.tolist()) == {EntityKind.CLASS}


@pytest.mark.parametrize("suffix", ["nt", "rdf"])
def test_the_format_does_not_matter(tmp_path: Path, suffix: str) -> None:
    import pyoxigraph

    expected = read(tmp_path / "a.ttl")
    kinds = {"nt": pyoxigraph.RdfFormat.N_TRIPLES, "rdf": pyoxigraph.RdfFormat.RDF_XML}
    triples = [
        pyoxigraph.Triple(quad.subject, quad.predicate, quad.object)
        for quad in pyoxigraph.parse(path=str(tmp_path / "a.ttl"))
    ]
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(pyoxigraph.serialize(triples, format=kinds[suffix]) or b"")
    graph, _ = read_graph_file(path, keep_literals=True)
    assert edges(graph) == edges(expected)
    assert literals(graph) == literals(expected)
    assert np.array_equal(entity_kinds(graph), entity_kinds(expected))


def test_the_log_says_what_was_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        read(tmp_path / "a.ttl")
    (line,) = [line for line in caplog.messages if "ontology" in line]
    assert line.startswith("a.ttl is an ontology: 6 classes, 3 properties, 2 individuals; 15 edges")
    assert "(5 of class expressions), 13 literals; 1 deprecated terms" in line


def test_an_ontology_without_names_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read(
        tmp_path / "a.ttl", ":C_0001 a owl:Class . :C_0002 a owl:Class ; rdfs:subClassOf :C_0001 ."
    )
    assert "a.ttl: no term has a label, and no IRI contains words. Add rdfs:label" in caplog.text


def test_imports_are_read_or_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "people.owl").write_text(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns:owl="http://www.w3.org/2002/07/owl#"><owl:Class rdf:about="http://x.org/Human"/>'
        '<owl:Ontology rdf:about="http://x.org/people"><owl:imports rdf:resource="http://a.org/a"/>'
        "</owl:Ontology></rdf:RDF>"
    )
    text = "<http://a.org> owl:imports <http://x.org/people> , <http://x.org/places#> ."
    text += f"<http://a.org> owl:imports <http://x/.> , <http://x/{'n' * 300}> , <http://x/t.csv> ."
    (tmp_path / "t.csv").write_text("a,r,b")
    text += ":Author rdfs:subClassOf <http://x.org/Human> ."
    with caplog.at_level(logging.INFO):
        graph = read(tmp_path / "a.ttl", SOURCE + text)
    assert ("Author", "rdfs:subClassOf", "http://x.org/Human") in edges(graph)
    assert ("http://x.org/Human", "rdfs:label", "Human") in literals(graph)
    assert "a.ttl imports people.owl, which is read, too" in caplog.text
    assert "a.ttl imports http://x.org/places#, which is not read. Save it as places" in caplog.text
    assert caplog.text.count("which is not read") == 4
    (tmp_path / "a.nt").write_text("<a:a> <http://www.w3.org/2002/07/owl#imports> <x:people> .\n")
    with pytest.raises(DataError):  # it has no other triple
        read_graph_file(tmp_path / "a.nt", form=GraphForm(ontology=True))
    assert "which is not read, as all imports of N-Triples" in caplog.text


def test_shared_expressions_cannot_exhaust_memory(tmp_path: Path) -> None:
    members = " ".join(f":c{number}" for number in range(1500))
    text = f"_:all a owl:Class ; owl:unionOf ( {members} ) .\n"
    text += "".join(f":c{number} a owl:Class ; rdfs:subClassOf _:all .\n" for number in range(1500))
    with pytest.raises(Exception, match=r"a\.ttl: class expressions relate too many pairs"):
        read(tmp_path / "a.ttl", text)


def test_expressions_may_contain_themselves(tmp_path: Path) -> None:
    text = ":A a owl:Class ; rdfs:subClassOf _:x . _:x owl:unionOf _:l . "
    text += "_:l <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> :B , _:x . :B a owl:Class ."
    assert edges(read(tmp_path / "a.ttl", text)) == {("A", "rdfs:subClassOf", "B")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hasAuthor", "has Author"),
        ("Conference_Paper", "Conference Paper"),
        ("PCMember", "PC Member"),
        ("e-mail", "e-mail"),
        ("IgG receptor", "IgG receptor"),
        ("review2Phase", "review2 Phase"),
    ],
)
def test_words(name: str, expected: str) -> None:
    assert words(name) == expected


def test_kinds_are_saved_and_follow_their_entities(tmp_path: Path) -> None:
    source, target = write_ontologies(tmp_path)
    pair = read_own_files(source, target, keep_literals=True)
    assert pair.matched_kinds is not None
    names = np.array(pair.source.all_entity_names)
    assert set(names[pair.source.kinds == EntityKind.PROPERTY]) == {
        f"{A}{name}" for name in ("writesPaper", "hasAuthor", "email")
    }
    write_pair(tmp_path / "pair.npz", pair)
    again = read_pair(tmp_path / "pair.npz")
    assert again.checksum() == pair.checksum()
    assert np.array_equal(again.target.kinds, pair.target.kinds)
