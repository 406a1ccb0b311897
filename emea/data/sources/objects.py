"""Builds graphs from objects of other libraries: rdflib, pandas and PyKEEN.

Objects are recognised by their attributes, so none of these libraries is required.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from emea.data.attributes import Kind
from emea.data.formats.graph_file import TRIPLE_COLUMNS, from_rows
from emea.data.formats.rows import Columns, Row, check_same_ids
from emea.data.formats.triple_collector import TripleCollector
from emea.data.graph import KnowledgeGraph
from emea.errors import DataError

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


def graph_of_object(
    given: Any, literals: bool = False, attributes: Sequence[str] = ()
) -> KnowledgeGraph | None:
    """Build a graph from an object of another library.

    Args:
        given: An rdflib graph, a pandas data frame with the columns of a table, or a PyKEEN
            triples factory.
        literals: Whether to keep literals: those of an rdflib graph, or the attributes of a data
            frame.
        attributes: For data frames: relations whose tail is a literal, and further columns that
            contain a literal of the head.

    Returns:
        The graph, or ``None`` if the object is of another kind.

    Raises:
        DataError: The object cannot be used as a graph.
    """
    if all(hasattr(given, name) for name in ("mapped_triples", "num_entities", "num_relations")):
        return _of_factory(given)
    if hasattr(given, "columns") and hasattr(given, "itertuples"):
        return _of_frame(given, literals, attributes)
    if hasattr(given, "triples") and hasattr(given, "namespace_manager"):
        return _of_rdflib(given, literals)
    return None


def _of_factory(factory: Any) -> KnowledgeGraph:
    """Build a graph from a PyKEEN factory; without labels, the ids are the names."""
    named = []
    for names, size in (("entity_to_id", "num_entities"), ("relation_to_id", "num_relations")):
        ids = getattr(factory, names, None) or {}
        labels = {int(number): str(name) for name, number in ids.items()}
        named.append([labels.get(number, str(number)) for number in range(getattr(factory, size))])
    entities, relations = named
    collector: TripleCollector[str] = TripleCollector(str)
    triples = factory.mapped_triples.tolist()
    if triples:
        heads, kinds, tails = zip(*triples, strict=True)
        collector.add(
            [entities[head] for head in heads],
            [relations[kind] for kind in kinds],
            [entities[tail] for tail in tails],
        )
    return collector.finish("the triples factory", 0, keep_isolated=False)[0]


def _of_frame(frame: Any, literals: bool, attributes: Sequence[str]) -> KnowledgeGraph:
    header = [str(name) for name in frame.columns]
    columns = Columns.without_header(TRIPLE_COLUMNS)
    found = columns.from_header(header, attributes)
    if found is None and len(header) != len(TRIPLE_COLUMNS):
        raise DataError(
            "A data frame of triples needs the columns head, relation and tail (or subject, "
            f"predicate, object), or exactly three columns; it has {', '.join(header)}."
        )
    _check_same_ids(frame, (found or columns).places)
    rows = _frame_rows(frame, found or columns)
    collector = from_rows(rows, frozenset(attributes), literals)
    return collector.finish("the data frame", 0, keep_isolated=False)[0]


def _check_same_ids(frame: Any, places: Sequence[int]) -> None:
    ends = [(str(frame.columns[place]), frame.dtypes.iloc[place]) for place in places[::2]]
    integers, floats = (
        [name for name, kind in ends if getattr(kind, "kind", "") in kinds] for kinds in ("iu", "f")
    )
    check_same_ids("The data frame", integers, floats)


def _frame_rows(frame: Any, columns: Columns) -> Iterator[Row]:
    for number, values in enumerate(frame.itertuples(index=False, name=None), 1):
        cells = [_cell(value) for value in values]
        wanted = [cells[place] for place in columns.places]
        if not all(wanted):
            raise DataError(
                f"Row {number} of the data frame has an empty cell. Remove such rows: dropna()."
            )
        yield Row(number, wanted, columns.attribute_cells(cells))


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
            kind = Kind((tail.language or "").lower(), "" if datatype == XSD_STRING else datatype)
            values.append((_name(head), str(relation), (str(tail), kind)))
        elif not _is_literal(head):
            edges.append((_name(head), str(relation), _name(tail)))
    if edges:
        collector.add(*zip(*edges, strict=True))
    if values:
        collector.add_literals(*zip(*values, strict=True))
    return collector.finish("the rdflib graph", 0, keep_isolated=False)[0]


def _is_literal(term: object) -> bool:
    return hasattr(term, "datatype") and hasattr(term, "language")


def _name(term: object) -> str:
    """Return the name of an IRI or blank node as files show it."""
    is_blank = any(base.__name__ == "BNode" for base in type(term).__mro__)
    return f"_:{term}" if is_blank else str(term)
