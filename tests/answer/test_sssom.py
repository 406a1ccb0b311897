"""SSSOM files, read back by csv and yaml."""

import csv
import datetime
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given

from emea.answer.alignment import Alignment
from emea.answer.sssom import CompactURIs, sssom_lines
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import LiteralMatches
from emea.data.names import entity_iri, entity_uri, title_of

from .odd_alignments import alignment_of, alignments, answer

BUILT_IN = {"owl", "semapv", "sssom"}


def parsed(alignment: Alignment) -> tuple[dict[str, Any], list[dict[str, str]]]:
    text = "".join(f"{line}\n" for line in sssom_lines(alignment))
    num_header = sum(1 for line in sssom_lines(alignment) if line.startswith("#"))
    parts = text.split("\n", num_header)
    header = yaml.safe_load("\n".join(line[1:] for line in parts[:-1]))
    table = io.StringIO(parts[-1], newline="")
    return header, list(csv.DictReader(table, delimiter="\t", strict=True))


def expanded(curie: str, header: dict[str, Any]) -> str:
    """Expand a CURIE; a URI in full has no prefix that the header declares."""
    prefix, _, rest = curie.partition(":")
    return str(header["curie_map"].get(prefix, f"{prefix}:")) + rest


def uri(name: str, pair: str, side: str) -> str:
    return entity_uri(entity_iri(name, pair, side))


def test_the_header_says_what_the_standard_asks_for() -> None:
    header, _ = parsed(alignment_of(["http://a.org/x", "b"], ["y"], [0, -1], "zh"))
    assert header["curie_map"] == {
        "source_emea": "urn:emea:zh:source:",
        "source_http": "http://a.org/",
        "target_emea": "urn:emea:zh:target:",
        "urn": "urn:",  # of the sources, without which sssom-py reports a missing prefix
    }
    assert header["mapping_set_id"].startswith("urn:uuid:")
    assert header["license"] == "https://w3id.org/sssom/license/unspecified"
    assert (header["mapping_tool"], header["mapping_tool_version"]) == (
        "emea",
        "0.1.0+abc",
    )
    assert header["mapping_date"] == datetime.date(2022, 12, 7)
    assert header["object_source"] == "urn:emea:zh:target"
    assert "a run: 5%" in header["mapping_set_description"]


def test_the_confidence_of_the_set_is_the_mean_of_its_mappings() -> None:
    header, rows = parsed(alignment_of(["a", "b", "c", "_:d"], ["x"], [0, -1, 0, 0]))
    shown = [float(row["confidence"]) for row in rows if row["confidence"]]
    assert shown == pytest.approx([1, 1 / 3], abs=1e-6)
    assert header["mapping_set_confidence"] == pytest.approx(2 / 3, abs=1e-6)
    nothing, _ = parsed(alignment_of(["a"], ["x"], [-1]))
    assert "mapping_set_confidence" not in nothing


def test_matched_given_and_unmatched_entities() -> None:
    _, rows = parsed(alignment_of(["a", "b", "c"], ["x", "y"], [1, -1, 0], "zh"))
    assert list(rows[0].values()) == [
        *("source_emea:a", "a", "owl named individual", "owl:sameAs"),
        *(
            "target_emea:y",
            "y",
            "owl named individual",
            "semapv:UnspecifiedMatching",
            "1:1",
            "1",
        ),
    ]
    assert rows[1]["object_id"] == "sssom:NoTermFound"
    assert rows[1]["object_label"] == rows[1]["confidence"] == ""
    assert rows[2]["mapping_justification"] == "semapv:StructuralMatching"
    assert rows[2]["confidence"] == "0.333333"


@given(alignments())
def test_every_name_comes_back_and_every_prefix_is_declared(
    alignment: Alignment,
) -> None:
    header, rows = parsed(alignment)
    expected, pair = answer(alignment), alignment.pair.name
    expected = {
        source: target
        for source, target in expected.items()
        if not source.startswith("_:") and not (target or "").startswith("_:")
    }
    assert [row["subject_label"] for row in rows] == list(map(title_of, expected))
    for row, (source, target) in zip(rows, expected.items(), strict=True):
        assert expanded(row["subject_id"], header) == uri(source, pair, "source")
        assert (row["object_id"] == "sssom:NoTermFound") is (target is None)
        if target is not None:
            assert row["object_label"] == title_of(target)
            assert expanded(row["object_id"], header) == uri(target, pair, "target")
        for cell in (row["predicate_id"], row["mapping_justification"]):
            assert cell.partition(":")[0] in BUILT_IN


def test_one_namespace_is_the_prefix() -> None:
    uris = [
        "http://d.org/resource/Berlin",
        "http://d.org/resource/Bern",
        "urn:emea:zh:source:1",
    ]
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
    compact = CompactURIs(
        ["http://a.org/x", "http://b.org/y#z", "urn:isbn:1"], "target"
    )
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
    target = CompactURIs(
        ["http://a.org/z", "urn:isbn:1"], "target", known=source.prefixes
    )
    assert target.prefixes == {
        "source_http": "http://a.org/",
        "target_urn": "urn:isbn:",
    }
    assert target("http://a.org/z") == "source_http:z"


def test_a_colon_in_the_first_segment_keeps_the_uri_in_full() -> None:
    uris = ["http://a.org/Batman:_Year_One", "http://a.org/x/a:b", "http://a.org/y"]
    compact = CompactURIs(uris, "source")
    assert [compact(uri) for uri in uris] == [
        uris[0],
        "source_http:x/a:b",
        "source_http:y",
    ]


def test_characters_outside_ascii_are_percent_encoded() -> None:
    assert entity_uri("http://a.org/柏林%20x") == "http://a.org/%E6%9F%8F%E6%9E%97%20x"


def translated_alignment() -> Alignment:
    """An alignment of three entities, of which a translation supports the second match."""
    found = alignment_of(["a", "b", "c"], ["x", "y", "z"], [0, 1, 2], "zh")
    nothing = np.zeros((0, 2), dtype=np.int64)

    def with_values(graph: KnowledgeGraph, values: list[str]) -> KnowledgeGraph:
        # each entity has one literal, and one node for its translation
        triples = [
            (one, 1 + node // 3, 3 + node) for node in range(6) for one in [node % 3]
        ]
        names = [*graph.all_entity_names, *(f'"{value}"' for value in values)]
        return KnowledgeGraph(
            np.array(triples, dtype=np.int64),
            9,
            3,
            names,
            ["r", "label", "translation"],
        )

    words = ["苹果", "长江", "桥"]
    english = ["apple", "yangtze", "bridge"]
    shown = ["苹果 → apple", "长江 → long river", "桥 → bridge"]
    literals = LiteralMatches(
        with_values(found.pair.source, [*words, *shown]),
        with_values(found.pair.target, [*english, *english]),
        # the translation of b matches that of y; that of c matches another entity than its match
        np.array([[7, 7], [8, 6]]),
        np.ones(2),
        nothing,
        np.ones(0),
    )
    return replace(found, pair=replace(found.pair, literals=literals))


def test_a_translation_is_named_with_the_preprocessing_of_texts() -> None:
    _, rows = parsed(translated_alignment())
    assert [row["mapping_justification"] for row in rows] == [
        "semapv:UnspecifiedMatching",
        "semapv:LexicalMatching",
        "semapv:StructuralMatching",
    ]
    assert [row["comment"] for row in rows] == ["", "translated: 长江 → long river", ""]
    for side in ("subject", "object"):
        assert [row[f"{side}_preprocessing"] for row in rows] == [
            "",
            "semapv:CaseNormalization|semapv:BlankNormalisation|semapv:PunctuationElemination",
            "",
        ]


def test_without_translations_there_are_no_columns_for_them() -> None:
    _, rows = parsed(alignment_of(["a"], ["x"], [0]))
    assert not {"comment", "subject_preprocessing"} & set(rows[0])
