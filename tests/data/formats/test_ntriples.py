"""The fast way through N-Triples gives what the parser gives."""

import random
import re
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode, RdfFormat

from emea.data.formats import ntriples
from emea.data.formats.input_file import FIRST_BYTES, UTF8_BOM, BadLines
from emea.data.formats.ntriples import is_plain_iri, read_ntriples, statements_of
from emea.data.formats.repairs import DEFAULT_BASE, resolved
from emea.errors import DataError

P = "http://p.org/"
NOT_CLOSED = {*map(chr, range(32)), "<", ">", '"'}


def absolute(term: NamedNode | BlankNode) -> str:
    is_relative = isinstance(term, NamedNode) and not re.match(
        r"[A-Za-z][\w+.-]*:", term.value
    )
    return f"<{resolved(DEFAULT_BASE, term.value)}>" if is_relative else str(term)


def parsed(content: bytes) -> tuple[set[tuple[str, str, str]], int]:
    """Edges and number of literals by the parser alone.

    IRIs may be relative or contain odd characters, but none that show that they are not closed.
    """
    edges, num_literals = set(), 0
    for quad in pyoxigraph.parse(content, RdfFormat.N_TRIPLES, lenient=True):
        for term in (quad.subject, quad.predicate, quad.object):
            if isinstance(term, NamedNode) and not set(term.value).isdisjoint(
                NOT_CLOSED
            ):
                raise SyntaxError("an IRI is not closed")
        if isinstance(quad.object, NamedNode | BlankNode):
            edges.add(tuple(map(absolute, (quad.subject, quad.predicate, quad.object))))
        else:
            num_literals += 1
    return edges, num_literals


def read(path: Path, content: bytes, on_error: str = "stop"):
    path.write_bytes(content)
    bad = BadLines(path.name, on_error)
    collector = read_ntriples(path, bad)
    names = [
        [key.decode() for key in table]
        for table in (collector.entities, collector.relations)
    ]
    edges = {
        (names[0][h], names[1][r], names[0][t])
        for block in collector._blocks
        for h, r, t in block.tolist()
    }
    return edges, collector.num_literals, bad.num_lines


TERMS = [
    "<http://a.org/x>",
    "<http://a.org/x#y>",
    "<https://a.org?q=1>",
    "<urn:a:b>",
    "<mailto:a@b.c>",
    "<http://a.org/%C3%A9>",
    "<http://a.org/é>",
    "<http://a.org/日本>",
    "<http://a.org/😀>",
    "<http://a.org/\\u00e9>",
    "<http://[::1]/x>",
    "_:b1",
]
LITERALS = [
    '"x"',
    '"a > b . <c>"@en',
    '"1"^^<http://www.w3.org/2001/XMLSchema#int>',
    '"\\n\\""',
]
subjects, objects = st.sampled_from(TERMS), st.sampled_from([*TERMS, *LITERALS])
predicates = st.sampled_from([term for term in TERMS if not term.startswith("_")])
blanks = st.sampled_from([" ", "  ", "\t"])
good_lines = st.one_of(
    st.builds(
        "{0}{4}{1}{4}{2}{4}.{3}".format,
        subjects,
        predicates,
        objects,
        st.sampled_from(["\n", "\r\n", " # said\n"]),
        blanks,
    ),
    st.builds("{0} {1} {2}.\n".format, subjects, predicates, objects),
    st.sampled_from(["\n", "# a comment\n", "  \n"]),
)


@given(st.lists(good_lines, max_size=12), st.integers(40, 4000))
def test_same_as_the_parser(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int
) -> None:
    content = "".join(lines).encode()
    path = tmp_path_factory.mktemp("nt") / "a.nt"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ntriples.line_chunks, "__defaults__", (size,))
        edges, num_literals, _ = read(path, content)
    assert (edges, num_literals) == parsed(content)


@given(
    st.lists(good_lines, max_size=5),
    st.binary(max_size=40),
    st.lists(good_lines, max_size=5),
)
@example([], b"<http://a/a>\n<http://a/b> <http://a/c> .", [])
@example([], b"<http://a/a b> <http://a/b> <http://a/c> .", [])
@example(
    [],
    b"<http://a/a> <http://a/b> <http://a/c> . <http://a/a> <http://a/b> <http://a/c> .",
    [],
)
@example([], b"<http://a/\xff> <http://a/b> <http://a/c> .", [])
@example([], UTF8_BOM, [])  # no part of the first line
@example(["\n"], UTF8_BOM, [])  # but a mistake in any other
def test_bad_lines_are_passed_over_alone(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[str],
    odd: bytes,
    after: list[str],
) -> None:
    lines = [line.encode() for line in before] + [
        line + b"\n" for line in odd.split(b"\n")
    ]
    lines += [line.encode() for line in after]
    assume(
        not lines[0].startswith(tuple(FIRST_BYTES))
    )  # such files are refused as a whole
    path = tmp_path_factory.mktemp("nt") / "a.nt"
    result = read(path, b"".join(lines), "skip")
    lines[0] = lines[0].removeprefix(UTF8_BOM)
    edges, num_literals, num_bad = set(), 0, 0
    for line in lines:
        try:
            found = parsed(line)
        except SyntaxError:
            num_bad += 1
        else:
            edges |= found[0]
            num_literals += found[1]
    assert result == (edges, num_literals, num_bad)


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    good = f"<{P}a> <{P}b> <{P}c> .\n"
    with pytest.raises(
        DataError, match=r"a\.nt, line 4: The subject of a triple must be"
    ):
        read(tmp_path / "a.nt", (good * 3 + "what?\n" + good).encode())


def test_lines_are_counted_over_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ntriples.line_chunks, "__defaults__", (100,))
    good = f"<{P}a> <{P}b> <{P}c> .\n"
    with pytest.raises(DataError, match="line 31: "):
        read(
            tmp_path / "a.nt",
            (good * 20 + good.replace(" .", ".") * 10 + "what?\n").encode(),
        )


def test_no_plain_iri_that_the_parser_refuses() -> None:
    """Every character in every place, and random pieces of IRIs."""
    candidates = [
        form.format(chr(code))
        for form in (
            "http://a.b/x{}y",
            "http://a.b/#{}",
            "urn:a{}",
            "http://a.b?{}",
            "http://a{}",
        )
        for code in [*range(1, 0xD800, 7), *range(0xE000, 0x11000, 7), *range(1, 0x180)]
    ]
    pieces = [*"%4Fg/?#:@-.[é|~", "//", "%41"]
    draw = random.Random(0)
    for start in ("http://", "https://", "urn:", "http://a/", "urn:x:"):
        for _ in range(3000):
            candidates.append(
                start + "".join(draw.choices(pieces, k=draw.randint(0, 7)))
            )
    plain = [iri for iri in candidates if is_plain_iri(f"<{iri}>".encode())]
    assert len(plain) > 5000
    for iri in plain:
        assert parsed(f"<{iri}> <{P}b> <{P}c> .\n".encode())[0] == {
            (f"<{iri}>", f"<{P}b>", f"<{P}c>")
        }


def test_statements_of_a_relation_have_their_lines(tmp_path: Path) -> None:
    other, wanted = f"<{P}a> <{P}b> <{P}c> .\n", f"<{P}a> <{P}same> <{P}d> .\n"
    path = tmp_path / "a.nt"
    path.write_text(other + wanted + "what?\n" + other + wanted)
    bad = BadLines("a.nt", "skip")
    assert [line for line, _ in statements_of([f"{P}same"], path, bad)] == [2, 5]
    assert bad.num_lines == 1
