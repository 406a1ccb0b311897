"""The reader of integer ids."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.sources import id_format
from emea.data.sources.id_format import read_id_format
from emea.errors import DataError

from ..named_facts import named_edges

Files = dict[str, str]
Triple = tuple[int, int, int]


@pytest.fixture
def files() -> Files:
    return {
        "triples_1": "0\t7\t1\n1\t8\t2\n",
        "triples_2": "10\t9\t11\n11\t9\t12\n",
        "ent_ids_1": "0\ta\n1\tb\n2\tc\n3\td\n",
        "ent_ids_2": "10\tA\n11\tB\n12\tC\n13\tD\n",
        "ref_ent_ids": "0\t10\n1\t11\n2\t12\n",
    }


def named_links(pair: GraphPair, links: IntArray) -> list[tuple[str, str]]:
    return [
        (pair.source.entity_name(s), pair.target.entity_name(t))
        for s, t in links.tolist()
    ]


def test_reads_a_pair(write_files: Callable[[Files], Path], files: Files) -> None:
    pair = read_id_format(write_files(files), name="small")
    assert pair.name == "small"
    assert (pair.source.num_entities, pair.target.num_entities) == (4, 4)
    assert (pair.source.num_relations, pair.target.num_relations) == (2, 1)
    assert named_edges(pair.source) == {("a", "7", "b"), ("b", "8", "c")}
    assert named_links(pair, pair.links) == [("a", "A"), ("b", "B"), ("c", "C")]
    assert pair.official is None


def test_folder_is_relative_to_root(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    folder = write_files(files)
    pair = read_id_format(folder.name, root=folder.parent)
    assert pair.name == folder.name
    assert pair.checksum() == read_id_format(str(folder)).checksum()


def test_without_listing_ids_serve_as_names(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    del files["ent_ids_1"], files["ent_ids_2"]
    pair = read_id_format(write_files(files))
    assert (pair.source.num_entities, pair.target.num_entities) == (3, 3)
    assert named_links(pair, pair.links) == [("0", "10"), ("1", "11"), ("2", "12")]


@pytest.mark.parametrize("file", ["rel_dict", "rel_ids_1"])
def test_relation_names(
    write_files: Callable[[Files], Path], files: Files, file: str
) -> None:
    pair = read_id_format(write_files(files | {file: "8\tborn in\n9\tother\n"}))
    assert named_edges(pair.source) == {("a", "7", "b"), ("b", "born in", "c")}


def test_repeated_triples_count_once(
    write_files: Callable[[Files], Path], files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    once = read_id_format(write_files(files)).source.triples.tolist()
    files["triples_1"] += "0\t7\t1\n"
    assert read_id_format(write_files(files)).source.triples.tolist() == once
    assert "triples_1: 1 repeated triples left out" in caplog.text


def test_official_parts(write_files: Callable[[Files], Path], files: Files) -> None:
    files |= {
        "sup_ent_ids": "1\t11\n",
        "valid_ent_ids": "3\t13\n",
        "ref_ent_ids": "0\t10\n2\t12\n",
    }
    pair = read_id_format(write_files(files))
    assert pair.official is not None
    assert named_links(pair, pair.official.train) == [("b", "B")]
    assert named_links(pair, pair.official.validation) == [("d", "D")]
    assert named_links(pair, pair.official.test) == [("a", "A"), ("c", "C")]
    assert len(pair.links) == 4


def test_reference_file_that_holds_all_links(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    pair = read_id_format(write_files(files | {"sup_ent_ids": "1\t11\n"}))
    assert pair.official is not None
    assert len(pair.links) == 3
    assert named_links(pair, pair.official.test) == [("a", "A"), ("c", "C")]
    assert pair.official.validation.shape == (0, 2)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "triples_1",
            "0\t7\t1\n0\t7\n",
            "line 2: expected 3 tab-separated columns, found 2",
        ),
        ("triples_2", "10\tx\t11\n", "line 1: expected an integer id, found 'x'"),
        (
            "triples_1",
            "0\t7\t1\n0\t7\t99\n",
            "line 2: unknown source entity 99 (not in ent_ids_1)",
        ),
        (
            "triples_2",
            "0\t9\t11\n",
            "line 1: unknown target entity 0 (not in ent_ids_2)",
        ),
        (
            "ent_ids_1",
            "0\ta\n1\tb\n2\tc\n0\td\n",
            "line 4: entity 0 is already listed in line 1",
        ),
        (
            "ref_ent_ids",
            "0\t10\n1\t99\n",
            "line 2: unknown target entity 99 (not in ent_ids_2)",
        ),
        (
            "ref_ent_ids",
            "10\t0\n",
            "line 1: unknown source entity 10 (not in ent_ids_1)",
        ),
        (
            "sup_ent_ids",
            "0\t10\n1\t10\n",
            "line 2: target entity 10 is already linked in sup_ent_ids, line 1",
        ),
        ("ref_ent_ids", "", "line 1: the file is empty"),
    ],
)
def test_errors(
    write_files: Callable[[Files], Path],
    files: Files,
    file: str,
    content: str,
    message: str,
) -> None:
    with pytest.raises(DataError) as error:
        read_id_format(write_files(files | {file: content}))
    assert str(error.value) == f"{file}, {message}"


def test_without_listing_a_linked_entity_needs_a_triple(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    del files["ent_ids_1"]
    files["ref_ent_ids"] += "3\t13\n"
    message = r"^ref_ent_ids, line 4: unknown source entity 3 \(not in triples_1\)$"
    with pytest.raises(DataError, match=message):
        read_id_format(write_files(files))


def test_missing_folder_and_links(
    write_files: Callable[[Files], Path], files: Files, tmp_path: Path
) -> None:
    with pytest.raises(
        DataError, match=r"none does not exist\. Put triples_1, triples_2,"
    ):
        read_id_format("none", root=tmp_path)
    del files["ref_ent_ids"]
    with pytest.raises(
        DataError, match=r"has no links. It needs at least one of sup_ent_ids, va"
    ):
        read_id_format(write_files(files))


def test_download_fills_the_folder_first(
    write_files: Callable[[Files], Path],
    files: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fill(folder: Path, source: str, base_url: str) -> None:
        assert (folder, source, base_url) == (tmp_path / "pair", "key", "http://mirror")
        write_files(files)

    monkeypatch.setattr(id_format, "ensure_downloaded", fill)
    pair = read_id_format(
        "pair", root=tmp_path, download="key", base_url="http://mirror"
    )
    assert len(pair.links) == 3


GRAPHS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 9)),
    min_size=1,
    max_size=20,
    unique=True,
)


def as_text(rows: list[Triple] | list[tuple[int, int]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


@given(GRAPHS, GRAPHS, st.permutations(range(10)), st.integers(1, 10))
def test_round_trip(
    source: list[Triple], target: list[Triple], order: list[int], num_links: int
) -> None:
    links = list(enumerate(order))[:num_links]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, triples in ((1, source), (2, target)):
            (folder / f"triples_{side}").write_text(as_text(triples))
            (folder / f"ent_ids_{side}").write_text(
                as_text([(i, i) for i in range(10)])
            )
        (folder / "ref_ent_ids").write_text(as_text(links))
        pair = read_id_format(folder)
    for graph, triples in ((pair.source, source), (pair.target, target)):
        assert named_edges(graph) == {tuple(map(str, triple)) for triple in triples}
    by_target = sorted(links, key=lambda link: link[1])
    assert named_links(pair, pair.links) == [(str(s), str(t)) for s, t in by_target]


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "entities", "relations", "triples", "num_links", "parts", "seconds"),
    [
        ("dbp15k/zh_en", (19388, 19572), (1701, 1323), (70414, 95142), 15000, None, 2),
        ("dbp15k/ja_en", (19814, 19780), (1299, 1153), (77214, 93484), 15000, None, 2),
        ("dbp15k/fr_en", (19661, 19993), (903, 1208), (105998, 115722), 15000, None, 2),
        (
            "contea_fr_en",
            (94451, 142234),
            (903, 1208),
            (318115, 465126),
            43182,
            (3727, 1863, 37592),
            10,
        ),
    ],
)
def test_real_files(
    real_folder: Callable[[str], Path],
    folder: str,
    entities: tuple[int, int],
    relations: tuple[int, int],
    triples: tuple[int, int],
    num_links: int,
    parts: tuple[int, int, int] | None,
    seconds: float,
) -> None:
    path = real_folder(folder)
    start = time.process_time()
    pair = read_id_format(path)
    assert time.process_time() - start < seconds
    graphs = pair.source, pair.target
    assert tuple(graph.num_entities for graph in graphs) == entities
    assert tuple(graph.num_relations for graph in graphs) == relations
    assert tuple(graph.num_triples for graph in graphs) == triples
    assert len(pair.links) == num_links
    official = pair.official
    found = official and (
        len(official.train),
        len(official.validation),
        len(official.test),
    )
    assert found == parts


@pytest.mark.data
def test_ids_of_linked_entities_are_unrelated(
    real_folder: Callable[[str], Path],
) -> None:
    pair = read_id_format(real_folder("dbp15k/zh_en"))
    assert abs(np.corrcoef(pair.links.T)[0, 1]) < 0.05
    offsets = pair.links[:, 1] - pair.links[:, 0]
    assert np.unique(offsets, return_counts=True)[1].max() < 20
