"""Reads pairs whose triples and links contain integer ids (DBP15K, DWY100K, ContEA)."""

import logging
from pathlib import Path

import numpy as np

from emea.data.arrays import IntArray
from emea.data.formats.tab_file import IdNumbers, read_ids, read_table
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.links import LinkRegister
from emea.data.names import with_iri_names
from emea.data.sorting import distinct_ids, packed_rows
from emea.data.sources.download import (
    GITHUB_RAW,
    ensure_downloaded,
    locate,
    require_files,
)
from emea.data.sources.settings import IdFormatSettings
from emea.errors import DataError

log = logging.getLogger(__name__)

TRIPLE_FILES = ("triples_1", "triples_2")
# Training and validation come first: links that the reference file repeats are not test links.
LINK_FILES = ("sup_ent_ids", "valid_ent_ids", "ref_ent_ids")
CONTENT = (
    f"{', '.join(TRIPLE_FILES)}, at least one of {', '.join(LINK_FILES)}, and if they exist "
    "ent_ids_1, ent_ids_2 and rel_ids_1, rel_ids_2 or rel_dict"
)


def read_id_format(
    folder: str | Path,
    *,
    name: str | None = IdFormatSettings.name,
    root: str | Path | None = None,
    download: str | None = IdFormatSettings.download,
    keep_literals: bool = False,
    iri_names: bool = IdFormatSettings.iri_names,
    base_url: str = GITHUB_RAW,
) -> GraphPair:
    """Read a pair that is written with integer ids.

    ``triples_1`` and ``triples_2`` contain head, relation and tail. ``ent_ids_*`` list the entities
    and their names. Without them the entities are those of the triples. The links come from
    ``sup_ent_ids``, ``valid_ent_ids`` and ``ref_ent_ids``, as far as they exist. If a name is
    missing, the id in the files is used as the name. The result has random entity ids.

    Args:
        folder: The folder of the pair, relative to the root.
        name: The name of the pair in results. The default is the name of the folder.
        root: The data root. The default is the variable ``EMEA_DATA``, or ``data``.
        download: The key in ``sources.json`` with which missing files are downloaded, if any.
        keep_literals: Whether to keep literals. This layout has none except for ``iri_names``.
        iri_names: Whether to make a name literal from the local part of each IRI, if literals are
            kept.
        base_url: The server of the download.

    Returns:
        The pair. If ``sup_ent_ids`` exists, the pair has an official split: ``sup_ent_ids`` for
        training, ``valid_ent_ids`` for validation, and the other links of ``ref_ent_ids`` for the
        evaluation.

    Raises:
        DataError: A file is missing or has a line that cannot be used.
    """
    path = locate(folder, root)
    if download is not None:
        ensure_downloaded(path, download, base_url)
    require_files(path, TRIPLE_FILES, CONTENT)
    source, source_entities = _read_side(path, "source", 1)
    target, target_entities = _read_side(path, "target", 2)
    if keep_literals and iri_names:
        source = with_iri_names(source)
        target = with_iri_names(target)
    parts = _read_links(path, source_entities, target_entities)
    links = np.concatenate(list(parts.values()))
    official = None
    # A reference file without training links contains all links, as in DBP15K.
    if "sup_ent_ids" in parts:
        train, validation, test = (parts.get(file, links[:0]) for file in LINK_FILES)
        official = OfficialSplit(train, validation, test)
    return GraphPair(name or path.name, source, target, links, official).shuffled()


def _read_side(path: Path, side: str, number: int) -> tuple[KnowledgeGraph, IdNumbers]:
    """Return a graph, in which repeated triples count once, and the numbers of its entities."""
    table, values = read_ids(path / f"triples_{number}", 3)
    heads, relation_column, tails = values.T
    entities, entity_names = _read_entities(
        path, side, number, np.concatenate([heads, tails])
    )
    relations = IdNumbers(distinct_ids(relation_column), "relation", table.label)
    given: dict[int, str] = {}
    for file in ("rel_dict", f"rel_ids_{number}"):
        if (path / file).is_file():
            listed = read_table(path / file, 2)
            given.update(
                zip(listed.integers(0).tolist(), listed.columns[1], strict=True)
            )
    relation_names = [
        given.get(relation, str(relation)) for relation in relations.keys.tolist()
    ]
    columns = (entities.of(heads, table), relations.of(relation_column, table))
    triples = np.stack([*columns, entities.of(tails, table)], axis=1)
    keys = packed_rows(list(triples.T), (triples.max(axis=0) + 1).tolist())
    if num_repeated := len(keys) - len(distinct_ids(keys)):
        log.warning("%s: %d repeated triples left out", table.label, num_repeated)
        triples = triples[np.sort(np.unique(keys, return_index=True)[1])]
    sizes = len(entity_names), len(relation_names)
    return KnowledgeGraph(triples, *sizes, entity_names, relation_names), entities


def _read_entities(
    path: Path, side: str, number: int, in_triples: IntArray
) -> tuple[IdNumbers, list[str]]:
    what = f"{side} entity"
    listing = path / f"ent_ids_{number}"
    if not listing.is_file():
        entities = IdNumbers(distinct_ids(in_triples), what, f"triples_{number}")
        return entities, list(map(str, entities.keys.tolist()))
    table = read_table(listing, 2)
    ids = table.integers(0)
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    if len(first) < len(ids):
        row = int(np.argmax(first[place] < np.arange(len(ids))))
        message = f"entity {ids[row]} is already listed in line {first[place[row]] + 1}"
        raise table.error(row, message)
    return IdNumbers(ids, what, table.label), table.columns[1]


def _read_links(
    path: Path, sources: IdNumbers, targets: IdNumbers
) -> dict[str, IntArray]:
    """Return the links of each existing file, without links of earlier files."""
    found = [path / file for file in LINK_FILES if (path / file).is_file()]
    if not found:
        raise DataError(
            f"The folder {path} has no links. It needs at least one of {', '.join(LINK_FILES)}."
        )
    register: LinkRegister[int] = LinkRegister()
    parts = {}
    for file in found:
        table, values = read_ids(file, 2)
        links = np.stack(
            [sources.of(values[:, 0], table), targets.of(values[:, 1], table)], axis=1
        )
        # The reference file of some data sets contains all links, including training links.
        rows = register.add(
            table, map(tuple, values.tolist()), file.name == "ref_ent_ids"
        )
        # The order of the lines must not matter. The published files of DBP15K have this order.
        new = np.array(rows, dtype=np.int64)
        parts[file.name] = links[new[np.lexsort(values[new].T)]]
    return parts
