"""What the triples of an ontology mean."""

import logging
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from emea.data.entity_kinds import OWL, RDF, RDFS, EntityKind, entity_kinds
from emea.data.formats import ontology
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.ontology import words
from emea.data.formats.settings import GraphForm
from emea.data.graph import KnowledgeGraph
from emea.data.sources.own_files import read_own_files
from emea.errors import DataError
from emea.record.pair_file import read_pair, write_pair

from ...ontologies import PREFIXES, SOURCE, write_ontologies

A = "http://a.org#"
OBO = "http://www.geneontology.org/formats/oboInOwl#"


def read(
    path: Path, text: str = SOURCE, keep_literals: bool = True, **form
) -> KnowledgeGraph:
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
        (
            short(graph.entity_name(entity)),
            short(found.attribute_names[name]),
            found.values[value],
        )
        for entity, name, value in found.triples.tolist()
    }


def test_terms_and_their_kinds(tmp_path: Path) -> None:
    graph = read(tmp_path / "a.ttl")
    kinds = entity_kinds(graph).tolist()
    named = {
        kind: {
            short(graph.entity_name(n)) for n, one in enumerate(kinds) if one == kind
        }
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
        *(
            (name, "rdfs:label", name)
            for name in ("Person", "Document", "Email", "Author")
        ),
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
    labels = dict(
        zip(map(short, graph.all_entity_names), graph.labels or (), strict=True)
    )
    assert labels["Chair"] == "session chair"
    assert labels["liu"] == ""


def test_without_literals_the_terms_stay_the_same(tmp_path: Path) -> None:
    graph, complete = (
        read(tmp_path / "a.ttl", keep_literals=keep) for keep in (False, True)
    )
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


def test_the_log_says_what_was_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        read(tmp_path / "a.ttl")
    (line,) = [line for line in caplog.messages if "ontology" in line]
    assert line.startswith(
        "a.ttl is an ontology: 6 classes, 3 properties, 2 individuals; 15 edges"
    )
    assert "(5 of class expressions), 13 literals; 1 deprecated terms" in line


def test_an_ontology_without_names_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read(
        tmp_path / "a.ttl",
        ":C_0001 a owl:Class . :C_0002 a owl:Class ; rdfs:subClassOf :C_0001 .",
    )
    assert (
        "a.ttl: no term has a label, and no IRI contains words. Add rdfs:label"
        in caplog.text
    )


def test_imports_are_read_or_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
    assert (
        "a.ttl imports http://x.org/places#, which is not read. Save it as places"
        in caplog.text
    )
    assert caplog.text.count("which is not read") == 4
    (tmp_path / "a.nt").write_text(
        "<a:a> <http://www.w3.org/2002/07/owl#imports> <x:people> .\n"
    )
    with pytest.raises(DataError):  # it has no other triple
        read_graph_file(tmp_path / "a.nt", form=GraphForm(ontology=True))
    assert "which is not read, as all imports of N-Triples" in caplog.text


def test_shared_expressions_cannot_exhaust_memory(tmp_path: Path) -> None:
    members = " ".join(f":c{number}" for number in range(1500))
    text = f"_:all a owl:Class ; owl:unionOf ( {members} ) .\n"
    text += "".join(
        f":c{number} a owl:Class ; rdfs:subClassOf _:all .\n" for number in range(1500)
    )
    with pytest.raises(
        Exception, match=r"a\.ttl: class expressions relate too many pairs"
    ):
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


OWN = """<http://a.org> a owl:Ontology .
:Wheel a owl:Class . :Steel a owl:Class . :hasPart a owl:ObjectProperty .
:madeOf a owl:ObjectProperty . :Car a owl:Class .
"""


@pytest.mark.parametrize(
    "text",
    [
        ":Old a owl:Class ; owl:deprecated true .",
        ':Old a owl:Class ; owl:deprecated "1"^^xsd:boolean .',
        ":Old a owl:Class , owl:DeprecatedClass .",
        ":Old a owl:ObjectProperty , owl:DeprecatedProperty .",
    ],
)
def test_deprecated_terms_are_left_out(text: str, tmp_path: Path) -> None:
    graph = read(tmp_path / "a.ttl", OWN + text + " :Car rdfs:subClassOf :Old .")
    names = {short(name) for name in graph.all_entity_names}
    assert {"Car", "Wheel"} <= names and "Old" not in names
    assert not edges(graph)
    kept = read(tmp_path / "b.ttl", OWN + ":Old a owl:Class ; owl:deprecated false .")
    assert "Old" in {short(name) for name in kept.all_entity_names}


def restriction(prop: str, filler: str) -> str:
    return (
        f"[ a owl:Restriction ; owl:onProperty :{prop} ; owl:someValuesFrom {filler} ]"
    )


def test_a_nested_restriction_has_the_outer_property(tmp_path: Path) -> None:
    inner = restriction("madeOf", ":Steel")
    text = f":Car rdfs:subClassOf {restriction('hasPart', inner)} ."
    assert edges(read(tmp_path / "a.ttl", OWN + text)) == {("Car", "hasPart", "Steel")}


def test_a_restriction_of_an_inverse_property_leads_nowhere(tmp_path: Path) -> None:
    inverse = "[ a owl:Restriction ; owl:onProperty [ owl:inverseOf :hasPart ] ;"
    text = f":Steel rdfs:subClassOf {inverse} owl:someValuesFrom :Car ] ."
    assert edges(read(tmp_path / "a.ttl", OWN + text)) == set()


def test_the_ends_of_a_property_have_no_edges_of_restrictions(tmp_path: Path) -> None:
    union = f"[ a owl:Class ; owl:unionOf ( :Car {restriction('madeOf', ':Steel')} ) ]"
    graph = read(tmp_path / "a.ttl", f"{OWN}:hasPart rdfs:domain {union} .")
    assert edges(graph) == {("hasPart", "rdfs:domain", "Car")}
    graph = read(tmp_path / "b.ttl", f"{OWN}:Wheel rdfs:subClassOf {union} .")
    assert edges(graph) == {
        ("Wheel", "rdfs:subClassOf", "Car"),
        ("Wheel", "madeOf", "Steel"),
    }


def test_expressions_do_not_name_deprecated_terms(tmp_path: Path) -> None:
    old = ":Old a owl:Class ; owl:deprecated true ."
    union = "[ a owl:Class ; owl:unionOf ( :Wheel :Old ) ]"
    graph = read(tmp_path / "a.ttl", f"{OWN}{old} :Car rdfs:subClassOf {union} .")
    assert edges(graph) == {("Car", "rdfs:subClassOf", "Wheel")}


def chained_unions(num_classes: int, length: int) -> str:
    """Classes below a chain of unions, none of which names a class."""
    union = f"<{OWL}unionOf>"
    lines = [f"<http://x/o> <{RDF}type> <{OWL}Ontology> ."]
    lines += [f"_:u{n} {union} _:u{n + 1} ." for n in range(length)]
    for n in range(num_classes):
        lines.append(f"<http://x/C{n}> <{RDF}type> <{OWL}Class> .")
        lines.append(f"<http://x/C{n}> <{RDFS}subClassOf> _:u0 .")
        lines.append(f"<http://x/C{n}> <{RDFS}subClassOf> <http://x/C0> .")
    return "\n".join(lines) + "\n"


def test_visited_nodes_are_limited_and_not_only_edges(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ontology, "LEAST_EXPANDED", 20_000)
    path = tmp_path / "a.nt"
    path.write_text(chained_unions(20, 200))
    assert len(read_graph_file(path)[0].triples) == 20
    path.write_text(chained_unions(200, 200))
    with pytest.raises(
        DataError, match="class expressions relate too many pairs of classes"
    ):
        read_graph_file(path)


def test_the_work_grows_with_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ten times the input takes at most twelve times the steps."""
    spent = Counter[int]()
    size = 0

    def counted(budget: ontology._Budget, num_steps: int) -> None:
        spent[size] += num_steps
        spend(budget, num_steps)

    spend = ontology._Budget.spend
    monkeypatch.setattr(ontology._Budget, "spend", counted)
    for size in (30, 300):
        path = tmp_path / f"{size}.nt"
        path.write_text(chained_unions(size, 20))
        read_graph_file(path)
    assert 0 < spent[300] <= 12 * spent[30]


def shared_notes(num_classes: int, num_literals: int) -> str:
    """Classes that share one annotation with many literals."""
    lines = [
        f"<http://x/o> <{RDF}type> <{OWL}Ontology> .",
        f"<http://x/syn> <{RDF}type> <{OWL}AnnotationProperty> .",
    ]
    for n in range(num_classes):
        lines.append(f"<http://x/C{n}> <{RDF}type> <{OWL}Class> .")
        lines.append(f"<http://x/C{n}> <http://x/syn> _:n .")
    for n in range(num_literals):
        lines.append(f'_:n <{RDFS}label> "label {n}" .')
    return "\n".join(lines) + "\n"


def test_literals_of_shared_notes_are_limited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ontology, "LEAST_EXPANDED", 5000)
    path = tmp_path / "a.nt"
    path.write_text(shared_notes(40, 100))
    graph = read_graph_file(path, keep_isolated=True, keep_literals=True)[0]
    assert graph.num_entities == 40
    path.write_text(shared_notes(400, 400))
    with pytest.raises(
        DataError, match="terms share annotations with too many literals"
    ):
        read_graph_file(path, keep_isolated=True, keep_literals=True)


@pytest.mark.slow
def test_shared_notes_take_time_in_proportion_to_the_file(tmp_path: Path) -> None:
    seconds = []
    for size in (400, 4000):
        path = tmp_path / f"{size}.nt"
        path.write_text(shared_notes(size, size))
        start = time.process_time()
        try:
            read_graph_file(path, keep_isolated=True, keep_literals=True)
        except DataError:  # more work than the budget allows
            assert size == 4000
        seconds.append(time.process_time() - start)
    assert seconds[1] <= 12 * seconds[0]


def test_an_ontology_of_deprecated_terms_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(
        f"<http://x/o> a <{OWL}Ontology> .\n"
        + "".join(
            f"<http://x/C{n}> a <{OWL}Class> ; <{OWL}deprecated> true .\n"
            for n in range(3)
        )
    )
    with pytest.raises(DataError, match="match: all of its 3 terms are deprecated"):
        read_graph_file(path, keep_literals=True)


def test_imports_of_one_file_give_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.ttl"
    imports = (
        f"<http://x/o> <{OWL}imports> <http://y{n}/other> .\n" for n in range(200)
    )
    classes = f"<http://x/A> a <{OWL}Class> ; <{RDFS}subClassOf> <http://x/B> .\n"
    path.write_text(
        "".join(imports)
        + classes
        + f"<http://x/B> a <{OWL}Class> .\n<http://x/o> a <{OWL}Ontology> ."
    )
    read_graph_file(path)
    warnings = [
        record.getMessage()
        for record in caplog.records
        if record.levelname == "WARNING"
    ]
    assert len(warnings) == 1
    assert (
        "imports http://y0/other and 199 more IRIs of this name, which is not read"
        in warnings[0]
    )
