"""Graphs and links as the Python API gets them: from files, endpoints and objects in memory."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import sorted_links
from emea.data.links import EntityFinder, LinkListing, LinkRegister, LinkResolver
from emea.data.names import Prefixes, is_endpoint
from emea.errors import DataError

MOST_UNKNOWN = 5
"""Maximum number of unknown entities in an error message."""


def read_graph(
    path: str | Path,
    literals: bool = False,
    query: str | None = None,
    attributes: Sequence[str] = (),
) -> KnowledgeGraph:
    """Read a graph file, or the graph of a SPARQL endpoint.

    Files are N-Triples, Turtle, RDF/XML, TSV or CSV (also ``.gz``), or Parquet. The triples of an
    endpoint are copied to a local file, which is used again for the same query.

    Args:
        path: The file, or the address of an endpoint (``http://...``).
        literals: Keep literals, for an ``Aligner`` with the setting ``literals=equal`` or
            ``literals=similar``.
        query: For an endpoint: a SELECT query with three variables, a CONSTRUCT query, or a
            ``.rq`` file with one. The default selects all triples.
        attributes: For TSV, CSV and Parquet: relations whose tail is a literal, and further columns
            that contain a literal of the head. Their literals are kept.
    """
    from emea.data.formats.graph_file import read_graph_file  # loads a parser
    from emea.data.sources.sparql import endpoint_copy

    if is_endpoint(path):
        return read_graph_file(endpoint_copy(str(path), query), keep_literals=literals)[0]
    if query is not None:
        raise DataError("Only a SPARQL endpoint can be read with a query, not a file.")
    keep = literals or bool(attributes)
    file = checked_path(path, "the file of a graph")
    return read_graph_file(file, keep_literals=keep, attributes=attributes)[0]


def read_links(path: str | Path) -> list[tuple[str, str]]:
    """Read links from a file: two columns with or without a header, ``owl:sameAs``, or SSSOM.

    Prefixes that the file defines are expanded. ``owl:sameAs`` has no direction: ``fit`` finds out
    which end belongs to which graph.
    """
    from emea.data.formats.link_file import read_link_file

    listing = read_link_file(checked_path(path, "the file of links"))
    in_full = listing.prefixes.in_full
    return [(in_full(one), in_full(other)) for one, other in listing.links]


def graph_of(
    triples: Iterable[tuple[str, str, str]],
    literals: bool = False,
    attributes: Sequence[str] = (),
) -> KnowledgeGraph:
    """Build a graph from (head, relation, tail) triples of names.

    ``triples`` can also be an rdflib graph, a PyKEEN triples factory, or a pandas data frame with
    the columns head, relation and tail (or subject, predicate, object; or three columns).

    Args:
        triples: The triples.
        literals: Keep the literals of an rdflib graph.
        attributes: For a data frame: relations whose tail is a literal, and further columns that
            contain a literal of the head. Their literals are kept.

    Raises:
        DataError: If there are no triples, or one of them is not three strings.
    """
    if isinstance(triples, str | Path):
        raise DataError(
            f"graph_of takes triples, not a path. Use read_graph({str(triples)!r}) to read a file."
        )
    from emea.data.sources.objects import graph_of_object  # loads a parser

    found = graph_of_object(triples, literals or bool(attributes), attributes)
    if found is not None:
        return found
    names = "A triple must be a head, a relation and a tail, each a str"
    rows = sorted(set(_rows(triples, 3, "triples", names)))
    if not rows:
        raise DataError("graph_of was given no triples. A graph needs at least one.")
    heads, relations, tails = zip(*rows, strict=True)
    # in the order of the names, as for files, so that the order of the triples does not matter
    entities = {name: index for index, name in enumerate(sorted({*heads, *tails}))}
    numbers = {name: index for index, name in enumerate(sorted(set(relations)))}
    ids = [[entities[head], numbers[relation], entities[tail]] for head, relation, tail in rows]
    return KnowledgeGraph(
        np.array(ids, dtype=np.int64), len(entities), len(numbers), [*entities], [*numbers]
    )


def _rows(values: Iterable[Any], length: int, what: str, rule: str) -> list[tuple[str, ...]]:
    """Check that values are rows of names.

    Args:
        values: The rows.
        length: Number of names per row.
        what: What error messages call the rows.
        rule: What a row must be, for error messages.
    """
    if isinstance(values, str | dict) or not isinstance(values, Iterable):
        raise DataError(f"{what} must be a list of tuples, got {described(values)}. {rule}.")
    rows = []
    for value in values:
        row = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
        if len(row) != length or not all(isinstance(name, str) for name in row):
            raise DataError(f"{rule}, got {value!r}.")
        rows.append(row)
    return rows


def link_ids(
    source: KnowledgeGraph,
    target: KnowledgeGraph,
    links: Iterable[tuple[str, str]],
    one_to_one: bool = True,
) -> IntArray:
    """Return pairs of names as sorted pairs of entities.

    Args:
        source: The source graph.
        target: The target graph.
        links: Pairs of names; the target entity may come first if only that fits the graphs.
        one_to_one: Whether an entity may occur in one pair only.

    Raises:
        DataError: If a pair is not two names, names an unknown entity, or contradicts another.
    """
    if isinstance(links, str | Path):
        raise DataError(
            f"links must be pairs of names. Use read_links({str(links)!r}) to read a file."
        )
    if isinstance(links, dict):
        raise DataError("links must be pairs of names, got dict. Use links.items().")
    names = "A link must be a source and a target entity, each a str"
    pairs = cast(list[tuple[str, str]], _rows(links, 2, "links", names))
    finders = (
        EntityFinder(source, "source", "its graph"),
        EntityFinder(target, "target", "its graph"),
    )
    resolver = LinkResolver(*finders, Prefixes(), "stop", LinkRegister())
    numbers = range(1, len(pairs) + 1)
    listing = LinkListing("the links", pairs, numbers, unit="number", symmetric=True)
    known, unknown = resolver.found(listing)
    if unknown:
        more = f" and {len(unknown) - MOST_UNKNOWN} more" if len(unknown) > MOST_UNKNOWN else ""
        raise DataError(f"{'; '.join(unknown[:MOST_UNKNOWN])}{more}")
    kept = resolver.registered(listing, known) if one_to_one else list(known)
    return sorted_links(np.array(kept, dtype=np.int64).reshape(-1, 2))


def described(value: object) -> str:
    """Describe a wrong argument in an error message: its type, and its value if that is short."""
    if value is None:
        return "None"
    name = type(value).__name__
    if isinstance(value, str | Path):
        return f"{name} {str(value)!r}"
    return f"{name} {value}" if isinstance(value, int | float) else name


def checked_path(value: str | Path, what: str) -> Path:
    """Return a path that the caller gave as an argument; error messages call it ``what``."""
    if not isinstance(value, str | Path) or not str(value):
        raise DataError(f"{what} must be a path, got {described(value)}.")
    return Path(value)
