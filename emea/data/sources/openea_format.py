"""Reads pairs whose triples and links contain names (the layout of the OpenEA benchmark)."""

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.attributes import PLAIN, AttributeTriples, chosen_labels, literal_parts
from emea.data.formats.tab_file import TabTable, Vocabulary, read_table
from emea.data.formats.triple_collector import build_graph, distinct_triples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import (
    GraphPair,
    OfficialSplit,
    assemble_pair,
    sorted_links,
)
from emea.data.links import LinkRegister
from emea.data.names import with_iri_names
from emea.data.sources.download import locate, require_files
from emea.errors import DataError

log = logging.getLogger(__name__)

FILES = ("rel_triples_1", "rel_triples_2", "ent_links")
LITERAL = re.compile(r'"[^"]*"(?:@[A-Za-z][A-Za-z0-9-]*|\^\^<[^>]*>)?')
FOLD_FILES = ("train_links", "valid_links", "test_links")


class _Links(NamedTuple):
    """The table of a link file and its two columns."""

    table: TabTable
    sources: list[str]
    targets: list[str]

    def rows(self) -> list[tuple[str, str]]:
        return list(zip(self.sources, self.targets, strict=True))


def read_openea_format(
    folder: str | Path,
    name: str | None = None,
    fold: int = 1,
    folds: str = "721_5fold",
    root: str | Path | None = None,
    keep_literals: bool = False,
    iri_names: bool = False,
) -> GraphPair:
    """Read a pair in the OpenEA layout.

    ``rel_triples_1`` and ``rel_triples_2`` contain head, relation and tail, and ``ent_links``
    contains all links. ``<folds>/<fold>/{train,valid,test}_links`` are the official split. The
    result has random entity ids.

    Only triples define the entities of a graph, and literals if they are kept. A link whose source
    or target has no triple is not used for training. If it is a test link, it counts as missed.
    Test links therefore cannot change the graphs.

    Args:
        folder: The folder of the pair, relative to the root.
        name: The name of the pair in results. The default is the name of the folder.
        fold: The number of the official fold.
        folds: The subfolder with the folds. Without it the pair has no official split.
        root: The data root. The default is the variable ``EMEA_DATA``, or ``data``.
        keep_literals: Whether to keep the literals of ``attr_triples_1`` and ``attr_triples_2``, if
            these files exist.
        iri_names: Whether to make a name literal from the local part of each IRI, if literals are
            kept.

    Raises:
        DataError: A file is missing or has a line that cannot be used, or no link connects two
            entities that have triples.
    """
    path = locate(folder, root)
    require_files(path, FILES, f"{', '.join(FILES)} and the folds in {folds}")
    links = _read_links(path / "ent_links", "ent_links")
    register: LinkRegister[str] = LinkRegister()
    register.add(links.table, links.rows())
    source, target = (_read_side(path, number, keep_literals) for number in (1, 2))
    if keep_literals and iri_names:
        source, target = with_iri_names(source), with_iri_names(target)
    known, num_absent = _ids(links, source, target)
    if not len(known):
        raise DataError(
            f"{links.table.label}: no link connects two entities that have triples. Check that "
            "rel_triples_1 and rel_triples_2 use the names of the links."
        )
    if num_absent:
        log.warning(
            "%s: %d of %d links have a source or target without triples: they are not used for "
            "training, and test links among them count as missed",
            links.table.label,
            num_absent,
            len(links.sources),
        )
    parts = _read_fold(path, folds, fold, register)
    official = None
    if parts is not None:
        (train, _), (validation, _), (test, num_missed) = (
            _ids(part, source, target) for part in parts
        )
        official = OfficialSplit(train, validation, test, num_missed)
    return assemble_pair(name or path.name, source, target, known, official, num_absent)


def _read_side(path: Path, number: int, keep_literals: bool) -> KnowledgeGraph:
    """Return a graph whose entities and relations are numbered by name.

    The order of the lines of a file does not matter.
    """
    table = read_table(path / f"rel_triples_{number}", 3)
    columns = (table.names(0), table.names(1), table.names(2))
    attributes = None
    if keep_literals and (path / f"attr_triples_{number}").is_file():
        attributes = read_table(path / f"attr_triples_{number}", 3)
    described = [] if attributes is None else attributes.names(0)
    entities = Vocabulary(sorted({*columns[0], *columns[2], *described}), "entity", table.label)
    relations = Vocabulary(sorted(set(columns[1])), "relation", table.label)
    heads, tails = entities.ids(columns[0], table), entities.ids(columns[2], table)
    triples = np.stack([heads, relations.ids(columns[1], table), tails], axis=1)
    graph = build_graph(table.label, triples, entities.keys, relations.keys)
    graph = replace(graph, triples=distinct_triples(graph.triples))
    return graph if attributes is None else _with_attributes(graph, attributes, entities)


def _with_attributes(
    graph: KnowledgeGraph, table: TabTable, entities: Vocabulary[str]
) -> KnowledgeGraph:
    """Return the graph with the literals of a table.

    A value is plain text, or an N-Triples literal with a language or a datatype.
    """
    attributes = Vocabulary(sorted(set(table.columns[1])), "attribute", table.label)
    terms = Vocabulary(sorted(set(table.columns[2])), "value", table.label)
    parts = [
        literal_parts(term) if LITERAL.fullmatch(term) else (term, PLAIN) for term in terms.keys
    ]
    kinds = sorted({kind for _, kind in parts})
    triples = np.stack(
        [
            vocabulary.ids(column, table)
            for vocabulary, column in zip((entities, attributes, terms), table.columns, strict=True)
        ],
        axis=1,
    )
    literals = AttributeTriples(
        distinct_triples(triples),
        attributes.keys,
        [text for text, _ in parts],
        np.array([kinds.index(kind) for _, kind in parts], dtype=np.int64),
        kinds,
    )
    labels = chosen_labels(literals, graph.num_entities)
    return replace(graph, attributes=literals, labels=labels if any(labels) else None)


def _read_links(path: Path, label: str) -> _Links:
    table = read_table(path, 2, label)
    return _Links(table, table.names(0), table.names(1))


def _read_fold(
    path: Path, folds: str, fold: int, all_links: LinkRegister[str]
) -> list[_Links] | None:
    if not (path / folds).is_dir():
        return None
    if not (path / folds / str(fold)).is_dir():
        there = ", ".join(sorted(entry.name for entry in (path / folds).iterdir()))
        raise DataError(
            f"The folder {path / folds} has no fold {fold}. It contains {there or 'nothing'}."
        )
    parts = []
    register: LinkRegister[str] = LinkRegister()
    for file in FOLD_FILES:
        part = _read_links(path / folds / str(fold) / file, f"{folds}/{fold}/{file}")
        all_links.check_contains(part.table, part.rows(), "ent_links")
        register.add(part.table, part.rows())
        parts.append(part)
    return parts


def _ids(links: _Links, source: KnowledgeGraph, target: KnowledgeGraph) -> tuple[IntArray, int]:
    """Return the sorted links between entities of the graphs, and the number of other links."""
    columns = []
    for graph, names in ((source, links.sources), (target, links.targets)):
        numbers = {name: number for number, name in enumerate(graph.all_entity_names)}
        columns.append([numbers.get(name, NO_MATCH) for name in names])
    found = np.array(columns, dtype=np.int64).T
    present = found[(found != NO_MATCH).all(1)]
    return sorted_links(present), len(found) - len(present)
