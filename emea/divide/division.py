"""The folder of a divided pair: a record, the settings of the data, and one folder per part."""

import hashlib
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.split import Supervision
from emea.divide.settings import PartSettings
from emea.errors import ConfigError, DataError
from emea.record.checked_files import (
    read_checked_arrays,
    read_checked_json,
    reading,
    remove_leftovers,
    write_checked_arrays,
    write_checked_json,
)
from emea.record.pair_file import SIDES, read_pair, write_pair
from emea.record.run_folder import CONFIG_FILE, PAIR_FILE
from emea.record.run_record import parsed_record

DIVISION_FILE, ENTITIES_FILE = "division.json", "entities.npz"
PART_FOLDER = "part-"

MOST_PARTS = 100_000


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

    def checksum(self) -> str:
        """Return the SHA-256 of all arrays."""
        digest = hashlib.sha256()
        for side in SIDES:
            entities: IntArray = getattr(self, side)
            seen: np.ndarray = getattr(self, f"{side}_seen")
            digest.update(f"{side} {len(entities)}\n".encode())
            digest.update(entities.astype("<i8").tobytes())
            digest.update(seen.astype("<f4").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class PartRecord:
    """The checksums and the sizes of a part.

    Args:
        checksum: The checksum of its graphs and links.
        num_source: The number of its source entities.
        num_target: The number of its target entities.
        num_triples: The number of the triples of both of its graphs.
        num_train: The number of its training links.
        num_validation: The number of its validation links.
        entities: The checksum of its entities; ``None`` in divisions of earlier versions.
    """

    checksum: str
    num_source: int
    num_target: int
    num_triples: int
    num_train: int
    num_validation: int
    entities: str | None = None


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
            raise DataError(
                f"{folder} contains no finished division. Write one with emea divide."
            )
        content: dict[str, Any] = read_checked_json(path)
        with reading(path):
            parts = _parts(content.pop("parts", None))
            numbers = (content.get(name) for name in ("overlap", "separated", "lost"))
            if not all(
                one is None or (_is_number(one) and one >= 0) for one in numbers
            ):
                raise ValueError("one of its shares is not a number from 0")
            return parsed_record(cls, {**content, "parts": parts})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _parts(listed: Any) -> tuple[PartRecord, ...]:
    """Return the records of the parts.

    Raises:
        ValueError: If they cannot be used.
    """
    if not isinstance(listed, list) or not 0 < len(listed) <= MOST_PARTS:
        raise ValueError("it lists no parts")
    if not all(isinstance(one, dict) for one in listed):
        raise ValueError("one of its parts is not a record")
    parts = tuple(parsed_record(PartRecord, _with_entities(one)) for one in listed)
    sizes = [
        size for one in parts for size in asdict(one).values() if isinstance(size, int)
    ]
    if min(sizes) < 0:
        raise ValueError("the size of a part is negative")
    if len({one.checksum for one in parts}) < len(parts):
        raise ValueError("two of its parts have the same checksum")
    return parts


def _with_entities(part: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a part; those of earlier versions lack the checksum of its entities.

    Raises:
        ValueError: If it has the key without a checksum.
    """
    if part.get("entities", "") is None:
        raise ValueError("one of its parts has no checksum of its entities")
    return {"entities": None, **part}


def part_folder(division: Path, number: int) -> Path:
    """Return the folder of a part."""
    return division / f"{PART_FOLDER}{number}"


def remove_unfinished(division: Path) -> None:
    """Remove what a division has written before its record; other files stay."""
    for folder in division.glob(f"{PART_FOLDER}*"):
        if folder.is_symlink() or not folder.is_dir():
            continue
        remove_leftovers(folder)
        for name in (PAIR_FILE, ENTITIES_FILE):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # it has files of the user
            folder.rmdir()
    (division / CONFIG_FILE).unlink(missing_ok=True)


def visible_checksum(pair: GraphPair, known: Supervision) -> str:
    """Return the checksum of a pair without its test links."""
    links = np.concatenate([known.train, known.validation])
    return replace(
        pair, links=links, official=None, unmatched=None, num_absent=0
    ).checksum()


def read_part(
    division: str | None = PartSettings.division, part: int = PartSettings.part
) -> GraphPair:
    """Read a part of a divided pair; its links are training and validation links.

    Raises:
        ConfigError: If no division is named.
        DataError: If there is no such part.
    """
    if division is None:
        raise ConfigError(
            "data=part needs data.division, a folder that emea divide wrote."
        )
    folder = Path(division).expanduser()
    num_parts = len(Division.read(folder).parts)
    if part >= num_parts:
        raise DataError(
            f"{folder} has no part {part}. Choose data.part from 0 to {num_parts - 1}."
        )
    return read_graphs(folder, part)


def read_graphs(division: Path, number: int) -> GraphPair:
    """Read the graphs and links of a part.

    Raises:
        DataError: If the file is missing or damaged, or belongs to another part or division.
    """
    path = part_folder(division, number) / PAIR_FILE
    found = read_pair(path)
    if found.checksum() != Division.read(division).parts[number].checksum:
        raise DataError(
            f"{path} belongs to another part or division. Restore it or divide again."
        )
    return found


def read_entities(division: Path, number: int, sizes: tuple[int, int]) -> PartEntities:
    """Read the entities of a part.

    Args:
        division: The folder of the division.
        number: The number of the part.
        sizes: The numbers of source and target entities of the whole graphs.

    Raises:
        DataError: If the file is missing or damaged, or belongs to another part or division.
    """
    path = part_folder(division, number) / ENTITIES_FILE
    arrays = read_checked_arrays(path)
    record = Division.read(division).parts[number]
    with reading(path):
        if arrays.keys() != {one.name for one in fields(PartEntities)}:
            raise ValueError(f"it contains the arrays {', '.join(sorted(arrays))}")
        expected = (record.num_source, record.num_target)
        for side, size, num_wanted in zip(SIDES, sizes, expected, strict=True):
            _check_entities(side, arrays[side], size)
            _check_seen(side, arrays[f"{side}_seen"], len(arrays[side]))
            if len(arrays[side]) != num_wanted:
                raise ValueError("it contains the entities of another part")
        found = PartEntities(**arrays)
        if record.entities not in (None, found.checksum()):
            raise ValueError("it contains the entities of another part or division")
        return found


def _check_entities(side: str, entities: np.ndarray, size: int) -> None:
    """Raise an error unless an array contains ids of a graph in ascending order."""
    if entities.dtype != np.int64 or entities.ndim != 1 or not len(entities):
        raise ValueError(f"its {side} entities have the wrong type or shape")
    if (np.diff(entities) <= 0).any():
        raise ValueError(f"its {side} entities are not in ascending order")
    if entities[0] < 0 or entities[-1] >= size:
        raise ValueError(
            f"its {side} entities are not those of a graph with {size:,} entities"
        )


def _check_seen(side: str, seen: np.ndarray, num_entities: int) -> None:
    """Raise an error unless an array contains one share for each entity."""
    if seen.dtype != np.float32 or seen.shape != (num_entities,):
        raise ValueError(
            f"its shares of the {side} triples have the wrong type or shape"
        )
    if not ((seen >= 0) & (seen <= 1)).all():  # NaN is neither
        raise ValueError(f"its shares of the {side} triples are not between 0 and 1")


def write_part(
    division: Path,
    number: int,
    pair: GraphPair,
    known: Supervision,
    chosen: Sequence[IntArray],
) -> PartRecord:
    """Write a part and return its record.

    Args:
        division: The folder of the division.
        number: The number of the part.
        pair: The whole graphs.
        known: The training and validation links; no other links are written.
        chosen: The source and the target entities of the part, ascending.
    """
    folder = part_folder(division, number)
    graphs = (pair.source, pair.target)
    folder.mkdir(parents=True, exist_ok=True)
    source, target = (
        induced(graph, ids) for graph, ids in zip(graphs, chosen, strict=True)
    )
    train, validation = (
        links_between(one, chosen) for one in (known.train, known.validation)
    )
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
    for side, graph, ids, inside in zip(
        SIDES, graphs, chosen, (source, target), strict=True
    ):
        shares = inside.degrees() / np.maximum(graph.degrees()[ids], 1)
        seen[f"{side}_seen"] = shares.astype(np.float32)
    entities = PartEntities(source=chosen[0], target=chosen[1], **seen)
    arrays = {one.name: getattr(entities, one.name) for one in fields(entities)}
    write_checked_arrays(folder / ENTITIES_FILE, **arrays)
    return PartRecord(
        checksum=part.checksum(),
        num_source=source.num_entities,
        num_target=target.num_entities,
        num_triples=source.num_triples + target.num_triples,
        num_train=len(train),
        num_validation=len(validation),
        entities=entities.checksum(),
    )


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
    found: IntArray = np.stack(
        [np.searchsorted(ids, column) for ids, column in columns], axis=1
    )
    return found
