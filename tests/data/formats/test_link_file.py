"""Links from tables and owl:sameAs triples."""

import csv
import io
from pathlib import Path

import pytest

from emea.data.formats.input_file import BadLines
from emea.data.formats.link_file import read_link_file, read_sssom, sssom_format
from emea.errors import DataError

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "links", "places"),
    [
        ("a.tsv", "x\ty\nz\tw\n", [("x", "y"), ("z", "w")], [1, 2]),
        ("a.tsv", "source\ttarget\tprobability\nx\ty\t0.9\n", [("x", "y")], [2]),
        ("a.csv", "target,source\ny,x\n", [("x", "y")], [2]),
        ("a.sssom.tsv", "#x: 1\nsubject_id\tobject_id\nx\ty\n", [("x", "y")], [3]),
    ],
)
def test_tables(
    tmp_path: Path,
    name: str,
    text: str,
    links: list[tuple[str, str]],
    places: list[int],
) -> None:
    listing = read_link_file(write(tmp_path / name, text))
    assert (list(listing.links), list(listing.places)) == (links, places)
    assert not listing.symmetric


def test_same_as_in_ntriples(tmp_path: Path) -> None:
    text = f'<http://a/a> <http://a/r> "x" .\n<http://a/a> {SAME} <http://b/b> .\n'
    text += f'<http://a/a> {SAME} "no entity" .\n<http://a/r> <http://a/r> {SAME} .\n'
    listing = read_link_file(write(tmp_path / "a.nt", text))
    assert listing.links == [("http://a/a", "http://b/b")]
    assert listing.place(0) == "a.nt, line 2"
    assert listing.symmetric


def test_same_as_in_turtle(tmp_path: Path) -> None:
    text = f"<http://a/a> <http://a/r> 1 ; {SAME} <http://b/b> ."
    listing = read_link_file(write(tmp_path / "a.ttl", text))
    assert listing.links == [("http://a/a", "http://b/b")]
    assert listing.place(0) == "a.ttl, triple 2"


@pytest.mark.parametrize("suffix", ["nt", "ttl"])
@pytest.mark.parametrize("kind", ["Class", "Property"])
def test_equivalent_classes_and_properties(
    tmp_path: Path, kind: str, suffix: str
) -> None:
    # an exported alignment relates classes and properties in this way
    relation = SAME.replace("sameAs", f"equivalent{kind}")
    text = f"<http://a/a> {relation} <http://b/b> .\n<http://a/a> {SAME} _:x .\n"
    text += f"<http://a/a> {relation} _:expression .\n"
    listing = read_link_file(write(tmp_path / f"a.{suffix}", text))
    assert list(listing.links)[:1] == [("http://a/a", "http://b/b")]
    assert len(listing.links) == 2 and listing.symmetric


def test_a_bad_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "x\ty\nz\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 2: expected 2 columns, found 1"):
        read_link_file(path)
    assert read_link_file(path, on_error="skip").num_bad == 1


TABLE = """#mapping_set_id: https://example.org/set
#curie_map:
#  HP: "http://purl.obolibrary.org/obo/HP_"
#  MP: http://purl.obolibrary.org/obo/MP_
subject_id\tpredicate_id\tpredicate_modifier\tobject_id\tmapping_justification
HP:1\tskos:exactMatch\t\tMP:1\tsemapv:ManualMappingCuration
HP:2\tskos:broadMatch\t\tMP:2\tsemapv:ManualMappingCuration
HP:3\tskos:exactMatch\tNot\tMP:3\tsemapv:ManualMappingCuration
HP:4\towl:equivalentClass\t\tMP:4
HP:5\tskos:exactMatch\t\tsssom:NoTermFound
"""


def test_equivalences_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", TABLE)
    assert sssom_format(path, "tsv") == "tsv"
    listing = read_sssom(path, "tsv", BadLines("a.tsv"))
    assert listing.links == [("HP:1", "MP:1"), ("HP:4", "MP:4")]
    assert list(listing.places) == [6, 9]
    assert listing.prefixes.namespaces["HP"] == "http://purl.obolibrary.org/obo/HP_"
    assert listing.num_other == 3


def test_without_predicates_every_row_is_a_link(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "object_id\tsubject_id\nb\ta\n")
    assert read_sssom(path, "tsv", BadLines("a.tsv")).links == [("a", "b")]


def test_a_row_that_lacks_an_end(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "subject_id\tobject_id\na\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 2: object_id is empty"):
        read_sssom(path, "tsv", BadLines("a.tsv"))


def test_a_header_that_is_not_yaml(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "# a: [\nsubject_id\tobject_id\na\tb\n")
    with pytest.raises(
        DataError, match=r"a\.tsv: the commented header is not valid YAML"
    ):
        read_sssom(path, "tsv", BadLines("a.tsv"))


def test_a_header_that_is_nested_too_deeply(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tsv", f"# a: {'[' * 1000}\nsubject_id\tobject_id\na\tb\n"
    )
    with pytest.raises(
        DataError, match=r"a\.tsv: the commented header is not valid YAML: maximum"
    ):
        read_sssom(path, "tsv", BadLines("a.tsv"))


def test_prefixes_are_always_text(tmp_path: Path) -> None:
    lines = [
        "#curie_map:",
        "#  NO: http://no/",
        "#  1: http://one/",
        "#  x:",
        "#  y: [http://y/]",
    ]
    lines += [
        "#mapping_date: 2024-02-30",
        "#version: !!int ''",
        "subject_id\tobject_id",
        "a\tb",
    ]
    path = write(tmp_path / "a.tsv", "\n".join(lines))
    prefixes = read_sssom(path, "tsv", BadLines("a.tsv")).prefixes
    assert prefixes.namespaces == {"NO": "http://no/", "1": "http://one/"}


@pytest.mark.parametrize("text", ["", "a\tb\n", "#only\n", "subject_id\tx\n"])
def test_other_tables(tmp_path: Path, text: str) -> None:
    assert sssom_format(write(tmp_path / "a.tsv", text), "tsv") is None


def saved_by_a_table_program(table: str) -> str:
    """Every line with as many cells, and quotes where a cell holds one."""
    rows = [line.split("\t") for line in table.splitlines()]
    filled = [row + [""] * (max(map(len, rows)) - len(row)) for row in rows]
    text = io.StringIO()
    csv.writer(text).writerows(filled)
    return text.getvalue()


COMMAS = {
    "plain": TABLE.replace("\t", ","),
    "saved": saved_by_a_table_program(TABLE),
    "odd comments": '#x: ["a","b"]\n#y: \'z"\'\n' + TABLE.replace("\t", ","),
    "quoted header": TABLE.replace("\t", ",").replace("subject_id", '"subject_id"'),
}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("kind", COMMAS)
def test_with_commas_under_any_file_name(kind: str, name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, COMMAS[kind])
    assert sssom_format(path, path.suffix[1:]) == "csv"
    listing = read_link_file(path)
    assert listing.links == [("HP:1", "MP:1"), ("HP:4", "MP:4")]
    lines = COMMAS[kind].splitlines()
    assert [lines[place - 1][:4] for place in listing.places] == ["HP:1", "HP:4"]
    assert listing.prefixes.namespaces == {
        "HP": "http://purl.obolibrary.org/obo/HP_",
        "MP": "http://purl.obolibrary.org/obo/MP_",
    }
    assert listing.num_other == 3


def test_with_tabs_in_a_file_that_says_commas(tmp_path: Path) -> None:
    listing = read_link_file(write(tmp_path / "a.csv", TABLE))
    assert listing.links == [("HP:1", "MP:1"), ("HP:4", "MP:4")]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_header_with_an_open_quote(tmp_path: Path, on_error: str) -> None:
    path = write(tmp_path / "a.csv", 'subject_id,"object_id\na,b\n')
    with pytest.raises(DataError, match=r"a\.csv.*quote"):
        read_link_file(path, on_error=on_error)


def test_a_name_may_begin_with_the_mark_of_comments(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("subject_id,object_id\n#a,b\nc,d\n")
    assert read_sssom(path, "csv", BadLines(path.name, "stop")).links == [
        ("#a", "b"),
        ("c", "d"),
    ]


def test_an_empty_row_of_a_table_program_may_be_above_the_table(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text(
        "#comment: 1,,\n,,\nsubject_id,predicate_id,object_id\na,owl:sameAs,b\n"
    )
    assert sssom_format(path, "csv") == "csv"
    assert read_sssom(path, "csv", BadLines(path.name, "stop")).links == [("a", "b")]


@pytest.mark.parametrize("separator", ["\t", ",", ", "])
def test_case_and_spaces_in_the_header_do_not_matter(
    separator: str, tmp_path: Path
) -> None:
    header = separator.join(["Subject_ID", "Predicate_ID", "Object_ID"])
    row = separator.strip(" ").join(["a", "skos:broadMatch", "b"])
    path = write(
        tmp_path / "a.csv", f"{header}\n{row}\n{row.replace('broad', 'exact')}\n"
    )
    listing = read_link_file(path)
    assert (listing.links, listing.num_other) == ([("a", "b")], 1)


HEADER = "source\ttarget\tdecision\tauthor\tdate\n"


def test_only_accepted_pairs_of_decisions_are_links(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = "a\tx\trejected\tme\t\nb\ty\taccepted\tme\t\nc\tz\t\t\t\n"
    found = read_link_file(write(tmp_path / "d.tsv", HEADER + rows))
    assert found.links == [("b", "y")] and found.num_other == 2
    assert "2 pairs are rejected, undecided or have the probability 0" in caplog.text
    commas = (HEADER + rows).replace("\t", ",").replace("decision", "Decision")
    assert read_link_file(write(tmp_path / "d.csv", commas)).links == [("b", "y")]
    other = HEADER + "a\tx\tmaybe\t\t\n"
    with pytest.raises(DataError, match="must be accepted or rejected, got maybe"):
        read_link_file(write(tmp_path / "e.tsv", other))


@pytest.mark.parametrize("column", ["probability", "Confidence", "MEASURE"])
def test_probabilities_of_a_table_are_checked(
    column: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = ["1", "-1", "NaN", "x", "0", "2", "0.25", ""]
    rows = [f"s{n}\tt{n}\t{text}\n" for n, text in enumerate(values)]
    text = f"source\ttarget\t{column}\n" + "".join(rows)
    found = read_link_file(write(tmp_path / "l.tsv", text))
    assert [source for source, _ in found.links] == ["s0", "s6", "s7"]
    assert found.places == [2, 8, 9] and found.num_other == 5
    assert "4 links are left out, because their probability" in caplog.text
    assert "1 pairs are rejected" in caplog.text
