"""Formats that a user registers are read like those of emea."""

import gzip
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

import emea
from emea.config.composition import composed
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import FORMATS, file_format, graph_formats
from emea.data.formats.link_file import read_link_file
from emea.data.formats.settings import INPUT_FORMATS
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import ConfigError, DataError
from emea.run.job import run_job

from ..named_facts import named_edges

EDGES = [("anna", "knows", "ben"), ("ben", "knows", "cleo"), ("anna", "name", "Ann")]
TEXT = "".join(json.dumps(edge) + "\n" for edge in EDGES)


def read_lines(file: IO[bytes]) -> Iterator[list[str]]:
    for line in file:
        yield json.loads(line)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(FORMATS)
    emea.register_format(
        "edges", [".edges"], read_triples=read_lines, read_links=read_lines
    )
    yield
    FORMATS.clear()
    FORMATS.update(before)


def written(path: Path, text: str = TEXT) -> Path:
    path.write_bytes(
        gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode()
    )
    return path


@pytest.mark.parametrize("name", ["a.edges", "a.EDGES", "a.edges.gz"])
def test_a_suffix_chooses_the_reader(name: str, tmp_path: Path) -> None:
    assert named_edges(emea.read_graph(written(tmp_path / name))) == set(EDGES)


def test_attributes_are_literals(tmp_path: Path) -> None:
    path = written(tmp_path / "a.edges")
    graph = emea.read_graph(path, attributes=["name"])
    assert named_edges(graph) == set(EDGES[:2])
    assert graph.attributes is not None and graph.attributes.values == ["Ann"]


def test_the_suffix_decides_although_the_content_looks_like_xml(tmp_path: Path) -> None:
    emea.register_format("graphml", [".graphml"], read_triples=lambda file: EDGES)
    path = written(tmp_path / "a.graphml", "<?xml version='1.0'?>")
    assert file_format(path, None, graph_formats(), "data.format") == "graphml"
    assert named_edges(emea.read_graph(path)) == set(EDGES)


def test_links(tmp_path: Path) -> None:
    path = written(tmp_path / "links.edges", '["a", "b"]\n["c", "d"]\n')
    assert emea.read_links(path) == [("a", "b"), ("c", "d")]
    path = written(tmp_path / "bad.edges", '["a", "b"]\n["c"]\n')
    with pytest.raises(DataError, match=r"bad\.edges, statement 2: .*source, target"):
        read_link_file(path)
    assert read_link_file(path, on_error="skip").num_bad == 1


def test_a_run_reads_the_format_that_its_settings_name(tmp_path: Path) -> None:
    pair = synthetic_pair(num_entities=120, triples_per_entity=4)
    files = {}
    for side, graph in (("source", pair.source), ("target", pair.target)):
        edges = sorted(named_edges(graph))
        lines = "".join(json.dumps(edge) + "\n" for edge in edges)
        files[side] = written(tmp_path / f"{side}.txt", lines)
    links = "".join(
        f"{pair.source.entity_name(one)}\t{pair.target.entity_name(other)}\n"
        for one, other in pair.links[:40].tolist()
    )
    settings = [f"data.{side}={path}" for side, path in files.items()]
    settings += [f"data.links={written(tmp_path / 'links.tsv', links)}"]
    settings += ["data.format=edges", "model=lightea", "model.encoder.dim=32"]
    settings += ["em=dual", "em.iterations=1", "tracking=none", "trainer=cpu"]
    run_job(composed(["data=files", *settings]), tmp_path / "out")
    assert len((tmp_path / "out" / "alignment.tsv").read_text().splitlines()) > 20
    FORMATS.pop("edges")
    assert emea.Aligner.load(tmp_path / "out").predict()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["a", "b", 3]', "a.edges, statement 1: the tail 3 is not a text"),
        ('["a", "", "c"]', "a.edges, statement 1: the relation is empty"),
        ('"abc"', "a.edges, statement 1: 'abc' is not a tuple of head, relation, tail"),
        ("[1", "a.edges cannot be read as edges: JSONDecodeError"),
        ("", "a.edges contains no triples"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        emea.read_graph(written(tmp_path / "a.edges", text))


def test_bad_triples_are_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "a.edges", '["a", "b"]\n["a", "b", "c"]\n')
    graph, reading = read_graph_file(path, on_error="skip")
    assert named_edges(graph) == {("a", "b", "c")} and reading.num_bad == 1


@pytest.mark.parametrize(
    ("name", "suffixes", "message"),
    [
        ("turtle", [], "emea already reads turtle"),
        ("my format", [], "letters, digits and _"),
        ("mine", [".ttl"], "belongs to turtle"),
        ("mine", [".gz"], "belongs to a compression"),
        ("mine", [".a.b"], "only dot"),
        ("mine", ["b"], "only dot"),
        ("mine", ".b", "must be a list"),
    ],
)
def test_names_and_suffixes_are_checked(
    name: str, suffixes: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        emea.register_format(name, suffixes, read_triples=read_lines)
    with pytest.raises(ConfigError, match="no reader"):
        emea.register_format("mine")


def test_a_format_can_be_registered_again(tmp_path: Path) -> None:
    emea.register_format(
        "edges", [".edges"], read_triples=lambda file: [("a", "b", "c")]
    )
    graph = emea.read_graph(written(tmp_path / "a.edges"))
    assert named_edges(graph) == {("a", "b", "c")}
    with pytest.raises(DataError, match="unknown file format"):
        emea.read_links(tmp_path / "a.edges")


def test_readers_of_the_table_of_formats_exist() -> None:
    readers = {one.graph_reader for one in INPUT_FORMATS}
    readers |= {one.link_reader for one in INPUT_FORMATS} - {None}
    assert all(callable(pkgutil.resolve_name(str(reader))) for reader in readers)
    suffixes = [suffix for one in INPUT_FORMATS for suffix in one.suffixes]
    assert len(suffixes) == len(set(suffixes))
