"""The reader of the OpenEA layout."""

from collections.abc import Callable
from pathlib import Path

import pytest

from emea.data.attributes import PLAIN, Kind
from emea.data.sources.openea_format import read_openea_format
from emea.data.split import official_split
from emea.errors import DataError

from ..named_facts import named_edges, named_literals

Files = dict[str, str]


@pytest.fixture
def files() -> Files:
    return {
        "rel_triples_1": "a\tr\tb\nb\ts\tc\n",
        "rel_triples_2": "C\tR\tA\nA\tR\tB\n",
        "ent_links": "a\tA\nb\tB\nc\tC\nd\tD\n",
        "721_5fold/1/train_links": "c\tC\n",
        "721_5fold/1/valid_links": "a\tA\n",
        "721_5fold/1/test_links": "b\tB\nd\tD\n",
    }


def test_reads_a_pair(write_files: Callable[[Files], Path], files: Files) -> None:
    pair = read_openea_format(write_files(files), name="small")
    source, target = pair.source, pair.target
    assert source.entity_names is not None
    # A link does not add entities to a graph.
    assert sorted(source.entity_names) == ["a", "b", "c"]
    assert (target.num_entities, target.num_relations, target.num_triples) == (3, 1, 2)
    assert named_edges(source) == {("a", "r", "b"), ("b", "s", "c")}
    names = [
        (source.entity_name(s), target.entity_name(t)) for s, t in pair.links.tolist()
    ]
    assert names == [("a", "A"), ("b", "B"), ("c", "C")]
    assert pair.num_absent == 1


def test_entities_without_a_counterpart(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    folder = write_files({**files, "ent_links": "b\tB\n", "dangling": "a\tA\nd\tD\n"})
    (folder / "721_5fold").rename(folder / "other")
    pair = read_openea_format(folder, unmatched="dangling")
    assert pair.unmatched is not None
    assert [pair.source.entity_name(one) for one in pair.unmatched.tolist()] == ["a"]


def test_official_parts(write_files: Callable[[Files], Path], files: Files) -> None:
    pair = read_openea_format(write_files(files))
    assert pair.name == "pair"
    assert pair.official is not None
    parts = pair.official.train, pair.official.validation, pair.official.test
    names = [
        [pair.source.entity_name(source) for source in part[:, 0]] for part in parts
    ]
    assert names == [["c"], ["a"], ["b"]]
    assert pair.official.num_absent == 1
    assert official_split(pair, 0).num_missed == 1


def test_links_without_triples_are_logged(
    write_files: Callable[[Files], Path], files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    read_openea_format(write_files(files))
    assert (
        "ent_links: 1 of 4 links have a source or target without triples" in caplog.text
    )
    caplog.clear()
    attributes = {
        "attr_triples_1": "d\tname\tDee\n",
        "attr_triples_2": "D\tname\tDee\n",
    }
    pair = read_openea_format(write_files(files | attributes), keep_literals=True)
    assert (len(pair.links), pair.num_absent, caplog.text) == (4, 0, "")


def test_links_only_to_entities_without_triples_are_refused(
    write_files: Callable[[Files], Path], files: Files
) -> None:
    folder = write_files({**files, "rel_triples_2": "AA\tR\tBB\n"})
    with pytest.raises(DataError, match="ent_links: no link connects two entities"):
        read_openea_format(folder)


def test_literals(write_files: Callable[[Files], Path], files: Files) -> None:
    rows = ['a\tname\t"Ann"@en\n', "b\tage\t7\n", 'a\tage\t"8"^^<http://x/int>\n']
    files |= {"attr_triples_1": "".join(rows), "attr_triples_2": "A\tlabel\tAnn O'\n"}
    folder = write_files(files)
    assert read_openea_format(folder).source.attributes is None
    pair = read_openea_format(folder, keep_literals=True)
    found = pair.source.attributes
    assert found is not None
    assert named_literals(pair.source) == {
        ("a", "name", "Ann"),
        ("b", "age", "7"),
        ("a", "age", "8"),
    }
    kinds = {found.values[number]: found.kind(number) for number in range(3)}
    assert kinds == {"Ann": Kind("en"), "7": PLAIN, "8": Kind("", "http://x/int")}
    labels = [pair.source.entity_label(e) for e in range(pair.source.num_entities)]
    assert sorted(filter(None, labels)) == ["Ann"]
    assert pair.target.attributes is not None
    assert list(pair.target.attributes.values) == ["Ann O'"]


def test_without_folds(write_files: Callable[[Files], Path], files: Files) -> None:
    assert read_openea_format(write_files(files), folds="none").official is None


def test_missing_fold(write_files: Callable[[Files], Path], files: Files) -> None:
    folder = write_files(files)
    with pytest.raises(DataError) as error:
        read_openea_format(folder, fold=6)
    assert (
        str(error.value)
        == f"The folder {folder / '721_5fold'} has no fold 6. It contains 1."
    )


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "rel_triples_1",
            "a\tr\n",
            "line 1: expected 3 tab-separated columns, found 2",
        ),
        ("rel_triples_2", "A\tR\tB\nA\t\tB\n", "line 2: column 2 is empty"),
        (
            "ent_links",
            "a\tA\nb\tB\na\tA\n",
            "line 3: link a - A is already in ent_links, line 1",
        ),
        ("721_5fold/1/valid_links", "a\tB\n", "line 1: link a - B is not in ent_links"),
        (
            "721_5fold/1/test_links",
            "b\tB\nc\tC\n",
            "line 2: link c - C is already in 721_5fold/1/train_links, line 1",
        ),
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
        read_openea_format(write_files(files | {file: content}))
    assert str(error.value) == f"{file}, {message}"


# Tabs and line breaks separate, a lone carriage return may be half of one.
@pytest.mark.data
@pytest.mark.parametrize("fold", [1, 5])
def test_real_files(real_folder: Callable[[str], Path], fold: int) -> None:
    pair = read_openea_format(real_folder("openea/D_Y_15K_V1"), fold=fold)
    assert pair.name == "D_Y_15K_V1"
    assert (pair.source.num_entities, pair.target.num_entities) == (15000, 15000)
    assert (pair.source.num_relations, pair.target.num_relations) == (165, 28)
    assert (pair.source.num_triples, pair.target.num_triples) == (30291, 26638)
    assert len(pair.links) == 15000
    assert pair.official is not None
    parts = pair.official.train, pair.official.validation, pair.official.test
    assert [len(part) for part in parts] == [3000, 1500, 10500]
