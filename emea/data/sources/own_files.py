"""Reads a pair of graphs and the links between them from the user's own files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from emea.data.arrays import IntArray
from emea.data.formats.files import is_gzipped
from emea.data.formats.graph_file import read_graph_file
from emea.data.formats.limits import DEFAULT_LIMITS, reading_limits
from emea.data.formats.link_file import read_link_file
from emea.data.graph_pair import GraphPair, OfficialSplit, assemble_pair
from emea.data.iri_names import with_iri_names
from emea.data.links import EntityFinder, LinkRegister, LinkResolver
from emea.data.names import Prefixes
from emea.data.reading import LinkReading, PairReading
from emea.data.split import NO_SEEDS
from emea.errors import ConfigError, DataError

NO_LINKS: IntArray = np.zeros((0, 2), dtype=np.int64)


def read_own_files(
    source: str | Path | None,
    target: str | Path | None,
    links: str | Path | None = None,
    test_links: str | Path | None = None,
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
    limits: Mapping[str, int] = DEFAULT_LIMITS,
) -> GraphPair:
    """Read a pair from one file for each graph and up to two files of links.

    The official parts of the pair are the links to learn from and the test links. Entity ids of
    the result are drawn at random; the same triples give the same ids, whatever their format.

    Args:
        source: file of the source graph (see ``read_graph_file``).
        target: file of the target graph.
        links: file of the links to learn from (see ``read_link_file``); ``None`` if literals are
            kept, which can take the place of links.
        test_links: file of links that are only used for the evaluation, if there are any.
        name: what results call the pair; by default the names of both files.
        format: format of both graph files; ``None``: the file names tell it.
        links_format: format of the link files, likewise.
        prefixes: namespaces by prefix, by which names in link files may be shortened or written
            in full, other than in the graphs.
        on_error: ``stop`` at what cannot be read or contradicts itself, or ``skip`` and count it.
        keep_isolated: whether entities that only have literals belong to their graph.
        keep_literals: keep the literals of the graphs as evidence.
        attributes: relations and columns of tables whose cells are literals.
        iri_names: make a name literal from the local part of each IRI, if literals are kept.
        label_language: preferred language of the labels in results, such as ``de``.
        limits: bounds on what a file may contain, by name (see ``ReadingLimits``).

    Raises:
        ConfigError: a file is not named, or a setting has a value that does not exist.
        DataError: a file cannot be used.
    """
    needed = {"source": source, "target": target}
    paths = _paths(**needed if keep_literals else {**needed, "links": links})
    with reading_limits(limits):
        settings = (format, on_error, keep_isolated, keep_literals, attributes, label_language)
        left, left_reading = read_graph_file(paths["source"], *settings)
        right, right_reading = read_graph_file(paths["target"], *settings)
        if keep_literals and iri_names:
            left, right = with_iri_names(left), with_iri_names(right)
        resolver = LinkResolver(
            EntityFinder(left, "source", left_reading.label),
            EntityFinder(right, "target", right_reading.label),
            Prefixes(prefixes),
            on_error,
            LinkRegister(),
        )
        (labels, label_reading), (test, test_reading) = (
            (NO_LINKS, None) if file is None else _resolved(resolver, Path(file), links_format)
            for file in (links, test_links)
        )
    pair = assemble_pair(
        str(name or "") or f"{_stem(paths['source'])}-{_stem(paths['target'])}",
        left,
        right,
        np.concatenate([labels, test]),
        OfficialSplit(labels, NO_LINKS, test),
    )
    reading = PairReading(left_reading, right_reading, label_reading, test_reading)
    return replace(pair, reading=reading)


def _paths(**given: str | Path | None) -> dict[str, Path]:
    missing = [f"data.{key}" for key, value in given.items() if value is None]
    if missing == ["data.links"]:
        raise ConfigError(f"There is nothing to start from. {NO_SEEDS}")
    if missing:
        raise ConfigError(
            f"{' and '.join(missing)} must name a file: data=files data.source=a.nt "
            "data.target=b.ttl data.links=seeds.tsv"
        )
    return {key: Path(str(value)).expanduser() for key, value in given.items()}


def _resolved(
    resolver: LinkResolver, path: Path, links_format: str | None
) -> tuple[IntArray, LinkReading]:
    """The links of a file, of which there must be some."""
    listing = read_link_file(path.expanduser(), links_format, resolver.on_error)
    links, reading = resolver.resolve(listing)
    if len(links):
        return links, reading
    if not listing.links:
        raise DataError(f"{reading.label} has no link: see docs/own_graphs.md for what is one")
    if not reading.num_unknown:
        raise DataError(
            f"{reading.label}: none of its {len(listing.links)} links is left, since all of their "
            "entities have links already; test links must be others than the labels"
        )
    raise DataError(
        f"{reading.label}: none of its {len(listing.links)} links joins an entity of "
        f"{resolver.source.label} to one of {resolver.target.label}; names must be written as in "
        "the graphs (or shortened by data.prefixes), the source's first"
    )


def _stem(path: Path) -> str:
    """The file's name without its endings."""
    return (path.with_suffix("") if is_gzipped(path) else path).stem
