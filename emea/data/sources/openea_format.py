"""Reads pairs whose triples and links contain names (the layout of the OpenEA benchmark)."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emea.data.arrays import IntArray
from emea.data.attributes import PLAIN, AttributeTriples, chosen_labels
from emea.data.formats.literal_terms import literal_parts
from emea.data.formats.tab_file import TabTable, Vocabulary, read_table
from emea.data.formats.triple_collector import distinct_triples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit, assemble_pair, build_graph
from emea.data.iri_names import with_iri_names
from emea.data.links import LinkRegister
from emea.data.sources.download import locate, require_files
from emea.errors import DataError

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
    contains all links. ``<folds>/<fold>/{train,valid,test}_links`` are the official split. Entities
    that have a link but no triple are kept. The result has random entity ids.

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
        DataError: A file is missing or has a line that cannot be used.
    """
    path = locate(folder, root)
    require_files(path, FILES, f"{', '.join(FILES)} and the folds in {folds}")
    links = _read_links(path / "ent_links", "ent_links")
    register: LinkRegister[str] = LinkRegister()
    register.add(links.table, links.rows())
    source, sources = _read_side(path, "source", 1, links.sources)
    target, targets = _read_side(path, "target", 2, links.targets)
    if keep_literals:
        source = _with_attributes(path / "attr_triples_1", source, sources)
        target = _with_attributes(path / "attr_triples_2", target, targets)
        if iri_names:
            source, target = with_iri_names(source), with_iri_names(target)
    parts = _read_fold(path, folds, fold, register)
    official = OfficialSplit(*(_ids(part, sources, targets) for part in parts)) if parts else None
    return assemble_pair(name or path.name, source, target, _ids(links, sources, targets), official)


def _read_side(
    path: Path, side: str, number: int, linked: Sequence[str]
) -> tuple[KnowledgeGraph, Vocabulary[str]]:
    table = read_table(path / f"rel_triples_{number}", 3)
    columns = (table.names(0), table.names(1), table.names(2))
    home = f"{table.label} or ent_links"
    entities = Vocabulary([*columns[0], *columns[2], *linked], f"{side} entity", home)
    relations = Vocabulary(columns[1], "relation", table.label)
    graph = build_graph(table, columns, entities, relations, entities.keys, relations.keys)
    return graph, entities


def _with_attributes(
    path: Path, graph: KnowledgeGraph, entities: Vocabulary[str]
) -> KnowledgeGraph:
    """Return the graph with the literals of a file, except for entities that are not in the graph.

    A value is plain text, or an N-Triples literal with a language or a datatype.
    """
    if not path.is_file():
        return graph
    table = read_table(path, 3)
    known = {name: number for number, name in enumerate(entities.keys)}
    rows = [row for row, name in enumerate(table.columns[0]) if name in known]
    attributes = Vocabulary(sorted(set(table.columns[1])), "attribute", table.label)
    terms = sorted({table.columns[2][row] for row in rows})
    parts = [literal_parts(term) if LITERAL.fullmatch(term) else (term, PLAIN) for term in terms]
    kinds = sorted({kind for _, kind in parts})
    numbers = {term: number for number, term in enumerate(terms)}
    triples = np.stack(
        [
            np.array([known[table.columns[0][row]] for row in rows], dtype=np.int64),
            attributes.ids(table.columns[1], table)[rows],
            np.array([numbers[table.columns[2][row]] for row in rows], dtype=np.int64),
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


def _ids(links: _Links, sources: Vocabulary[str], targets: Vocabulary[str]) -> IntArray:
    table = links.table
    return np.stack([sources.ids(links.sources, table), targets.ids(links.targets, table)], axis=1)
