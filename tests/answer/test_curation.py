"""Decisions of a person: their file, their authors, and how SSSOM states them."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from emea.answer.curation import (
    Author,
    Curated,
    author_of,
    read_decisions,
    write_decisions,
)
from emea.answer.sssom import sssom_lines
from emea.data.formats.link_file import read_link_file
from emea.errors import DataError

from .odd_alignments import alignment_of

ADA = "Ada Lovelace <0000-0002-1825-0097>"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ada Lovelace", Author("", "Ada Lovelace")),
        (ADA, Author("orcid:0000-0002-1825-0097", "Ada Lovelace")),
        (
            "https://orcid.org/0000-0002-1825-009X",
            Author("orcid:0000-0002-1825-009X", ""),
        ),
        ("Ada <https://a.org/ada>", Author("https://a.org/ada", "Ada")),
        ("", Author("", "")),
    ],
)
def test_an_author_is_a_name_or_an_identifier(text: str, found: Author) -> None:
    assert author_of(text) == found


def test_decisions_come_back_from_their_file(tmp_path: Path) -> None:
    odd = Curated("a\tb\\t\u2028", "c\nd", "rejected", ADA, "2022-12-07")
    decisions = [Curated("a", "b", "accepted"), odd]
    write_decisions(tmp_path, decisions)
    assert read_decisions(tmp_path) == decisions
    write_decisions(tmp_path, [])
    assert read_decisions(tmp_path) == []
    (tmp_path / "decisions.tsv").write_text("source\ttarget\na\tb\n")
    with pytest.raises(DataError, match=r"decisions.tsv is damaged"):
        read_decisions(tmp_path)


def test_sssom_names_who_decided_and_when(tmp_path: Path) -> None:
    alignment = replace(
        alignment_of(["a", "b", "c"], ["x", "y"], [1, -1, 0]),
        accepted={("a", "y"): Curated("a", "y", "accepted", ADA, "2023-01-02")},
        rejected=[Curated("b", "x", "rejected"), Curated("gone", "x", "rejected")],
    )
    text = "".join(f"{line}\n" for line in sssom_lines(alignment))
    head = [line[1:] for line in text.splitlines() if line.startswith("#")]
    assert yaml.safe_load("\n".join(head))["curie_map"]["orcid"] == "https://orcid.org/"
    table = [
        line for line in text.splitlines(keepends=True) if not line.startswith("#")
    ]
    rows = list(csv.DictReader(io.StringIO("".join(table)), delimiter="\t"))
    assert [row["mapping_justification"] for row in rows] == [
        "semapv:ManualMappingCuration",
        "semapv:StructuralMatching",
        "semapv:StructuralMatching",
        "semapv:ManualMappingCuration",
    ]
    first, last = rows[0], rows[-1]
    assert first["author_id"] == "orcid:0000-0002-1825-0097"
    assert (first["author_label"], first["mapping_date"]) == (
        "Ada Lovelace",
        "2023-01-02",
    )
    assert (first["predicate_modifier"], last["predicate_modifier"]) == ("", "Not")
    assert (last["subject_label"], last["object_label"]) == ("b", "x")
    assert rows[2]["mapping_date"] == "2022-12-07"
    # a rejected pair is no link for those who read the file
    (tmp_path / "a.sssom.tsv").write_text(text)
    links = read_link_file(tmp_path / "a.sssom.tsv")
    assert len(links.links) == 2
