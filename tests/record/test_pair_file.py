"""Graphs and links that a run keeps in its folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emea.config.composition import composed
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import DataError
from emea.record.pair_file import load_pair, pair_of_run, read_pair, write_pair

NONE = np.empty((0, 2), dtype=np.int64)
ODD = ["", "a\tb\n", "\x00", "Zürich", "東京", "\ud800", "x" * 1000]


def odd_pair() -> GraphPair:
    """Names with signs of every kind, a graph without names, and official parts."""
    source = KnowledgeGraph(np.array([[0, 0, 6], [5, 1, 2]]), 7, 2, ODD, ["r", "ü"])
    target = KnowledgeGraph(np.empty((0, 3)), 3, 0)
    links = np.array([[0, 2], [6, 0]])
    official = OfficialSplit(links[:1], NONE, links[1:], num_absent=2)
    return GraphPair("a pair", source, target, links, official, num_absent=3)


@pytest.mark.parametrize(
    "make", [odd_pair, lambda: synthetic_pair(num_entities=100, seed=1)]
)
def test_a_pair_comes_back_as_it_was(
    make: Callable[[], GraphPair], tmp_path: Path
) -> None:
    pair, path = make(), tmp_path / "pair.npz"
    write_pair(path, pair)
    read = read_pair(path)
    assert (read.name, read.checksum()) == (pair.name, pair.checksum())
    assert read.num_absent == pair.num_absent
    for one, other in ((read.source, pair.source), (read.target, pair.target)):
        for names in ("entity_names", "relation_names"):
            found, expected = getattr(one, names), getattr(other, names)
            assert found == (None if expected is None else list(expected))
    assert (read.official is None) == (pair.official is None)
    if read.official is not None and pair.official is not None:
        for part in ("train", "validation", "test"):
            assert (
                getattr(read.official, part).tolist()
                == getattr(pair.official, part).tolist()
            )
        assert read.official.num_absent == pair.official.num_absent
    assert [path.name for path in tmp_path.iterdir()] == ["pair.npz"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("links", None),
        ("source_triples", None),
        ("links", lambda array: array[:, 0]),
        ("links", lambda array: array + 10),
        ("links", lambda array: np.concatenate([array, array])),
        ("source_triples", lambda array: array - 1),
        ("source_size", lambda array: array + 1),
        ("source_size", lambda array: np.array(7)),
        ("source_entities_bytes", lambda array: np.full_like(array, 255)),
        ("source_entities_lengths", lambda array: -array),
        ("source_entities_lengths", lambda array: np.array(["x"])),
    ],
)
def test_a_damaged_pair_is_refused(name: str, change: Any, tmp_path: Path) -> None:
    path = tmp_path / "pair.npz"
    write_pair(path, odd_pair())
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    array = arrays.pop(name)
    np.savez(path, **arrays, **({} if change is None else {name: change(array)}))
    with pytest.raises(DataError, match=r"pair\.npz is damaged: "):
        read_pair(path)


def test_a_pair_with_pickled_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pair.npz"
    write_pair(path, odd_pair())
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    np.savez(path, **{**arrays, "links": np.array([{}], dtype=object)})
    with pytest.raises(DataError, match=r"pair\.npz is damaged: .*allow_pickle"):
        read_pair(path)


def test_links_that_are_left_out_are_reported_by_the_run_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.tsv").write_text(
            f"{name}0\tr\t{name}1\n{name}1\tr\t{name}2\n"
        )
    (tmp_path / "links.tsv").write_text("a0\tb0\na1\tb1\na2\tb2\na3\tb3\n")
    files = {"source": "a.tsv", "target": "b.tsv", "links": "links.tsv"}
    config = composed(
        ["data=files", *(f"data.{key}={tmp_path / files[key]}" for key in files)]
    )
    pair = load_pair(config)
    assert "a3 is not in a.tsv: left out" in caplog.text
    caplog.clear()
    assert pair_of_run(tmp_path, config).checksum() == pair.checksum()
    assert not caplog.records
    load_pair(config)
    assert caplog.records
