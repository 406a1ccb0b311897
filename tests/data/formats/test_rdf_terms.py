"""Terms of RDF as names."""

import pyoxigraph
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat

from emea.data.attributes import literal_parts, literal_parts_of_bytes
from emea.data.formats.rdf import BlankNodeLabels, columns, reason, shown_name, sorted_out


def test_names() -> None:
    assert shown_name("<http://a.org/x>") == "http://a.org/x"
    assert shown_name("_:x") == "_:x"


def test_only_random_labels_are_replaced() -> None:
    label, random = BlankNodeLabels(), "_:b12b5e0a78e33d326611b2adf44cfb0f"
    terms = ["_:x", random, "<http://a.org/x>", random.replace("b12", "c12"), random]
    assert [label(term) for term in terms] == ["_:x", "_:[1]", "<http://a.org/x>", "_:[2]", "_:[1]"]


def test_the_parser_still_makes_such_labels() -> None:
    text = "<http://a/a> <http://a/r> [ <http://a/r> [] ] ."
    edges, _ = sorted_out(pyoxigraph.parse(text, RdfFormat.TURTLE), BlankNodeLabels())
    labels = {end for head, _, tail in edges for end in (head, tail) if end.startswith("_:")}
    assert labels == {"_:[1]", "_:[2]"}


def test_literals_and_quoted_triples_are_no_edges() -> None:
    text = '<http://a/a> <http://a/r> "x" .\n'
    text += "<http://a/a> <http://a/r> <<( <http://a/a> <http://a/r> <http://a/b> )>> .\n"
    edges, literals = sorted_out(pyoxigraph.parse(text, RdfFormat.N_TRIPLES), str)
    subject, relation = "<http://a/a>", "<http://a/r>"
    assert (edges, literals) == ([], [(subject, relation, '"x"'), (subject, relation, '""')])
    assert columns(edges) == ([], [], [])


def test_a_reason_has_no_place() -> None:
    error = SyntaxError("Parser error at line 2 between columns 1 and 4: what is it: this")
    assert reason(error) == "what is it: this"
    assert reason(SyntaxError("odd")) == "odd"


@given(st.text(), st.sampled_from(["", "@en", "@de-AT", "^^<http://x.org/ä>"]))
def test_literals_in_bytes_have_the_same_parts(text: str, suffix: str) -> None:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    term = f'"{escaped}"{suffix}'
    assert literal_parts_of_bytes(term.encode()) == literal_parts(term)
    assert literal_parts(term)[0] == text
