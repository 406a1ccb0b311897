"""Reads pairs whose triples and links contain names (the layout of the OpenEA benchmark)."""

import logging
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from emea.data.arrays import NO_MATCH, IntArray
from emea.data.attributes import PLAIN, Kind, literal_parts
from emea.data.formats.tab_file import TabTable, read_table
from emea.data.formats.triple_collector import TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit, sorted_links
from emea.data.links import EntityFinder, LinkRegister, read_entities
from emea.data.names import Prefixes, with_iri_names
from emea.data.sources.download import locate, require_files
from emea.data.sources.settings import OpenEASettings
from emea.errors import DataError

log = logging.getLogger(__name__)

FILES = ("rel_triples_1", "rel_triples_2", "ent_links")
LITERAL = re.compile(r'"[^"]*"(?:@[A-Za-z][A-Za-z0-9-]*|\^\^<[^>]*>)?')
FOLD_FILES = ("train_links", "valid_links", "test_links")


def read_openea_format(
    folder: str | Path,
    *,
    name: str | None = OpenEASettings.name,
    fold: int = OpenEASettings.fold,
    folds: str = OpenEASettings.folds,
    root: str | Path | None = None,
    keep_literals: bool = False,
    iri_names: bool = OpenEASettings.iri_names,
    unmatched: str | None = OpenEASettings.unmatched,
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
        unmatched: A file in the folder whose first column names source entities that have no
            counterpart. Entities without triples are left out.

    Raises:
        DataError: A file is missing or has a line that cannot be used, or no link connects two
            entities that have triples.
    """
    path = locate(folder, root)
    require_files(path, FILES, f"{', '.join(FILES)} and the folds in {folds}")
    pair = read_named_pair(
        path,
        _fold_folder(path / folds, fold),
        keep_literals,
        iri_names,
        None if unmatched is None else path / unmatched,
    )
    return replace(pair, name=name or path.name)


def read_named_pair(
    path: Path,
    parts_folder: Path | None,
    keep_literals: bool,
    iri_names: bool,
    unmatched: Path | None,
) -> GraphPair:
    """Read graphs and links with names, the parts of the split, and unmatched entities.

    Args:
        path: The folder of the pair.
        parts_folder: The folder with the training, validation and test links, if there is one.
        keep_literals: Whether to keep literals.
        iri_names: Whether to make names from IRIs, if literals are kept.
        unmatched: A file whose first column names source entities without a counterpart.
    """
    links = _read_links(path / "ent_links", "ent_links")
    register: LinkRegister[str] = LinkRegister()
    register.add(links, links.pairs())
    source, target = (_read_side(path, number, keep_literals) for number in (1, 2))
    if keep_literals and iri_names:
        source = with_iri_names(source)
        target = with_iri_names(target)
    known, num_absent = _known_links(links, source, target)
    official = None
    if parts_folder is not None:
        parts = _read_parts(path, parts_folder, register)
        train, validation, test = (_ids(part, source, target) for part in parts)
        official = OfficialSplit(train[0], validation[0], *test)
    without = None
    if unmatched is not None:
        finder = EntityFinder(source, "source", "rel_triples_1")
        without = read_entities(unmatched, finder, Prefixes())
    pair = GraphPair(path.name, source, target, known, official, num_absent=num_absent)
    return replace(pair, unmatched=without).shuffled()


def _known_links(
    links: TabTable, source: KnowledgeGraph, target: KnowledgeGraph
) -> tuple[IntArray, int]:
    """Return the links between entities of the graphs, and log the number of other links."""
    known, num_absent = _ids(links, source, target)
    if not len(known):
        raise DataError(
            f"{links.label}: no link connects two entities that have triples. Check that "
            "rel_triples_1 and rel_triples_2 use the names of the links."
        )
    if num_absent:
        log.warning(
            "%s: %d of %d links have a source or target without triples: they are not used for "
            "training, and test links among them count as missed",
            links.label,
            num_absent,
            len(links),
        )
    return known, num_absent


def _read_side(path: Path, number: int, keep_literals: bool) -> KnowledgeGraph:
    """Return a graph whose entities and relations are numbered by name.

    The order of the lines of a file does not matter.
    """
    table = read_table(path / f"rel_triples_{number}", 3)
    collector = TripleCollector(str, _value, keep_literals)
    collector.add(*(table.names(column) for column in range(3)))
    described = path / f"attr_triples_{number}"
    if keep_literals and described.is_file():
        literals = read_table(described, 3)
        collector.add_literals(literals.names(0), *literals.columns[1:])
    graph, reading = collector.finish(table.label, 0, keep_isolated=True)
    num_repeated = len(table) - graph.num_triples - reading.num_same_as
    if num_repeated:
        log.warning("%s: %d repeated triples left out", table.label, num_repeated)
    return graph


def _value(term: str) -> tuple[str, Kind]:
    """Return a value, which is plain text or an N-Triples literal with a language or a datatype."""
    return literal_parts(term) if LITERAL.fullmatch(term) else (term, PLAIN)


def _read_links(path: Path, label: str) -> TabTable:
    table = read_table(path, 2, label)
    return TabTable(label, (table.names(0), table.names(1)))


def _fold_folder(folds: Path, fold: int) -> Path | None:
    """Return the folder of a fold; ``None`` if the pair has no folds."""
    if not folds.is_dir():
        return None
    if not (folds / str(fold)).is_dir():
        there = ", ".join(sorted(entry.name for entry in folds.iterdir()))
        raise DataError(
            f"The folder {folds} has no fold {fold}. It contains {there or 'nothing'}."
        )
    return folds / str(fold)


def _read_parts(
    path: Path, folder: Path, all_links: LinkRegister[str]
) -> list[TabTable]:
    """Return the training, validation and test links of a folder."""
    parts = []
    register: LinkRegister[str] = LinkRegister()
    for file in FOLD_FILES:
        label = (folder / file).relative_to(path).as_posix()
        part = _read_links(folder / file, label)
        all_links.check_contains(part, part.pairs(), "ent_links")
        register.add(part, part.pairs())
        parts.append(part)
    return parts


def _ids(
    links: TabTable, source: KnowledgeGraph, target: KnowledgeGraph
) -> tuple[IntArray, int]:
    """Return the sorted links between entities of the graphs, and the number of other links."""
    columns = []
    for graph, names in zip((source, target), links.columns, strict=True):
        numbers = {name: number for number, name in enumerate(graph.all_entity_names)}
        columns.append([numbers.get(name, NO_MATCH) for name in names])
    found = np.array(columns, dtype=np.int64).T
    present = found[(found != NO_MATCH).all(1)]
    return sorted_links(present), len(found) - len(present)
