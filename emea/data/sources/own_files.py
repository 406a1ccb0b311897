"""Reads a pair of graphs and the links between them from files of the user."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from emea.config.paths import NO_SEEDS, is_endpoint
from emea.data.arrays import IntArray
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.input_file import is_gzipped
from emea.data.formats.limits import DEFAULT_LIMITS, reading_limits
from emea.data.formats.link_file import read_link_file
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import (
    GraphPair,
    LinkReading,
    OfficialSplit,
    PairReading,
    assemble_pair,
    sorted_links,
)
from emea.data.links import EntityFinder, LinkListing, LinkRegister, LinkResolver, check_rejected
from emea.data.names import Prefixes, with_iri_names
from emea.data.sources.sparql import PAGE_SIZE, endpoint_copy, endpoint_name
from emea.errors import ConfigError, DataError

log = logging.getLogger(__name__)

NO_LINKS: IntArray = np.zeros((0, 2), dtype=np.int64)


def read_own_files(
    source: str | Path | None,
    target: str | Path | None,
    links: str | Path | None = None,
    test_links: str | Path | None = None,
    rejected: str | Path | None = None,
    name: str | None = None,
    format: str | None = None,
    links_format: str | None = None,
    prefixes: Mapping[str, str] | None = None,
    on_error: str = "stop",
    keep_isolated: bool = False,
    keep_literals: bool = False,
    attributes: Sequence[str] = (),
    iri_names: bool = False,
    label_language: str | None = None,
    source_query: str | None = None,
    target_query: str | None = None,
    page_size: int = PAGE_SIZE,
    limits: Mapping[str, int] = DEFAULT_LIMITS,
) -> GraphPair:
    """Read a pair from one file for each graph and up to two files of links.

    The official split of the pair consists of the links to learn from and the test links. The
    result has random entity ids. The same triples give the same ids, in any format.

    Args:
        source: The file of the source graph (see ``read_graph_file``), or the address of a SPARQL
            endpoint (see ``endpoint_copy``).
        target: The file or endpoint of the target graph.
        links: The file of the links to learn from (see ``read_link_file``). It may be ``None`` if
            literals are kept, which can take the place of links.
        test_links: The file of links that are only used for the evaluation, if there is one.
        rejected: The file of pairs that are not links, if there is one. They are not candidates.
        name: The name of the pair in results. The default consists of the names of both files.
        format: The format of both graph files. ``None`` chooses it by the suffix.
        links_format: The format of the link files. ``None`` chooses it by the suffix.
        prefixes: Namespaces by prefix. Names in link files may use these prefixes where the graphs
            contain full names, and the other way round.
        on_error: ``stop`` at lines that cannot be read and at contradictory links, or ``skip`` and
            count them.
        keep_isolated: Whether to keep entities that only have literals.
        keep_literals: Whether to keep the literals of the graphs as evidence.
        attributes: Relations and columns of tables whose cells are literals.
        iri_names: Whether to make a name literal from the local part of each IRI, if literals are
            kept.
        label_language: The preferred language of labels in results, such as ``de``.
        source_query: The query for a source endpoint.
        target_query: The query for a target endpoint.
        page_size: Rows to request at once from an endpoint.
        limits: Limits on the content of a file, by name (see ``ReadingLimits``).

    Raises:
        ConfigError: A file is missing in the settings, or a setting has an unknown value.
        DataError: A file cannot be used.
    """
    needed = {"source": source, "target": target}
    _check_given(**needed if keep_literals else {**needed, "links": links})
    with reading_limits(limits):
        settings = (on_error, keep_isolated, keep_literals, attributes, label_language)
        places = ((source, source_query), (target, target_query))
        files = [_located(str(place), query, page_size, format) for place, query in places]
        (left, left_reading), (right, right_reading) = (
            read_graph_file(path, found, *settings) for path, found in files
        )
        if keep_literals:
            _warn_of_unused(attributes, left, right)
        if keep_literals and iri_names:
            left, right = with_iri_names(left), with_iri_names(right)
        resolver = LinkResolver(
            EntityFinder(left, "source", left_reading.label),
            EntityFinder(right, "target", right_reading.label),
            Prefixes(prefixes),
            on_error,
            LinkRegister(),
        )
        listings = [
            None
            if file is None
            else read_link_file(Path(file).expanduser(), links_format, on_error)
            for file in (links, test_links, rejected)
        ]
        (labels, label_reading), (test, test_reading) = (
            (NO_LINKS, None) if listing is None else _resolved(resolver, listing)
            for listing in listings[:2]
        )
        # an entity may have several rejected pairs
        wrong = None if listings[2] is None else resolver.pairs(listings[2])
        if wrong is not None:
            check_rejected(wrong, labels, left, right)
    absent = [0 if part is None else part.num_unknown for part in (label_reading, test_reading)]
    pair = assemble_pair(
        str(name or "") or f"{_stem(str(source))}-{_stem(str(target))}",
        left,
        right,
        sorted_links(np.concatenate([labels, test])),
        OfficialSplit(labels, NO_LINKS, test, absent[1]),
        sum(absent),
        wrong,
    )
    reading = PairReading(left_reading, right_reading, label_reading, test_reading)
    return replace(pair, reading=reading)


def _warn_of_unused(attributes: Sequence[str], *graphs: KnowledgeGraph) -> None:
    """Warn of attributes that no graph has, which may be misspelt."""
    found = {
        name
        for graph in graphs
        if graph.attributes is not None
        for name in graph.attributes.attribute_names
    }
    unused = [name for name in attributes if name not in found]
    if unused:
        log.warning(
            "data.attributes: no table has a relation or column with values named %s",
            ", ".join(unused),
        )


def _located(
    place: str, query: str | None, page_size: int, format: str | None
) -> tuple[Path, str | None]:
    """Return the file of a graph and its format. An endpoint is copied to a file first."""
    if is_endpoint(place):
        return endpoint_copy(place, query, page_size), "ntriples"
    if query is not None:
        raise ConfigError(
            f"{place} is a file. Only the graph of a SPARQL endpoint can have a query."
        )
    return Path(place).expanduser(), format


def _check_given(**given: str | Path | None) -> None:
    missing = [f"data.{key}" for key, value in given.items() if value is None]
    if missing == ["data.links"]:
        raise ConfigError(f"There is nothing to start from. {NO_SEEDS}")
    if missing:
        raise ConfigError(
            f"{' and '.join(missing)} must name a file, for example data=files data.source=a.nt "
            "data.target=b.ttl data.links=seeds.tsv"
        )


def _resolved(resolver: LinkResolver, listing: LinkListing) -> tuple[IntArray, LinkReading]:
    """Return the links of a file. Raise an error if no link is left."""
    links, reading = resolver.resolve(listing)
    if len(links):
        return links, reading
    if not listing.links:
        raise DataError(
            f"{reading.label} contains no links. See docs/own_graphs.md for the supported formats."
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


def _stem(place: str) -> str:
    """Return the name of a file without its suffixes, or the host of an endpoint."""
    if is_endpoint(place):
        return endpoint_name(place)
    path = Path(place)
    return (path.with_suffix("") if is_gzipped(path) else path).stem
