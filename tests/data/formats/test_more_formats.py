"""Quads, N3, JSON-LD and further compressions give the same graph as N-Triples."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import OPENERS
from emea.data.formats.limits import reading_limits
from emea.data.formats.link_file import read_link_file
from emea.data.formats.settings import GraphForm, ReadingLimits
from emea.data.graph import KnowledgeGraph
from emea.errors import DataError

from ..named_facts import Facts, named_edges, named_literals

A, SAME = "http://a.org/", "http://www.w3.org/2002/07/owl#sameAs"
TRIPLES = f"""<{A}a> <{A}knows> <{A}b> .
<{A}b> <{A}knows> <{A}c> .
<{A}a> <{A}name> "Ann" .
"""
JSON_LD = {
    "@context": {"@vocab": A, "knows": {"@type": "@id"}, "@base": A},
    "@graph": [
        {"@id": "a", "name": "Ann", "knows": "b"},
        {"@id": "b", "knows": {"@id": "c"}},
    ],
}
TEXTS = {
    "nq": TRIPLES.replace(" .\n", f" <{A}g> .\n", 1),
    "trig": f"@prefix : <{A}> . :g {{ :a :knows :b }} :b :knows :c . {{ :a :name 'Ann' }}",
    "n3": f'@prefix : <{A}> . :a :knows :b ; :name "Ann" . '
    "{ :x :knows :y } => { :y :is :z } . :b :knows :c .",
    "jsonld": json.dumps(JSON_LD),
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".dz": gzip.compress,  # dictzip can be read like gzip
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pyarrow.compress(content, codec="zstd", asbytes=True),
}


def facts(graph: KnowledgeGraph) -> tuple[Facts, Facts]:
    return named_edges(graph), named_literals(graph)


def read(path: Path, text: str | bytes, **form) -> KnowledgeGraph:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_graph_file(path, keep_literals=True, form=GraphForm(**form))[0]


@pytest.mark.parametrize("suffix", TEXTS)
def test_the_same_graph_in_every_format(tmp_path: Path, suffix: str) -> None:
    expected = facts(read(tmp_path / "a.nt", TRIPLES))
    assert facts(read(tmp_path / f"a.{suffix}", TEXTS[suffix])) == expected


@pytest.mark.parametrize("suffix", PACKERS)
def test_every_compression(tmp_path: Path, suffix: str) -> None:
    expected = facts(read(tmp_path / "a.nt", TRIPLES))
    for mark in (b"", b"\xef\xbb\xbf"):
        packed = PACKERS[suffix](mark + TRIPLES.encode())
        assert facts(read(tmp_path / f"a.nt{suffix}", packed)) == expected
    assert set(PACKERS) == set(OPENERS)


@pytest.mark.parametrize("suffix", PACKERS)
def test_damaged_and_misnamed_files(tmp_path: Path, suffix: str) -> None:
    content = PACKERS[suffix](TRIPLES.encode() * 1000)
    with pytest.raises(DataError, match=rf"a\.nt\{suffix} is damaged or not a"):
        read(tmp_path / f"a.nt{suffix}", content[: len(content) // 2])
    with pytest.raises(DataError, match=rf"a\.nt\{suffix} is damaged or not a"):
        read(tmp_path / f"a.nt{suffix}", TRIPLES)
    usual = ".gz" if suffix == ".dz" else suffix
    with pytest.raises(DataError, match=rf"Its name must end in \{usual}"):
        read(tmp_path / "b.nt", content)


@pytest.mark.parametrize("suffix", PACKERS)
def test_bombs_are_refused(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emea.data.formats.limits.RATIO_FROM", 1 << 20)
    bomb = PACKERS[suffix](b"# nothing at all\n" * (1 << 17))
    limits = reading_limits(ReadingLimits(ratio=50))
    with limits, pytest.raises(DataError, match=r"exceeds data\.limits\.ratio=50"):
        read(tmp_path / f"a.nt{suffix}", bomb)


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_padding_is_skipped_and_other_bytes_refused(
    tmp_path: Path, suffix: str
) -> None:
    path, lines = tmp_path / f"a.nt{suffix}", TRIPLES.encode().splitlines(keepends=True)
    parts = [PACKERS[suffix](line) for line in lines]
    assert facts(read(path, bytes(9000).join(parts))) == facts(
        read(tmp_path / "b.nt", TRIPLES)
    )
    for rest in (b"garbage", bytes(9000) + b"x", parts[0][:-1]):
        with pytest.raises(DataError, match=r"is damaged or not a (bzip2|xz) file"):
            read(path, parts[0] + rest)


@pytest.mark.parametrize("suffix", ["nq", "trig"])
def test_one_named_graph(tmp_path: Path, suffix: str) -> None:
    graph = read(tmp_path / f"a.{suffix}", TEXTS[suffix], graph=f"{A}g")
    assert facts(graph) == ({(f"{A}a", f"{A}knows", f"{A}b")}, set())
    with pytest.raises(
        DataError, match=r"has no named graph http://a\.org/h\. It has .*/g"
    ):
        read(tmp_path / f"a.{suffix}", TEXTS[suffix], graph=f"{A}h")


def test_bad_lines_of_quads_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.nq"
    path.write_text(TEXTS["nq"] + "no quad\n" + f"<{A}c> <{A}knows> <{A}a> <{A}g> .\n")
    with pytest.raises(DataError, match=r"a\.nq, line 4"):
        read_graph_file(path)
    graph, reading = read_graph_file(path, on_error="skip")
    assert (graph.num_triples, reading.num_bad) == (3, 1)


def test_nested_json_is_refused(tmp_path: Path) -> None:
    text = '{"@id": "http://a.org/a", "http://a.org/r": ' + "[" * 300_000
    with pytest.raises(
        DataError, match=r"nesting depth of JSON exceeds data\.limits\.depth=256"
    ):
        read(tmp_path / "a.jsonld", text)
    brackets = json.dumps(
        {"@id": f"{A}a", f"{A}r": {"@id": f"{A}b"}, f"{A}n": '\\"[' * 300_000}
    )
    assert read(tmp_path / "a.jsonld", brackets).num_triples == 1


def test_long_contexts_are_refused(tmp_path: Path) -> None:
    text = json.dumps({"@context": {"p": "http://a.org/" + "x" * 20_000}, "@id": "p:a"})
    with pytest.raises(
        DataError, match=r"length of an IRI exceeds data\.limits\.iri_length"
    ):
        read(tmp_path / "a.jsonld", text)


def test_a_context_on_the_web(tmp_path: Path) -> None:
    text = '{"@context": "http://schema.org/", "@id": "http://a.org/a", "name": "A"}'
    with pytest.raises(
        DataError, match=r"context is on the web and not loaded\. Put its content"
    ):
        read(tmp_path / "a.jsonld", text)


@pytest.mark.parametrize("suffix", ["nq", "trig", "n3", "jsonld"])
def test_links_in_every_format(tmp_path: Path, suffix: str) -> None:
    statement = f"<{A}a> <{SAME}> <http://b.org/b> .\n"
    text = json.dumps({"@id": f"{A}a", SAME: {"@id": "http://b.org/b"}})
    (tmp_path / f"l.{suffix}").write_text(text if suffix == "jsonld" else statement)
    listing = read_link_file(tmp_path / f"l.{suffix}")
    assert listing.links == [(f"{A}a", "http://b.org/b")]
