"""The graphs and links of a run: from its folder, or from the data set that its config names.

The folder of a run stores graphs that came from memory or from files of the user, so that the run
can be resumed, queried and explained later and elsewhere. The file contains only arrays of numbers:
names are UTF-8 bytes and their lengths, so reading it cannot execute code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from emea.config.instantiate import factory
from emea.config.paths import PART_READER, READER
from emea.data.arrays import IntArray
from emea.data.attributes import AttributeTriples, Kind
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.links import silent_links
from emea.data.settings import Cardinality
from emea.data.vectors import EntityVectors
from emea.errors import ConfigError, DataError
from emea.record.checked_files import read_checked_arrays, write_checked_arrays
from emea.record.run_folder import PAIR_FILE

Arrays = Mapping[str, np.ndarray]

HOST_SETTINGS = {"download", "base_url"}
"""Settings of data that contact a host, which a stored configuration must not decide."""

SIDES = ("source", "target")
PARTS = ("train", "validation", "test")
ENCODING = ("utf-8", "surrogatepass")
"""A name from memory may contain invalid characters, which must be restored unchanged."""


def keeps_graphs(config: DictConfig) -> bool:
    """Return whether the folder of a run stores its graphs, because no data set has them."""
    return config.data.get("_target_") in (None, READER, PART_READER)


def pair_of_run(folder: Path, config: DictConfig, resumes: bool = False) -> GraphPair:
    """Return the graphs of a run, from its folder or from the data that its config names.

    A data set that is not in the run's ``data.root`` is looked up in ``EMEA_DATA``.

    Args:
        folder: The folder of the run.
        config: Its configuration.
        resumes: Whether the run is resumed. Its files are then read again, if they still exist, to
            notice changes.

    Missing files are not downloaded; ``emea data NAME`` downloads those of a public data set.

    Raises:
        DataError: If the folder contains no graphs, and the data is missing.
    """
    path = folder / PAIR_FILE
    names = [config.data.get(key) for key in ("source", "target", "links")]
    has_files = all(Path(str(name)).expanduser().is_file() for name in names if name)
    if path.exists() and not (resumes and any(names) and has_files):
        return read_pair(path)
    if "_target_" not in config.data:
        raise DataError(
            f"{folder} was created from in-memory graphs through the Python API, and its "
            f"{PAIR_FILE} is missing. Restore that file or fit again."
        )
    config = config.copy()
    for key in HOST_SETTINGS & config.data.keys():
        config.data[key] = None
    root = config.data.get("root")
    part = str(config.data.get("folder", ""))
    if root is not None and not (Path(root).expanduser() / part).exists():
        config.data.root = None  # the default
    try:
        with silent_links():
            return load_pair(config)
    except DataError as error:
        if config.data._target_ != READER:
            raise
        raise DataError(
            f"{folder} has no {PAIR_FILE}, so the files of its graphs are read again: {error}. "
            "Restore them, or run the command in the folder from which the run was started."
        ) from error


def load_pair(config: DictConfig) -> GraphPair:
    """Read the pair of graphs that the config names, without importing torch.

    Raises:
        ConfigError: If the data cannot be created, or is not a pair of graphs.
        DataError: If a file cannot be used.
    """
    pair = factory(config.data, keep_name=True)()
    if not isinstance(pair, GraphPair):
        raise ConfigError(
            f"{config.data._target_} does not give a pair of graphs. Choose another data option."
        )
    cardinality = Cardinality(config.get("cardinality", Cardinality.ONE_TO_ONE))
    return (
        pair
        if pair.cardinality == cardinality
        else replace(pair, cardinality=cardinality)
    )


def write_pair(path: Path, pair: GraphPair) -> None:
    """Write graphs, names, links and official splits, atomically."""
    num_missed = 0 if pair.official is None else pair.official.num_absent
    found: dict[str, Any] = {
        "links": pair.links,
        "name": [pair.name],
        "cardinality": [str(pair.cardinality)],
        "rejected": pair.rejected,
        "unmatched": pair.unmatched,
        "num_absent": np.array([pair.num_absent, num_missed]),
        **{part: getattr(pair.official, part, None) for part in PARTS},
    }
    for side, graph in zip(SIDES, (pair.source, pair.target), strict=True):
        found |= {
            f"{side}_{name}": value for name, value in _graph_values(graph).items()
        }
    arrays: dict[str, np.ndarray] = {}
    for key, value in found.items():
        if isinstance(value, np.ndarray):
            arrays[key] = _small(value)
        elif value is not None:
            arrays |= _text_arrays(key, value)
    write_checked_arrays(path, **arrays)


def _graph_values(graph: KnowledgeGraph) -> dict[str, Any]:
    """Return the arrays and texts of a graph by name; ``None`` for those that it lacks."""
    found: dict[str, Any] = {
        "size": np.array([graph.num_entities, graph.num_relations]),
        "triples": graph.triples,
        "entities": graph.entity_names,
        "relations": graph.relation_names,
        "labels": graph.labels,
        "entity_kinds": graph.kinds,
        "vectors": [one.name for one in graph.vectors],
    }
    for number, one in enumerate(graph.vectors):
        found |= {
            f"vectors_{number}": one.values,
            f"vectors_{number}_entities": one.entities,
        }
    if (attributes := graph.attributes) is not None:
        found |= {
            "literals": attributes.triples,
            "kinds": attributes.kinds,
            "attributes": attributes.attribute_names,
            "values": attributes.values,
            "kind_names": [part for kind in attributes.kind_names for part in kind],
        }
    return found


def read_pair(path: Path) -> GraphPair:
    """Read graphs and links back.

    Raises:
        DataError: If the file cannot be read, or is damaged.
    """
    arrays = read_checked_arrays(path)
    try:
        source, target = (_graph(arrays, side) for side in SIDES)
        num_absent, num_missed = map(int, _numbers(arrays, "num_absent", 0))
        official = None
        if "train" in arrays:
            train, validation, test = (_numbers(arrays, part, 2) for part in PARTS)
            official = OfficialSplit(train, validation, test, num_missed)
        return GraphPair(
            _texts(arrays, "name")[0],
            source,
            target,
            _numbers(arrays, "links", 2),
            official,
            num_absent=num_absent,
            cardinality=Cardinality(_texts(arrays, "cardinality")[0]),
            rejected=_numbers(arrays, "rejected", 2) if "rejected" in arrays else None,
            unmatched=_numbers(arrays, "unmatched", 0)
            if "unmatched" in arrays
            else None,
        )
    # DataError means that an id is outside its graph, or that an entity has several links
    except (DataError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}") from error


def _graph(arrays: Arrays, side: str) -> KnowledgeGraph:
    num_entities, num_relations = map(int, _numbers(arrays, f"{side}_size", 0))
    sizes = {
        "entities": num_entities,
        "relations": num_relations,
        "labels": num_entities,
    }
    named: dict[str, list[str] | None] = dict.fromkeys(sizes)
    for what, size in sizes.items():
        if f"{side}_{what}_lengths" in arrays:
            named[what] = texts = _texts(arrays, f"{side}_{what}")
            if len(texts) != size:
                raise ValueError(f"it has {len(texts)} names for {size} {side} {what}")
    attributes = None
    if f"{side}_literals" in arrays:
        parts = _texts(
            arrays, f"{side}_kind_names"
        )  # languages and datatypes alternate
        attributes = AttributeTriples(
            _numbers(arrays, f"{side}_literals", 3),
            _texts(arrays, f"{side}_attributes"),
            _texts(arrays, f"{side}_values"),
            _numbers(arrays, f"{side}_kinds", 0),
            [Kind(*both) for both in zip(parts[::2], parts[1::2], strict=True)],
        )
    return KnowledgeGraph(
        _numbers(arrays, f"{side}_triples", 3),
        num_entities,
        num_relations,
        named["entities"],
        named["relations"],
        attributes,
        named["labels"],
        _numbers(arrays, key, 0) if (key := f"{side}_entity_kinds") in arrays else None,
        _vectors(arrays, side),
    )


def _vectors(arrays: Arrays, side: str) -> tuple[EntityVectors, ...]:
    found = []
    for number, name in enumerate(_texts(arrays, f"{side}_vectors")):
        entities = _numbers(arrays, f"{side}_vectors_{number}_entities", 0)
        values = arrays[f"{side}_vectors_{number}"]
        if (
            values.dtype != np.float32
            or values.ndim != 2
            or len(values) != len(entities)
        ):
            raise ValueError(f"{side}_vectors_{number} has the wrong type or shape")
        found.append(EntityVectors(name, entities, values))
    return tuple(found)


def _numbers(arrays: Arrays, key: str, columns: int) -> IntArray:
    """Return an array of integers with this many columns; 0 means that it has one dimension."""
    array = arrays[key]
    has_shape = array.ndim >= 1 and array.shape[1:] == ((columns,) if columns else ())
    if array.dtype.kind != "i" or not has_shape:
        raise ValueError(f"{key} has the wrong type or shape")
    return array.astype(np.int64)


def _small(numbers: np.ndarray) -> np.ndarray:
    """Return an array of integers with 32 bits if its values allow it."""
    if numbers.dtype.kind != "i":
        return numbers
    fits = not numbers.size or int(np.abs(numbers).max()) <= np.iinfo(np.int32).max
    return numbers.astype(np.int32) if fits else numbers


def _text_arrays(key: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    encoded = [text.encode(*ENCODING) for text in texts]
    return {
        f"{key}_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{key}_lengths": np.fromiter(map(len, encoded), np.int32, len(encoded)),
    }


def _texts(arrays: Arrays, key: str) -> list[str]:
    content = arrays[f"{key}_bytes"].tobytes()
    lengths = _numbers(arrays, f"{key}_lengths", 0)
    ends = np.cumsum(lengths)
    if (lengths < 0).any() or (ends[-1] if len(ends) else 0) != len(content):
        raise ValueError(f"the lengths in {key} do not match its names")
    starts = (ends - lengths).tolist()
    parts = zip(starts, ends.tolist(), strict=True)
    return [content[start:end].decode(*ENCODING) for start, end in parts]
