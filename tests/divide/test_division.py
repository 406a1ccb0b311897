"""The files of a division: what is read back is what was written, or one sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.split import Supervision
from emea.divide.division import (
    DIVISION_FILE,
    ENTITIES_FILE,
    Division,
    part_folder,
    read_entities,
    read_graphs,
    read_part,
    write_part,
)
from emea.errors import DataError
from emea.record.checked_files import (
    read_checked_arrays,
    write_checked_arrays,
    write_checked_json,
)

from ..mutated_files import changed_json, damaged, few_or_many, fuzz

SIZES = (6, 6)
ENTITIES = (np.array([0, 2, 3, 5]), np.array([0, 1, 3, 4, 5]))


def ring(num: int = 6) -> KnowledgeGraph:
    triples = np.array([(one, 0, (one + 1) % num) for one in range(num)])
    return KnowledgeGraph(triples, num, 1)


def pair() -> GraphPair:
    links = np.array([(one, one) for one in range(6)])
    return GraphPair("ring", ring(), ring(), links)


@pytest.fixture
def division(tmp_path: Path) -> Path:
    folder = tmp_path / "division"
    links = pair().links
    known = Supervision(links[:4], links[4:])
    chosen = [ENTITIES, (ENTITIES[0] - np.array([0, 1, 1, 1]), ENTITIES[1])]
    parts = tuple(
        write_part(folder, number, pair(), known, one)
        for number, one in enumerate(chosen)
    )
    Division(
        name="ring",
        checksum=pair().checksum(),
        overlap=0.1,
        num_matched=4,
        separated=None,
        lost=0.2,
        parts=parts,
    ).write(folder)
    return folder


def test_a_division_is_read_back(division: Path) -> None:
    found = read_entities(division, 0, SIZES)
    assert found.source.tolist() == ENTITIES[0].tolist()
    assert found.target.tolist() == ENTITIES[1].tolist()
    assert read_part(str(division), 1).source.num_entities == 4
    assert Division.read(division).parts[0].entities == found.checksum()


Arrays = dict[str, np.ndarray]

WRONG: dict[str, tuple[Callable[[Arrays], dict[str, Any]], str]] = {
    "other ids of the same number": (
        lambda one: {"source": one["source"] - np.array([0, 1, 0, 0])},
        "of another part or division",
    ),
    "other shares": (
        lambda one: {"source_seen": one["source_seen"] * np.float32(0.5)},
        "of another part or division",
    ),
    "unsorted": (lambda one: {"target": one["target"][::-1]}, "not in ascending order"),
    "repeated": (lambda one: {"target": one["target"] * 0}, "not in ascending order"),
    "too large": (lambda one: {"source": one["source"] + 1}, "a graph with 6 entities"),
    "negative": (lambda one: {"source": one["source"] - 1}, "a graph with 6 entities"),
    "floats": (
        lambda one: {"source": one["source"].astype(float)},
        "wrong type or shape",
    ),
    "a matrix": (lambda one: {"source": one["source"][None]}, "wrong type or shape"),
    "none": (lambda one: {"source": one["source"][:0]}, "wrong type or shape"),
    "fewer": (
        lambda one: {name: one[name][:3] for name in ("source", "source_seen")},
        "of another part",
    ),
    "NaN": (
        lambda one: {"target_seen": one["target_seen"] * np.nan},
        "not between 0 and 1",
    ),
    "above 1": (
        lambda one: {"target_seen": one["target_seen"] + 1},
        "not between 0 and 1",
    ),
    "fewer shares": (
        lambda one: {"target_seen": one["target_seen"][1:]},
        "wrong type or shape",
    ),
    "more arrays": (lambda one: {"further": one["source"]}, "contains the arrays"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_entities_with_a_valid_checksum_are_refused(
    name: str, division: Path
) -> None:
    change, message = WRONG[name]
    path = part_folder(division, 0) / ENTITIES_FILE
    arrays = read_checked_arrays(path)
    write_checked_arrays(path, **(arrays | change(arrays)))
    with pytest.raises(DataError, match=rf"entities\.npz is damaged: .*{message}"):
        read_entities(division, 0, SIZES)


def test_a_part_belongs_to_its_division(division: Path) -> None:
    for file, read in (
        (ENTITIES_FILE, lambda: read_entities(division, 0, SIZES)),
        ("pair.npz", lambda: read_graphs(division, 0)),
        ("pair.npz", lambda: read_part(str(division), 0)),
    ):
        shutil.copy(part_folder(division, 1) / file, part_folder(division, 0))
        with pytest.raises(DataError, match="another part"):
            read()


def test_divisions_of_earlier_versions_can_be_joined(division: Path) -> None:
    content = json.loads((division / DIVISION_FILE).read_text())
    del content["sha256"]
    for one in content["parts"]:
        del one["entities"]
    write_checked_json(division / DIVISION_FILE, content)
    assert len(read_entities(division, 0, SIZES).source) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"parts": None},
        {"parts": []},
        {"parts": {}},
        {"parts": ["x"]},
        {"parts": [{}]},
        {"checksum": ["x"]},
        {"checksum": None},
        {"name": 1},
        {"overlap": "x"},
        {"overlap": float("nan")},
        {"lost": -1.0},
        {"num_matched": 1.5},
        {"separated": True},
    ],
)
def test_a_wrong_record_is_one_sentence(change: dict[str, Any], division: Path) -> None:
    content = json.loads((division / DIVISION_FILE).read_text())
    del content["sha256"]
    write_checked_json(division / DIVISION_FILE, content | change)
    with pytest.raises(DataError, match=r"division\.json is damaged: "):
        Division.read(division)


@pytest.mark.parametrize(
    "change",
    [
        {"checksum": ["x"]},
        {"checksum": {}},
        {"checksum": 1},
        {"entities": 1},
        {"entities": None},
        {"num_source": "1"},
        {"num_source": -1},
        {"num_train": None},
        {"num_triples": 1e300},
    ],
)
def test_a_wrong_record_of_a_part_is_one_sentence(
    change: dict[str, Any], division: Path
) -> None:
    content = json.loads((division / DIVISION_FILE).read_text())
    del content["sha256"]
    content["parts"][0] |= change
    write_checked_json(division / DIVISION_FILE, content)
    with pytest.raises(DataError, match=r"division\.json is damaged: "):
        Division.read(division)


@few_or_many(25, 2000)
def test_any_record_is_read_or_refused(division: Path, num_examples: int) -> None:
    path = division / DIVISION_FILE
    whole = path.read_bytes()
    content = json.loads(whole)
    del content["sha256"]

    def read(text: bytes) -> None:
        path.write_bytes(text)
        found = Division.read(division)
        assert {one.checksum: one for one in found.parts}
        found.write(division)
        assert Division.read(division) == found

    fuzz(damaged(whole) | changed_json(content), read, num_examples)


@few_or_many(12, 1000)
def test_any_entities_are_read_or_refused(division: Path, num_examples: int) -> None:
    path = part_folder(division, 0) / ENTITIES_FILE
    whole = path.read_bytes()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        found = read_entities(division, 0, SIZES)
        assert found.source.tolist() == ENTITIES[0].tolist()

    # without the checksum at the end, changes reach the checks of the arrays
    fuzz(damaged(whole) | damaged(whole[:-64]), read, num_examples)
