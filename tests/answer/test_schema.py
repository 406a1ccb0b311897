"""Files of the mapping of relations and classes; RDF and SSSOM are read by their libraries."""

import csv
import io
from pathlib import Path

import pyoxigraph
import pytest

from emea.answer.exporting import write_formats
from emea.answer.schema import (
    SCHEMA_FORMATS,
    Mapping,
    Schema,
    TermMatch,
    class_lines,
    relation_lines,
    schema_cells,
    schema_sssom_lines,
    schema_triples,
)
from emea.data.entity_kinds import ALIGNMENT, OWL, RDFS

from .odd_alignments import ORIGIN

A, B = "http://a.org/", "http://b.org/"


def match(
    source: str, target: str, mapping: Mapping, inverse: bool = False
) -> TermMatch:
    example = (f"{A}x", source, f"{A}y"), (f"{B}x", target, f"{B}\ty")
    return TermMatch(source, target, inverse, mapping, 0.75, 0.5, 3, *example)


SCHEMA = Schema(
    "zh",
    [
        match(f"{A}capital", f"{B}Hauptstadt", "equivalent"),
        match(f"{A}capital", f"{B}hauptstadtVon", "equivalent", inverse=True),
        match(f"{A}mother", f"{B}Elternteil", "narrower"),
        match(f"{A}place", f"{B}Stadt", "broader"),
        match(f"{A}child", f"{B}Elternteil", "narrower", inverse=True),
        match(f"{A}parentOf", f"{B}Elternteil", "broader", inverse=True),
        match(f"{A}knows", f"{B}kennt", ""),
        match(f"{RDFS}seeAlso", f"{RDFS}seeAlso", "equivalent"),
        match("7", "7", "equivalent"),
    ],
    [
        match(f"{A}City", f"{B}Stadt", "equivalent"),
        match(f"{A}Village", f"{B}Ort", "narrower"),
        match("_:x", f"{B}Ort", "equivalent"),
    ],
)


def store_of(schema: Schema) -> pyoxigraph.Store:
    store = pyoxigraph.Store()
    text = "\n".join(schema_triples(schema))
    store.load(io.BytesIO(text.encode()), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return store


def test_equivalences_and_inclusions_are_stated_in_owl() -> None:
    lines = list(schema_triples(SCHEMA))
    assert lines[:4] == [
        f"<{A}capital> <{OWL}equivalentProperty> <{B}Hauptstadt> .",
        f"<{A}capital> <{OWL}inverseOf> <{B}hauptstadtVon> .",
        f"<{A}mother> <{RDFS}subPropertyOf> <{B}Elternteil> .",
        f"<{B}Stadt> <{RDFS}subPropertyOf> <{A}place> .",
    ]
    assert lines[-3:] == [
        f"<urn:emea:zh:source-relation:7> <{OWL}equivalentProperty> "
        "<urn:emea:zh:target-relation:7> .",
        f"<{A}City> <{OWL}equivalentClass> <{B}Stadt> .",
        f"<{A}Village> <{RDFS}subClassOf> <{B}Ort> .",
    ]
    assert not any(
        "kennt" in line or "seeAlso" in line or "_:x" in line for line in lines
    )


def test_an_inclusion_in_an_inverse_relation_has_a_node_for_the_inverse() -> None:
    query = f"SELECT ?lower WHERE {{ ?lower <{RDFS}subPropertyOf> [ <{OWL}inverseOf> ?upper ] }}"
    found = [str(row["lower"]) for row in store_of(SCHEMA).query(query)]  # type: ignore[union-attr, index]
    assert found == [f"<{A}child>"]
    query = f"SELECT ?upper WHERE {{ [ <{OWL}inverseOf> ?r ] <{RDFS}subPropertyOf> ?upper }}"
    found = [str(row["upper"]) for row in store_of(SCHEMA).query(query)]  # type: ignore[union-attr, index]
    assert found == [f"<{A}parentOf>"]


def test_tables_list_every_pair_with_its_example() -> None:
    rows = list(csv.DictReader(relation_lines(SCHEMA), delimiter="\t"))
    assert len(rows) == len(SCHEMA.relations)
    assert rows[1] == {
        "source": f"{A}capital",
        "target": f"{B}hauptstadtVon",
        "direction": "inverse",
        "mapping": "equivalent",
        "source_in_target": "0.750000",
        "target_in_source": "0.500000",
        "evidence": "3",
        "source_head": f"{A}x",
        "source_tail": f"{A}y",
        "target_head": f"{B}x",
        "target_tail": f"{B}\\ty",
    }
    classes = list(csv.DictReader(class_lines(SCHEMA), delimiter="\t"))
    assert [row["source"] for row in classes] == [f"{A}City", f"{A}Village", "_:x"]
    assert classes[0]["target_instance"] == f"{B}x"


def test_sssom_py_keeps_every_row(tmp_path: Path) -> None:
    parsers = pytest.importorskip("sssom.parsers")
    path = tmp_path / "schema.sssom.tsv"
    lines = list(schema_sssom_lines(SCHEMA, ORIGIN))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    frame = parsers.parse_sssom_table(str(path)).df
    rows = zip(frame["predicate_id"], frame["confidence"], strict=True)
    assert sorted(rows) == [
        *(("owl:equivalentClass", 0.5), ("owl:equivalentProperty", 0.5)),
        *(("owl:equivalentProperty", 0.5), ("owl:inverseOf", 0.5)),
        *(
            ("rdfs:subClassOf", 0.75),
            ("rdfs:subPropertyOf", 0.75),
            ("skos:narrowMatch", 0.5),
        ),
    ]
    assert set(frame["mapping_justification"]) == {"semapv:InstanceBasedMatching"}
    assert (
        f"3 matched triples, such as {A}x {A}capital {A}y = {B}x {B}Hauptstadt {B} y"
        in frame["comment"].tolist()
    )


def test_formats_without_a_schema_are_ignored(tmp_path: Path) -> None:
    files = write_formats(tmp_path, SCHEMA_FORMATS, ["jsonl", "nt"], SCHEMA, ORIGIN)
    assert [path.name for path in files] == [
        "relations.tsv",
        "classes.tsv",
        "schema.nt",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in files}


def test_an_empty_mapping_has_headers_only(tmp_path: Path) -> None:
    write_formats(
        tmp_path, SCHEMA_FORMATS, ["nt", "sssom"], Schema("zh", [], []), ORIGIN
    )
    assert (tmp_path / "relations.tsv").read_text().count("\n") == 1
    assert (tmp_path / "schema.nt").read_text() == ""


def test_inclusions_in_the_alignment_format() -> None:
    text = "\n".join(schema_cells(SCHEMA)).encode()
    parts: dict[str, list[str]] = {}
    for quad in pyoxigraph.parse(text, pyoxigraph.RdfFormat.RDF_XML):
        name = quad.predicate.value.removeprefix(f"{ALIGNMENT}#")
        parts.setdefault(name, []).append(quad.object.value)
    assert parts["relation"] == ["=", "<", ">", "=", "=", "<"]
    assert parts["entity1"][:3] == [f"{A}capital", f"{A}mother", f"{A}place"]
    assert parts["measure"][:3] == ["0.500000", "0.750000", "0.500000"]
