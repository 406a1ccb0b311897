"""Graphs and links as the Python API gets them: from files and objects in memory.

Objects of rdflib, pandas and PyKEEN are recognised by their attributes, so none of these libraries
is required.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from emea.data.arrays import IntArray
from emea.data.attributes import Kind
from emea.data.formats.graph_file import TRIPLE_COLUMNS, from_rows, read_graph_file
from emea.data.formats.link_file import read_link_file
from emea.data.formats.rows import Columns, Row, check_same_ids
from emea.data.formats.triple_collector import TripleCollector
from emea.data.formats.vector_file import read_vectors
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit, sorted_links
from emea.data.links import (
    EntityFinder,
    LinkListing,
    LinkRegister,
    LinkResolver,
    check_rejected,
)
from emea.data.names import Prefixes
from emea.data.settings import Cardinality
from emea.errors import DataError
from emea.runtime.regular_file import check_local

MOST_UNKNOWN = 5
"""Maximum number of unknown entities in an error message."""


def read_graph(
    path: str | Path,
    literals: bool = False,
    attributes: Sequence[str] = (),
    vectors: Sequence[str | Path] = (),
) -> KnowledgeGraph:
    r"""Read a graph file: N-Triples, Turtle, RDF/XML, TSV or CSV (also ``.gz``), or Parquet.

    Args:
        path: The file.
        literals: Keep literals, for an ``Aligner`` with the setting ``literals=equal`` or
            ``literals=similar``.
        attributes: For TSV, CSV and Parquet: relations whose tail is a literal, and further columns
            that contain a literal of the head. Their literals are kept.
        vectors: Files with vectors of the entities, one for each kind, in the same order for both
            graphs (docs/literals.md).

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        ...     _ = file.write("anna\tknows\tben\nben\tknows\tcleo\n")
        ...     file.flush()
        ...     graph = read_graph(file.name)
        >>> graph.num_entities, graph.num_relations
        (3, 1)
    """
    keep = literals or bool(attributes)
    file = checked_path(path, "the file of a graph")
    graph = read_graph_file(file, keep_literals=keep, attributes=attributes)[0]
    files = [checked_path(one, "a file of vectors") for one in vectors]
    found = tuple(read_vectors(one, graph.all_entity_names) for one in files)
    return replace(graph, vectors=found)


def read_links(path: str | Path) -> list[tuple[str, str]]:
    r"""Read links from a file: two columns with or without a header, ``owl:sameAs``, or SSSOM.

    Prefixes that the file defines are expanded. ``owl:sameAs`` has no direction: ``fit`` finds out
    which end belongs to which graph.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        ...     _ = file.write("source,target\nanna,Anna\n")
        ...     file.flush()
        ...     read_links(file.name)
        [('anna', 'Anna')]
    """
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

    Examples:
        >>> graph = graph_of([("anna", "knows", "ben"), ("ben", "knows", "cleo")])
        >>> graph.num_entities, graph.num_relations, len(graph.triples)
        (3, 1, 2)
        >>> graph.entity_name(1)
        'ben'
    """
    if isinstance(triples, str | Path):
        raise DataError(
            f"graph_of takes triples, not a path. Use read_graph({str(triples)!r}) to read a file."
        )
    keep = literals or bool(attributes)
    given: Any = triples
    if all(
        hasattr(given, name)
        for name in ("mapped_triples", "num_entities", "num_relations")
    ):
        return _of_factory(given)
    if hasattr(given, "columns") and hasattr(given, "itertuples"):
        return _of_frame(given, keep, attributes)
    if hasattr(given, "triples") and hasattr(given, "namespace_manager"):
        return _of_rdflib(given, keep)
    names = "A triple must be a head, a relation and a tail, each a str"
    rows = _rows(triples, 3, "triples", names)
    if not rows:
        raise DataError("graph_of was given no triples. A graph needs at least one.")
    return _graph_of_edges(cast(list[tuple[str, str, str]], rows), "the triples")


def _graph_of_edges(
    edges: Sequence[tuple[str, str, str]], label: str
) -> KnowledgeGraph:
    """Return a graph without literals, numbered by name as for files."""
    collector: TripleCollector[str] = TripleCollector(str)
    collector.add_rows(edges)
    return collector.finish(label, 0, keep_isolated=False)[0]


def _rows(
    values: Iterable[Any], length: int, what: str, rule: str
) -> list[tuple[str, ...]]:
    """Check that values are rows of ``length`` names; errors contain ``what`` and ``rule``."""
    if isinstance(values, str | dict) or not isinstance(values, Iterable):
        raise DataError(
            f"{what} must be a list of tuples, got {described(values)}. {rule}."
        )
    rows = []
    for value in values:
        row = (
            tuple(value)
            if isinstance(value, Iterable) and not isinstance(value, str)
            else ()
        )
        if len(row) != length or not all(isinstance(name, str) for name in row):
            raise DataError(f"{rule}, got {value!r}.")
        rows.append(row)
    return rows


def link_ids(
    source: KnowledgeGraph,
    target: KnowledgeGraph,
    links: Iterable[tuple[str, str]],
    cardinality: Cardinality = Cardinality.ONE_TO_ONE,
) -> IntArray:
    """Return pairs of names as sorted pairs of entities.

    Args:
        source: The source graph.
        target: The target graph.
        links: Pairs of names; the target entity may come first if only that fits the graphs.
        cardinality: How many pairs an entity may occur in.

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
    resolver = LinkResolver(*finders, Prefixes(), "stop", LinkRegister(cardinality))
    numbers = range(1, len(pairs) + 1)
    listing = LinkListing("the links", pairs, numbers, unit="number", symmetric=True)
    known, unknown = resolver.found(listing)
    if unknown:
        more = (
            f" and {len(unknown) - MOST_UNKNOWN} more"
            if len(unknown) > MOST_UNKNOWN
            else ""
        )
        raise DataError(f"{'; '.join(unknown[:MOST_UNKNOWN])}{more}")
    kept = resolver.registered(listing, known)
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
    check_local(value, what)
    return Path(value)


XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


def _of_factory(factory: Any) -> KnowledgeGraph:
    """Build a graph from a PyKEEN factory; without labels, the ids are the names."""
    named = []
    for names, size in (
        ("entity_to_id", "num_entities"),
        ("relation_to_id", "num_relations"),
    ):
        ids = getattr(factory, names, None) or {}
        labels = {int(number): str(name) for name, number in ids.items()}
        named.append(
            [
                labels.get(number, str(number))
                for number in range(getattr(factory, size))
            ]
        )
    entities, relations = named
    triples = factory.mapped_triples.tolist()
    edges = [
        (entities[head], relations[kind], entities[tail])
        for head, kind, tail in triples
    ]
    return _graph_of_edges(edges, "the triples factory")


def _of_frame(frame: Any, literals: bool, attributes: Sequence[str]) -> KnowledgeGraph:
    header = [str(name) for name in frame.columns]
    columns = Columns.without_header(TRIPLE_COLUMNS)
    found = columns.from_header(header, attributes)
    if found is None and len(header) != len(TRIPLE_COLUMNS):
        raise DataError(
            "A data frame of triples needs the columns head, relation and tail (or subject, "
            f"predicate, object), or exactly three columns; it has {', '.join(header)}."
        )
    places = (found or columns).places[::2]
    check_same_ids(
        "The data frame", {header[place]: frame.dtypes.iloc[place] for place in places}
    )
    rows = _frame_rows(frame, found or columns)
    collector = from_rows(rows, frozenset(attributes), literals)
    return collector.finish("the data frame", 0, keep_isolated=False)[0]


def _frame_rows(frame: Any, columns: Columns) -> Iterator[Row]:
    for number, values in enumerate(frame.itertuples(index=False, name=None), 1):
        row = columns.wanted(Row(number, [_cell(value) for value in values]))
        if not all(row.cells):
            raise DataError(
                f"Row {number} of the data frame has an empty cell. Remove such rows: dropna()."
            )
        yield row


def _cell(value: object) -> str:
    """Return a value as text; empty for missing values, which differ from themselves."""
    is_missing = value is None or str(value) == "<NA>" or value != value
    return "" if is_missing else str(value)


def _of_rdflib(graph: Iterable[tuple[Any, Any, Any]], literals: bool) -> KnowledgeGraph:
    collector: TripleCollector[Any] = TripleCollector(str, lambda key: key, literals)
    edges: list[tuple[str, str, str]] = []
    values: list[tuple[str, str, tuple[str, Kind]]] = []
    for head, relation, tail in graph:
        if _is_literal(tail):
            datatype = str(tail.datatype or "")
            kind = Kind(
                (tail.language or "").lower(),
                "" if datatype == XSD_STRING else datatype,
            )
            values.append((_name(head), str(relation), (str(tail), kind)))
        elif not _is_literal(head):
            edges.append((_name(head), str(relation), _name(tail)))
    collector.add_rows(edges, values)
    return collector.finish("the rdflib graph", 0, keep_isolated=False)[0]


def _is_literal(term: object) -> bool:
    return hasattr(term, "datatype") and hasattr(term, "language")


def _name(term: object) -> str:
    """Return the name of an IRI or blank node as files show it."""
    is_blank = any(base.__name__ == "BNode" for base in type(term).__mro__)
    return f"_:{term}" if is_blank else str(term)


def pair_of(
    source: KnowledgeGraph,
    target: KnowledgeGraph,
    links: Iterable[tuple[str, str]],
    rejected: Iterable[tuple[str, str]],
    cardinality: Cardinality,
) -> GraphPair:
    """Return a pair of graphs whose known links are all for training.

    Args:
        source: The source graph.
        target: The target graph.
        links: Known links, as pairs of names.
        rejected: Pairs that are not links.
        cardinality: How many counterparts an entity may have.

    Raises:
        DataError: If a graph is not a graph, or a link names an unknown entity or contradicts
            another one.
    """
    for side, graph in (("source", source), ("target", target)):
        if not isinstance(graph, KnowledgeGraph):
            raise DataError(
                f"{side} must be a graph, got {described(graph)}. Use read_graph(path) to read "
                "one from a file, or graph_of(triples) to build one."
            )
    known = link_ids(source, target, links, cardinality)
    wrong = link_ids(source, target, rejected, Cardinality.MANY_TO_MANY)
    check_rejected(wrong, known, source, target)
    none = np.empty((0, 2), dtype=np.int64)
    official = OfficialSplit(known, none, none)
    found = wrong if len(wrong) else None
    return GraphPair(
        "pair", source, target, known, official, rejected=found, cardinality=cardinality
    ).shuffled()
