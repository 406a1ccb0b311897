"""Reads a pair of graphs and the links between them from files of the user."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from emea.data.advice import NO_SEEDS
from emea.data.arrays import IntArray
from emea.data.formats.entity_table import column_names
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import is_packed
from emea.data.formats.limits import reading_limits
from emea.data.formats.link_file import read_link_file
from emea.data.formats.repairs import DEFAULT_BASE
from emea.data.formats.settings import ReadingLimits
from emea.data.formats.vector_file import read_vectors
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import (
    GraphPair,
    GraphReading,
    LinkReading,
    OfficialSplit,
    PairReading,
    sorted_links,
)
from emea.data.links import (
    EntityFinder,
    LinkListing,
    LinkRegister,
    LinkResolver,
    check_rejected,
    read_entities,
)
from emea.data.names import Prefixes, base_of, with_iri_names, with_missing_names
from emea.data.settings import Cardinality
from emea.data.sources.settings import OwnFilesOptions, OwnFilesSettings
from emea.errors import ConfigError, DataError
from emea.runtime.regular_file import check_local

log = logging.getLogger(__name__)

IN_PYTHON = {"keep_literals": False, "cardinality": Cardinality.ONE_TO_ONE}
"""Defaults of settings that refer to others in a configuration."""

NO_LINKS: IntArray = np.zeros((0, 2), dtype=np.int64)


def read_own_files(
    source: str | Path | None,
    target: str | Path | None,
    links: str | Path | None = None,
    test_links: str | Path | None = None,
    **given: Unpack[OwnFilesOptions],
) -> GraphPair:
    """Read a pair from one file for each graph and up to three files of links.

    The official split of the pair consists of the links to learn from and the test links. The
    result has random entity ids. The same triples give the same ids, in any format.

    Args:
        source: The file of the source graph (see ``read_graph_file``).
        target: The file of the target graph.
        links: The file of the links to learn from (see ``read_link_file``). It may be ``None`` if
            literals are kept, which can take the place of links.
        test_links: The file of links that are only used for the evaluation, if there is one.
        given: The settings of ``data=files``. Literals are left out by default.

    Raises:
        ConfigError: A file is missing in the settings, or a setting has an unknown value.
        DataError: A file cannot be used.
    """
    limits = ReadingLimits(**given.get("limits", {}))
    files = {
        "source": source,
        "target": target,
        "links": links,
        "test_links": test_links,
    }
    values: dict[str, Any] = {**IN_PYTHON, **given, "limits": limits}
    for name, file in files.items():
        values[name] = None if file is None else str(file)
    settings = OwnFilesSettings(**values)
    if settings.name is not None and not str(settings.name).strip():
        raise ConfigError(
            "data.name must not be empty. Leave it out to use the names of the files."
        )
    for key, place in {"data.source": source, "data.target": target}.items():
        if place is None:
            raise ConfigError(f"{key} must name a file")
        check_local(place, key)
    if links is None and not settings.keep_literals:
        raise ConfigError(f"There is nothing to start from. {NO_SEEDS}")
    with reading_limits(limits):
        return _linked_pair(settings, *_read_graphs(settings)).shuffled()


def _read_graphs(
    settings: OwnFilesSettings,
) -> list[tuple[KnowledgeGraph, GraphReading]]:
    """Return both graphs with counts of what was read."""
    places = (settings.source, settings.target)
    read = [
        read_own_graph(
            Path(str(place)).expanduser(),
            replace(settings, base_iri=base_of(settings.base_iri, side)),
        )
        for side, place in enumerate(places)
    ]
    given = {"references": settings.references, "lists": tuple(settings.lists or ())}
    readings = [reading for _, reading in read]
    for key, names in given.items():
        _check_columns(key, names, readings)
    if (label_column := settings.label_column) is not None:
        columns = {name for reading in readings for name in reading.columns}
        is_known = not columns.isdisjoint(column_names(label_column))
        _check_columns("label_column", () if is_known else (label_column,), readings)
    # columns of literals are not in a graph without literals
    given = (
        given | {"attributes": settings.attributes} if settings.keep_literals else {}
    )
    for key, names in given.items():
        _warn_of_unused(key, names, *(graph for graph, _ in read))
    files = (settings.source_vectors, settings.target_vectors)
    skips = settings.on_error == "skip"
    if any(files) and not settings.keep_literals:
        log.warning(
            "Vectors are only read if literals are used. Set literals=similar or equal."
        )
    if settings.keep_literals and any(files):
        for side, (graph, reading) in enumerate(read):
            entities = graph.all_entity_names
            paths = [Path(path).expanduser() for path in files[side]]
            vectors = tuple(read_vectors(path, entities, skips) for path in paths)
            read[side] = replace(graph, vectors=vectors), reading
    return read


def read_own_graph(
    path: Path, settings: OwnFilesSettings
) -> tuple[KnowledgeGraph, GraphReading]:
    """Return the graph of a file, with names made from IRIs if they are wanted or needed."""
    graph, reading = read_graph_file(
        path,
        settings.format,
        on_error=settings.on_error,
        keep_isolated=settings.keep_isolated,
        keep_literals=settings.keep_literals,
        attributes=settings.attributes,
        label_language=settings.label_language,
        form=settings,
    )
    if settings.keep_literals and settings.iri_names:
        graph = with_iri_names(graph)
    elif settings.keep_literals and settings.iri_names is None:
        graph = with_missing_names(graph, path.name)
    return graph, reading


def _linked_pair(
    settings: OwnFilesSettings,
    left: tuple[KnowledgeGraph, GraphReading],
    right: tuple[KnowledgeGraph, GraphReading],
) -> GraphPair:
    """Return the pair of both graphs with the links of all files."""
    own_base = base_of(settings.base_iri, 0)
    bases = [base_of(settings.base_iri, side) or DEFAULT_BASE for side in (0, 1)]
    resolver = LinkResolver(
        EntityFinder(left[0], "source", left[1].label, left[1], bases[0]),
        EntityFinder(right[0], "target", right[1].label, right[1], bases[1]),
        Prefixes(settings.prefixes),
        settings.on_error,
        LinkRegister(Cardinality(settings.cardinality)),
    )
    labels, test, rejected = (
        None
        if file is None
        else read_link_file(
            Path(file).expanduser(), settings.links_format, settings.on_error, own_base
        )
        for file in (settings.links, settings.test_links, settings.rejected)
    )
    known, label_reading = resolved_links(resolver, labels)
    test_links, test_reading = resolved_links(resolver, test)
    # an entity may have several rejected pairs
    wrong = None if rejected is None else resolver.pairs(rejected)
    if wrong is not None:
        check_rejected(wrong, known, left[0], right[0])
    unmatched = None
    if settings.unmatched is not None:
        path = Path(settings.unmatched).expanduser()
        unmatched = read_entities(path, resolver.source, resolver.prefixes)
    absent = [
        0 if one is None else one.num_unknown for one in (label_reading, test_reading)
    ]
    return GraphPair(
        str(settings.name or "")
        or f"{file_stem(str(settings.source))}-{file_stem(str(settings.target))}",
        left[0],
        right[0],
        sorted_links(np.concatenate([known, test_links])),
        OfficialSplit(known, NO_LINKS, test_links, absent[1]),
        PairReading(left[1], right[1], label_reading, test_reading),
        num_absent=sum(absent),
        rejected=wrong,
        unmatched=unmatched,
        cardinality=resolver.register.cardinality,
    )


def _check_columns(
    key: str, given: Sequence[str], readings: Sequence[GraphReading]
) -> None:
    """Refuse columns that no table of entities has, which are probably misspelt.

    Raises:
        DataError: A table of entities was read, and no table has the column.
    """
    columns = list(
        dict.fromkeys(name for reading in readings for name in reading.columns)
    )
    unknown = [name for name in given if name not in columns]
    if columns and unknown:
        raise DataError(
            f"data.{key}: no table has a column {', '.join(unknown)}. The columns are "
            f"{', '.join(columns)}."
        )


def _warn_of_unused(key: str, given: Sequence[str], *graphs: KnowledgeGraph) -> None:
    """Warn of columns and attributes that no graph has, which may be misspelt."""
    found = {
        name
        for graph in graphs
        for name in (
            *(graph.relation_names or ()),
            *(graph.attributes.attribute_names if graph.attributes is not None else ()),
        )
    }
    unused = [name for name in given if name not in found]
    if unused:
        log.warning(
            "data.%s: no table has a relation or column with values named %s",
            key,
            ", ".join(unused),
        )


def resolved_links(
    resolver: LinkResolver, listing: LinkListing | None
) -> tuple[IntArray, LinkReading | None]:
    """Return the links of a file, if there is one.

    Raises:
        DataError: No link of the file can be used.
    """
    if listing is None:
        return NO_LINKS, None
    links, reading = resolver.resolve(listing)
    if len(links):
        return links, reading
    if not listing.links:
        raise DataError(
            f"{reading.label} contains no links. See docs/own_graphs.md for the supported formats."
        )
    swapped = replace(listing, links=[(right, left) for left, right in listing.links])
    if reading.num_unknown == len(listing.links) and resolver.found(swapped)[0]:
        raise DataError(
            f"{reading.label} names the target entities first. Put the source first, or name the "
            "columns in a first line: target, source."
        )
    if not reading.num_unknown:
        raise DataError(
            f"{reading.label}: none of its {len(listing.links)} links can be used, because their "
            "entities already have links. Test links must differ from the labels."
        )
    raise DataError(
        f"{reading.label}: none of its {len(listing.links)} links joins an entity of "
        f"{resolver.source.label} to one of {resolver.target.label}. Write the names as in the "
        "graphs (or define data.prefixes), with the source first."
    )


def file_stem(place: str) -> str:
    """Return the name of a file without its suffixes."""
    path = Path(place)
    return (path.with_suffix("") if is_packed(path) else path).stem
