"""Links from tables and owl:sameAs triples."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.formats.link_file import read_link_file
from emea.errors import DataError, UserError

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
    tmp_path: Path, name: str, text: str, links: list[tuple[str, str]], places: list[int]
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
def test_equivalent_classes_and_properties(tmp_path: Path, kind: str, suffix: str) -> None:
    # an exported alignment relates classes and properties in this way
    relation = SAME.replace("sameAs", f"equivalent{kind}")
    text = f"<http://a/a> {relation} <http://b/b> .\n<http://a/a> {SAME} _:x .\n"
    text += f"<http://a/a> {relation} _:expression .\n"
    listing = read_link_file(write(tmp_path / f"a.{suffix}", text))
    assert list(listing.links)[:1] == [("http://a/a", "http://b/b")]
    assert len(listing.links) == 2 and listing.symmetric


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("suffix", ["nt", "ttl", "rdf", "tsv", "csv", "tsv.gz"])
@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=40).map(str.encode)))
def test_any_bytes_end_in_links_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, on_error: str, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("links") / f"any.{suffix}"
    path.write_bytes(content)
    with suppress(UserError):
        listing = read_link_file(path, on_error=on_error)
        assert len(listing.links) == len(listing.places)


@given(content=st.binary(max_size=60))
def test_any_header_of_sssom_ends_in_links_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("links") / "any.sssom.tsv"
    path.write_bytes(b"# " + content + b"\nsubject_id\tobject_id\na\tb\n")
    with suppress(UserError):
        read_link_file(path, on_error="skip")


def test_a_bad_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "x\ty\nz\n")
    with pytest.raises(DataError, match=r"a\.tsv, line 2: expected 2 columns, found 1"):
        read_link_file(path)
    assert read_link_file(path, on_error="skip").num_bad == 1
