"""The files of an alignment, in all formats."""

import json
import os
import pkgutil
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest
from hypothesis import given

from emea.answer.alignment import Alignment
from emea.answer.exporting import (
    FORMATS,
    cell,
    json_lines,
    matched_lines,
    unmatched_lines,
    write_formats,
)
from emea.answer.rdf import owl_triples, rdf_cells
from emea.answer.settings import EXPORTS
from emea.data.arrays import NO_MATCH
from emea.data.entity_kinds import ALIGNMENT
from emea.data.formats.link_file import read_link_file
from emea.data.links import EntityFinder, LinkRegister, LinkResolver
from emea.data.names import Prefixes, entity_iri, title_of
from emea.record.run_folder import ANSWER_FILES

from .odd_alignments import alignment_of, alignments, answer, named_graph

FILES = {file for files in FORMATS.values() for file in files}


def test_every_file_has_a_function_and_belongs_to_one_format() -> None:
    written = [{**one.files, **one.schema_files} for one in EXPORTS]
    assert all(
        callable(pkgutil.resolve_name(one)) for n in written for one in n.values()
    )
    files = [file for names in written for file in names]
    assert len(files) == len(set(files)) and set(files) == set(ANSWER_FILES)


@pytest.mark.parametrize("name", FORMATS)
def test_requested_formats_are_written_in_addition_to_tsv(
    name: str, tmp_path: Path
) -> None:
    written = write_formats(
        tmp_path / "new", FORMATS, [name], alignment_of(["a"], ["x"], [0])
    )
    assert set(os.listdir(tmp_path / "new")) == {*FORMATS["tsv"], *FORMATS[name]}
    assert {path.name for path in written} == set(os.listdir(tmp_path / "new"))
    assert all(
        path.read_bytes().endswith(b"\n") for path in written if path.suffix != ".nt"
    )


@pytest.mark.parametrize("name", FORMATS)
def test_a_failing_export_leaves_the_old_files(name: str, tmp_path: Path) -> None:
    write_formats(tmp_path, FORMATS, list(FORMATS), alignment_of(["a"], ["x"], [0]))
    before = {file: (tmp_path / file).read_bytes() for file in FILES}
    broken = alignment_of(["a", "b"], ["x"], [0, 1])  # there is no target 1
    with pytest.raises(IndexError):
        write_formats(tmp_path, FORMATS, [name], broken)
    assert {file: (tmp_path / file).read_bytes() for file in FILES} == before
    assert set(os.listdir(tmp_path)) == FILES


def read_again(
    path: Path, source: list[str], target: list[str]
) -> tuple[list[list[int]], int]:
    """Return the links of a file between entities with these names, and how many are unknown."""
    resolver = LinkResolver(
        EntityFinder(named_graph(source), "source", "a"),
        EntityFinder(named_graph(target), "target", "b"),
        Prefixes(),
        "stop",
        LinkRegister(),
    )
    links, reading = resolver.resolve(read_link_file(path))
    return links.tolist(), reading.num_unknown


@pytest.mark.parametrize("vocabulary", ["owl", "skos"])
@pytest.mark.parametrize(
    "file", ["alignment.sssom.tsv", "alignment.nt", "alignment.rdf"]
)
def test_an_alignment_can_be_the_links_of_another_run(
    file: str, vocabulary: str, tmp_path: Path
) -> None:
    # in DBP15K, names contain %22 and %3F next to characters outside ASCII
    source = [
        "http://a.org/x y",
        "Batman: Year One",
        "http://a.org/柏%3F",
        "alone",
        "100%",
    ]
    target = ["Berlin", "http://b.org/柏:林", "Batman", "http://b.org/%22é%"]
    alignment = alignment_of(source, target, [3, 2, 0, NO_MATCH, 1])
    alignment = replace(alignment, vocabulary=vocabulary)
    write_formats(tmp_path, FORMATS, ["nt", "sssom", "alignment"], alignment)
    links, num_unknown = read_again(tmp_path / file, source, target)
    assert sorted(links) == [[0, 3], [1, 2], [2, 0], [4, 1]]
    assert num_unknown == 0


def test_json_lines() -> None:
    given_one, unmatched, _ = map(
        json.loads, json_lines(alignment_of(["a", "b", "c"], ["x", "y"], [1, -1, 0]))
    )
    assert given_one == {
        "source": "a",
        "target": "y",
        "source_label": "a",
        "target_label": "y",
        "probability": 1.0,
        "given": True,
        "candidates": [
            {"target": "y", "probability": 0.25},
            {"target": "x", "probability": 0.125},
        ],
    }
    assert unmatched["target"] is unmatched["probability"] is None
    assert unmatched["candidates"][0] == {"target": "x", "probability": 0.25}


def test_candidates_whose_probability_rounds_to_zero_are_left_out() -> None:
    alignment = alignment_of(["a", "b"], ["x", "y"], [1, 1])
    probs = np.array([[0.25, 4e-7], [1e-6, 0.0]])
    first, second = map(
        json.loads, json_lines(replace(alignment, candidate_probs=probs))
    )
    assert first["candidates"] == [{"target": "y", "probability": 0.25}]
    assert second["candidates"] == [{"target": "y", "probability": 1e-6}]


@given(alignments())
def test_every_name_comes_back(alignment: Alignment) -> None:
    lines = list(json_lines(alignment))
    assert not any("\n" in line for line in lines)
    assert {
        (row := json.loads(line))["source"]: row["target"] for line in lines
    } == answer(alignment)


IRI = r"<([A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*)>"
TRIPLE = re.compile(rf"{IRI} {IRI} {IRI} \.")
SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


@given(alignments())
def test_every_line_is_a_triple_of_the_answer(alignment: Alignment) -> None:
    matches = [TRIPLE.fullmatch(line) for line in owl_triples(alignment)]
    found = [match.groups() for match in matches if match]
    assert len(found) == len(matches)
    name = alignment.pair.name
    assert found == [
        (
            entity_iri(source, name, "source"),
            SAME_AS,
            entity_iri(target, name, "target"),
        )
        for source, target in answer(alignment).items()
        if target is not None
        and not source.startswith("_:")
        and not target.startswith("_:")
    ]


def test_improbable_matches_are_close_matches() -> None:
    alignment = alignment_of(
        ["a", "b", "c"], ["x", "y", "z"], [0, 1, 2]
    )  # 1, 1/2 and 1/3
    alignment = replace(alignment, vocabulary="skos", close_below=0.5)
    skos = "http://www.w3.org/2004/02/skos/core#"
    predicates = [line.split(" ")[1] for line in owl_triples(alignment)]
    assert predicates == [
        f"<{skos}exactMatch>",
        f"<{skos}exactMatch>",
        f"<{skos}closeMatch>",
    ]


def test_alignment_rdf_has_a_measure_for_each_match() -> None:
    alignment = alignment_of(
        ["http://a.org/x&y", "b", "_:c"], ["http://b.org/x"], [0, 0, 0]
    )
    text = "\n".join(rdf_cells(alignment))
    quads = pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.RDF_XML)
    found: dict[str, list[str]] = {}
    for quad in quads:
        part = quad.predicate.value.removeprefix(f"{ALIGNMENT}#")
        found.setdefault(part, []).append(quad.object.value)
    assert found["entity1"] == ["http://a.org/x&y", "urn:emea:a%20pair:source:b"]
    assert found["entity2"] == ["http://b.org/x"] * 2
    assert found["measure"] == ["1.000000", "0.500000"]
    assert found["relation"] == ["=", "="]


@given(alignments())
def test_lines_are_those_of_a_loop_over_rows(alignment: Alignment) -> None:
    alignment.candidate_probs[::2] = 0
    matched, unmatched = [], []
    for row in alignment.rows():
        candidate, prob = row.candidates[0] if row.candidates else ("", 0.0)
        if row.target is None:
            labels = row.source_label, title_of(candidate) if candidate else ""
            cells = row.source, candidate, f"{prob:.6f}", *labels
            unmatched.append("\t".join(map(cell, cells)))
        else:
            labels = title_of(row.source), title_of(row.target)
            cells = row.source, row.target, f"{row.prob:.6f}", *labels
            matched.append("\t".join(map(cell, cells)))
    assert list(matched_lines(alignment))[1:] == matched
    assert list(unmatched_lines(alignment))[1:] == unmatched


def test_an_alignment_without_columns_of_candidates() -> None:
    alignment = alignment_of(["a", "b"], ["x"], [-1, 0])
    alignment = replace(
        alignment,
        candidates=alignment.candidates[:, :0],
        candidate_probs=alignment.candidate_probs[:, :0],
    )
    assert list(unmatched_lines(alignment))[1:] == ["a\t\t0.000000\ta\t"]
    assert list(matched_lines(alignment))[1:] == ["b\tx\t0.500000\tb\tx"]


def test_an_entity_without_a_label_is_called_by_its_name_in_words() -> None:
    names = ["http://a.org/New_York"], ["http://b.org/Neu_York"]
    alignment = alignment_of(*names, [0])
    (row,) = list(matched_lines(alignment))[1:]
    assert row.split("\t")[3:] == ["New York", "Neu York"]
    (given_one,) = map(json.loads, json_lines(alignment))
    assert given_one["source_label"] == "New York"
    assert given_one["target_label"] == "Neu York"


def test_labels_are_the_last_columns() -> None:
    alignment = alignment_of(["a", "b"], ["x"], [-1, 0])
    source = replace(alignment.pair.source, labels=["A\tA", "B"])
    pair = replace(
        alignment.pair,
        source=source,
        target=replace(alignment.pair.target, labels=["X"]),
    )
    alignment = replace(alignment, pair=pair, witnesses=np.array([0, 3]))
    assert list(matched_lines(alignment)) == [
        "source\ttarget\tprobability\twitnesses\tsource_label\ttarget_label",
        "b\tx\t0.500000\t3\tB\tX",
    ]
    assert list(unmatched_lines(alignment)) == [
        "source\tcandidate\tprobability\tsource_label\tcandidate_label",
        "a\tx\t0.250000\tA\\tA\tX",
    ]
