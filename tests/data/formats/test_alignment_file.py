"""Links in OAEI's Alignment format."""

from itertools import pairwise
from pathlib import Path

import pytest

from emea.data.entity_kinds import ALIGNMENT
from emea.data.formats.link_file import read_link_file
from emea.data.sources.own_files import read_own_files
from emea.errors import DataError

CELL = """<map><Cell>
  <entity1 rdf:resource="http://a.org#{0}"/><entity2 rdf:resource="http://b.org#{1}"/>
  <measure rdf:datatype="xsd:float">{2}</measure><relation>{3}</relation>
</Cell></map>"""
CELLS = [
    *(("a", "x", 1.0, "="), ("b", "y", 0.4, "=")),
    *(("c", "z", 0.9, "&lt;"), ("d", "w", 0.9, "&gt;"), ("e", "v", 0.0, "=")),
    ("f", "u", 1.0, "fr.inrialpes.exmo.align.impl.rel.EquivRelation"),
    *(
        ("g", "t", 1.0, relation)
        for relation in ("!=", "&gt;=", "rel.NonEquivRelation")
    ),
]


def alignment(path: Path, cells: list[tuple], mark: str = "") -> Path:
    body = "\n".join(CELL.format(*cell) for cell in cells)
    path.write_text(
        f'<?xml version="1.0" encoding="utf-8"?>\n<rdf:RDF xmlns="{ALIGNMENT}{mark}" '
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<Alignment><xml>yes</xml>'
        f"<level>0</level><type>??</type><onto1>http://a.org</onto1>{body}</Alignment></rdf:RDF>"
    )
    return path


@pytest.mark.parametrize("mark", ["", "#"])
def test_equivalences_are_links_in_both_namespaces(tmp_path: Path, mark: str) -> None:
    listing = read_link_file(alignment(tmp_path / "a.rdf", CELLS, mark))
    expected = [
        (f"http://a.org#{a}", f"http://b.org#{b}") for a, b in ("ax", "by", "fu")
    ]
    assert listing.links == expected
    assert listing.num_other == 6
    assert listing.place(2) == "a.rdf, cell 6"


def test_the_same_cells_in_ntriples(tmp_path: Path) -> None:
    name = f"<{ALIGNMENT}#"
    (tmp_path / "a.nt").write_text(
        f"_:c {name}entity1> <http://a.org/a> .\n_:c {name}entity2> <http://b.org/b> .\n"
        f'_:c {name}relation> "=" .\n_:d {name}entity1> <http://a.org/a> .\n'
    )
    listing = read_link_file(tmp_path / "a.nt")
    assert listing.links == [("http://a.org/a", "http://b.org/b")]
    assert listing.num_other == 1


def test_either_entity_may_be_the_source_entity(tmp_path: Path) -> None:
    for side in ("a", "b"):
        text = f"<http://{side}.org#{{}}> <http://r> <http://{side}.org#{{}}> .\n"
        names = {"a": "abc", "b": "xyz"}[side]
        lines = [text.format(one, other) for one, other in pairwise(names)]
        (tmp_path / f"{side}.nt").write_text("".join(lines))
    files = [tmp_path / name for name in ("a.nt", "b.nt")]
    links = alignment(tmp_path / "links.rdf", [*CELLS[:2], ("no", "where", 1, "=")])
    for source, target in (files, files[::-1]):
        pair = read_own_files(source, target, links)
        assert len(pair.links) == 2
        assert pair.num_absent == 1
    unknown = alignment(tmp_path / "unknown.rdf", [("no", "where", 1, "=")])
    with pytest.raises(
        DataError, match=r"unknown\.rdf: none of its 1 links joins an entity of a"
    ):
        read_own_files(*files, unknown)


def cells(*measures: str, more: str = "") -> str:
    namespace = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
    lines = "".join(
        f"<map><Cell><entity1 rdf:resource='http://a/{n}'/><entity2 rdf:resource='http://b/{n}'/>"
        f"<relation>=</relation><measure>{measure}</measure></Cell></map>"
        for n, measure in enumerate(measures)
    )
    return (
        f"<rdf:RDF xmlns='{namespace}' xmlns:owl='http://www.w3.org/2002/07/owl#' "
        "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
        f"<Alignment>{lines}</Alignment>{more}</rdf:RDF>"
    )


def test_measures_are_numbers_from_0_to_1(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.rdf"
    path.write_text(cells("1.0", "-1", "NaN", "x", "0", "0.0", ".5", "2", "inf"))
    listing = read_link_file(path)
    assert [one for one, _ in listing.links] == ["http://a/0", "http://a/6"]
    assert listing.num_other == 7
    expected = (
        "a.rdf: 5 cells are left out, because their measure is not a number from 0 to 1. The first "
        "is cell 2, with the measure '-1'."
    )
    assert [record.getMessage() for record in caplog.records] == [expected]


def test_triples_next_to_cells_are_links(tmp_path: Path) -> None:
    more = (
        "<rdf:Description rdf:about='http://a/x'><owl:sameAs rdf:resource='http://b/x'/>"
        "</rdf:Description>"
    )
    (tmp_path / "a.rdf").write_text(cells("1", more=more))
    links = read_link_file(tmp_path / "a.rdf").links
    assert sorted(links) == [("http://a/0", "http://b/0"), ("http://a/x", "http://b/x")]


def test_confidences_are_numbers_from_0_to_1(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = "".join(
        f"a{n}\tskos:exactMatch\tb{n}\t{value}\n"
        for n, value in enumerate(["1", "0", "x", "", "-1"])
    )
    path = tmp_path / "a.sssom.tsv"
    path.write_text("subject_id\tpredicate_id\tobject_id\tconfidence\n" + rows)
    listing = read_link_file(path)
    assert list(listing.links) == [("a0", "b0"), ("a3", "b3")]
    assert listing.num_other == 3
    assert (
        "2 mappings are left out, because their confidence is not a number"
        in caplog.text
    )
