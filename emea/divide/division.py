"""The folder of a divided pair: a record, the settings of the data, and one folder per part."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.split import Supervision
from emea.errors import ConfigError, DataError
from emea.record.checked_files import (
    read_checked_arrays,
    read_checked_json,
    reading,
    write_checked_arrays,
    write_checked_json,
)
from emea.record.pair_file import SIDES, read_pair, write_pair
from emea.record.run_folder import PAIR_FILE

DIVISION_FILE, ENTITIES_FILE = "division.json", "entities.npz"


@dataclass(frozen=True, eq=False)
class PartEntities:
    """The entities of a part, by their ids in the whole graphs.

    Args:
        source: ``[n]`` source entities, ascending; their places are their ids in the part.
        target: ``[m]`` target entities, likewise.
        source_seen: ``[n]`` the share of each entity's triples that the part contains.
        target_seen: ``[m]`` the same for target entities.
    """

    source: IntArray
    target: IntArray
    source_seen: np.ndarray
    target_seen: np.ndarray


@dataclass(frozen=True)
class PartRecord:
    """The checksum and the size of a part."""

    checksum: str
    num_source: int
    num_target: int
    num_triples: int
    num_train: int
    num_validation: int


@dataclass(frozen=True)
class Division:
    """The record of a division.

    Args:
        name: The name of the pair.
        checksum: The checksum of the graphs, the training links and the validation links.
        overlap: The largest number of further entities of a part, relative to its own.
        num_matched: The number of matched pairs that the cut kept together.
        separated: The share of the validation links whose entities share no part; ``None`` without
            validation links.
        lost: The share of the triples that no part contains.
        parts: The parts.
    """

    name: str
    checksum: str
    overlap: float
    num_matched: int
    separated: float | None
    lost: float
    parts: tuple[PartRecord, ...]

    def write(self, folder: Path) -> None:
        """Write the record into the folder of the division."""
        write_checked_json(folder / DIVISION_FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> "Division":
        """Read the record of a division.

        Raises:
            DataError: If the folder contains no division, or a damaged one.
        """
        path = folder / DIVISION_FILE
        if not path.is_file():
            raise DataError(f"{folder} contains no finished division. Write one with emea divide.")
        content: dict[str, Any] = read_checked_json(path)
        with reading(path):
            parts = tuple(PartRecord(**one) for one in content.pop("parts"))
            return cls(**content, parts=parts)


def part_folder(division: Path, number: int) -> Path:
    """Return the folder of a part."""
    return division / f"part-{number}"


def visible_checksum(pair: GraphPair, known: Supervision) -> str:
    """Return the checksum of a pair without its test links."""
    links = np.concatenate([known.train, known.validation])
    return replace(pair, links=links, official=None, unmatched=None, num_absent=0).checksum()


def read_part(division: str | None, part: int) -> GraphPair:
    """Read a part of a divided pair; its links are training and validation links.

    Raises:
        ConfigError: If no division is named.
        DataError: If there is no such part.
    """
    if division is None:
        raise ConfigError("data=part needs data.division, a folder that emea divide wrote.")
    folder = Path(division).expanduser()
    num_parts = len(Division.read(folder).parts)
    if part >= num_parts:
        raise DataError(f"{folder} has no part {part}. Choose data.part from 0 to {num_parts - 1}.")
    return read_pair(part_folder(folder, part) / PAIR_FILE)


def read_entities(division: Path, number: int) -> PartEntities:
    """Read the entities of a part.

    Raises:
        DataError: If the file is missing or damaged.
    """
    path = part_folder(division, number) / ENTITIES_FILE
    arrays, record = read_checked_arrays(path), Division.read(division).parts[number]
    with reading(path):
        found = PartEntities(**arrays)
        if (len(found.source), len(found.target)) != (record.num_source, record.num_target):
            raise ValueError("it contains the entities of another part")
        return found


def write_part(
    division: Path, number: int, pair: GraphPair, known: Supervision, chosen: Sequence[IntArray]
) -> PartRecord:
    """Write a part and return its record.

    Args:
        division: The folder of the division.
        number: The number of the part.
        pair: The whole graphs.
        known: The training and validation links; no other links are written.
        chosen: The source and the target entities of the part, ascending.
    """
    folder, graphs = part_folder(division, number), (pair.source, pair.target)
    folder.mkdir(parents=True, exist_ok=True)
    source, target = (induced(graph, ids) for graph, ids in zip(graphs, chosen, strict=True))
    train, validation = (links_between(one, chosen) for one in (known.train, known.validation))
    rejected = None if pair.rejected is None else links_between(pair.rejected, chosen)
    part = GraphPair(
        f"{pair.name} part {number}",
        source,
        target,
        np.concatenate([train, validation]),
        OfficialSplit(train, validation, train[:0]),
        rejected=rejected if rejected is not None and len(rejected) else None,
        cardinality=pair.cardinality,
    )
    write_pair(folder / PAIR_FILE, part)
    seen = {}
    for side, graph, ids, inside in zip(SIDES, graphs, chosen, (source, target), strict=True):
        shares = inside.degrees() / np.maximum(graph.degrees()[ids], 1)
        seen[f"{side}_seen"] = shares.astype(np.float32)
    write_checked_arrays(folder / ENTITIES_FILE, source=chosen[0], target=chosen[1], **seen)
    sizes = source.num_entities, target.num_entities, source.num_triples + target.num_triples
    return PartRecord(part.checksum(), *sizes, len(train), len(validation))


def induced(graph: KnowledgeGraph, entities: IntArray) -> KnowledgeGraph:
    """Return the graph of some entities, given in ascending order; relations keep their ids."""
    new_ids = np.full(graph.num_entities, -1, dtype=np.int64)
    new_ids[entities] = np.arange(len(entities))
    return graph.relabelled(new_ids)


def are_inside(links: IntArray, chosen: Sequence[IntArray]) -> np.ndarray:
    """Return which links are between the chosen source and target entities."""
    return np.isin(links[:, 0], chosen[0]) & np.isin(links[:, 1], chosen[1])


def links_between(links: IntArray, chosen: Sequence[IntArray]) -> IntArray:
    """Return the links between the chosen source and target entities, in the ids of the part."""
    columns = zip(chosen, links[are_inside(links, chosen)].T, strict=True)
    found: IntArray = np.stack([np.searchsorted(ids, column) for ids, column in columns], axis=1)
    return found
