"""Reads tables with one row for each entity: an id column and one column for each attribute."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from emea.data.attributes import LABEL_ATTRIBUTES, plain_text
from emea.data.formats.rows import UNWRITABLE, Row
from emea.data.formats.settings import GraphForm
from emea.data.formats.triple_collector import TripleCollector
from emea.data.names import LABEL_NAMES, are_words, based_iri
from emea.errors import DataError

log = logging.getLogger(__name__)

ID_NAMES = ("id", "uri", "iri", "identifier")
"""Names by which an id column is recognised, in order of preference. Case does not matter."""

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
"""The attribute that keeps the text of a cell that names another entity."""

BLOCK_SIZE = 1 << 15

LEAST_ROWS = 2
"""Rows from which different cells show that a column identifies the rows."""

LEAST_FILLED = 0.5
"""Share of the rows that a column must have a cell for, to name them."""

NEARLY = 0.8
"""Share of the most different cells from which a column distinguishes the rows as well."""

_ID_LIKE = re.compile(
    r"(?:.*[\s_.\-])?(?:[iI][dD]|key|code|isbn|ean|doi|uuid)|.*[a-z]I[Dd]"
)
_NOT_A_NAME = re.compile(r"[\d.,+\-]*")


@dataclass(frozen=True)
class EntityColumns:
    """The columns of a table of entities that are read.

    Args:
        id: The column that identifies the entity of a row.
        others: The other columns.
        label: The column that names the entity, if it is known by its name.
    """

    id: str
    others: list[str]
    label: str | None = None


def entity_columns(
    label: str, header: Sequence[str], form: GraphForm, attributes: Sequence[str]
) -> EntityColumns | None:
    """Return the columns to read of a table of entities.

    The result is ``None`` if no column is an id column.

    Args:
        label: The name of the file.
        header: The cells of its first row.
        form: Names the id column and the columns that refer to other entities.
        attributes: The attributes to read; all columns if there are none.

    Raises:
        DataError: The table does not have the id column that the user names.
    """
    names = [cell.strip() for cell in header]
    lower = [name.lower() for name in names]
    if form.id_column is not None:
        known = _named_column(names, form.id_column)
        if known is None:
            raise DataError(
                f"{label} has no column {form.id_column}. Set data.id_column to one of its "
                f"columns: {', '.join(names)}."
            )
        found = known
    else:
        known = next((name for name in ID_NAMES if name in lower), None)
        if known is None:
            return None
        found = names[lower.index(known)]
    # only one of two tables may have the column
    given = (
        None if form.label_column is None else _named_column(names, form.label_column)
    )
    usual = (names[lower.index(name)] for name in LABEL_NAMES if name in lower)
    shown = next(usual, None) if given is None else given
    chosen = {*attributes, *form.references, given}
    others = [
        name
        for name in names
        if name and name != found and (not attributes or name in chosen)
    ]
    is_read = shown in others and shown not in form.references
    return EntityColumns(found, others, shown if is_read else None)


def column_names(given: str) -> list[str]:
    """Return the columns that a setting may mean: one for both tables, or two with a comma."""
    return [given, *(name.strip() for name in given.split(","))]


def _named_column(names: Sequence[str], given: str) -> str | None:
    return next((name for name in column_names(given) if name in names), None)


def identifying_column(
    header: Sequence[str], rows: Sequence[Sequence[str]]
) -> str | None:
    """Return the column of a table without an id column whose cells identify the rows.

    All its cells are different. Columns whose names look like those of ids come first.

    Args:
        header: The cells of the first row.
        rows: Further rows.
    """
    names = [cell.strip() for cell in header]
    is_header = len(set(names)) == len(names) and not any(
        map(_NOT_A_NAME.fullmatch, names)
    )
    rows = [row for row in rows if len(row) == len(names)]
    if not is_header or len(rows) < LEAST_ROWS:
        return None
    columns = zip(names, zip(*rows, strict=True), strict=True)
    single = [
        name for name, cells in columns if all(cells) and len(set(cells)) == len(cells)
    ]
    like_ids = [name for name in single if _ID_LIKE.fullmatch(name)]
    return next(iter([*like_ids, *single]), None)


def from_entity_rows(
    label: str,
    rows: Iterator[Row],
    columns: EntityColumns,
    form: GraphForm,
    keep_literals: bool,
) -> TripleCollector[str]:
    """Collect the cells of a table of entities.

    Args:
        label: The name of the file.
        rows: The rows. The only wanted cell is the id.
        columns: The columns that are read.
        form: Names the columns with references and the separators of lists.
        keep_literals: Whether to keep all literals, not only labels.
    """
    collector: TripleCollector[str] = TripleCollector(str, plain_text, keep_literals)
    lists = form.lists or {}
    references = frozenset(form.references)
    num_rows = 0
    ids = set[str]()
    named: dict[str, dict[str, None]] = {name: {} for name in form.references}
    while block := list(islice(rows, BLOCK_SIZE)):
        if not num_rows:
            shown = columns.label or _label_column(block, references | lists.keys())
            if shown is not None:
                collector.label_attributes = (shown, *LABEL_ATTRIBUTES)
        num_rows += len(block)
        ids.update(row.cells[0] for row in block)
        cells = [
            (row.cells[0], name, part)
            for row in block
            for name, cell in row.attributes
            for part in _parts(cell, lists.get(name))
        ]
        links = [
            (head, name, tail)
            for head, name, text in cells
            if name in references and (tail := _on_one_line(text))
        ]
        values = [cell for cell in cells if cell[1] not in references]
        for _, name, text in links:
            named[name].setdefault(text)
        collector.add_rows(
            [(_iri(head, form), name, _iri(tail, form)) for head, name, tail in links],
            [(_iri(head, form), name, text) for head, name, text in values],
        )
    for texts in named.values():
        _add_names(collector, [text for text in texts if text not in ids], form)
    if num_rows > len(ids):
        log.warning(
            "%s: %d rows repeat the id of another row and add values to its entity. Set "
            "data.id_column if another column identifies the entities.",
            label,
            num_rows - len(ids),
        )
    return collector


def _iri(name: str, form: GraphForm) -> str:
    """Return the name of the entity with this id: its IRI if there is a base."""
    return name if form.base_iri is None else based_iri(form.base_iri, name)


def _add_names(
    collector: TripleCollector[str], texts: Sequence[str], form: GraphForm
) -> None:
    """Add the text of cells that refer to other entities as their names, unless they are ids."""
    if are_words(texts):
        rows = [(_iri(text, form), LABEL, text) for text in texts]
        collector.add_rows([], rows)


def _label_column(rows: Sequence[Row], excluded: frozenset[str]) -> str | None:
    """Return the first column that names the rows.

    Its cells are words, most rows have one, and nearly as many are different as in any such column.
    """
    cells: dict[str, list[str]] = {}
    for row in rows:
        for name, cell in row.attributes:
            if name not in excluded:
                cells.setdefault(name, []).append(cell)
    num_different = {
        name: len(set(texts))
        for name, texts in cells.items()
        if len(texts) >= LEAST_FILLED * len(rows) and are_words(texts)
    }
    most = max(num_different.values(), default=0)
    return next(
        (name for name, num in num_different.items() if num >= NEARLY * most), None
    )


def _on_one_line(text: str) -> str:
    """Return the text of a cell as the name of an entity: results separate names by tabs."""
    return " ".join(text.split()) if UNWRITABLE.search(text) else text


def _parts(cell: str, separator: str | None) -> list[str]:
    """Return the items of a cell, which is a list if its column has a separator."""
    if not separator:
        return [cell]
    return [part for item in cell.split(separator) if (part := item.strip())]
