"""Reads tables with one row for each entity: an id column and one column for each attribute."""

import logging
from collections.abc import Iterator, Sequence
from itertools import islice

from emea.config.settings.data import GraphForm
from emea.data.attributes import plain_text
from emea.data.formats.rows import Row
from emea.data.formats.triple_collector import TripleCollector
from emea.errors import DataError

log = logging.getLogger(__name__)

ID_NAMES = ("id", "uri", "iri", "identifier")
"""Names by which an id column is recognised, in order of preference. Case does not matter."""

BLOCK_SIZE = 1 << 15


def entity_columns(
    label: str, header: Sequence[str], form: GraphForm, attributes: Sequence[str]
) -> tuple[str, list[str]] | None:
    """Return the id column and the columns to read of a table of entities.

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
    if form.id_column is not None:
        # two tables may name their id columns differently
        wanted = [form.id_column, *(name.strip() for name in form.id_column.split(","))]
        found = next((name for name in wanted if name in names), None)
        if found is None:
            raise DataError(
                f"{label} has no column {form.id_column}. Set data.id_column to one of its "
                f"columns: {', '.join(names)}."
            )
    else:
        lower = [name.lower() for name in names]
        known = next((name for name in ID_NAMES if name in lower), None)
        if known is None:
            return None
        found = names[lower.index(known)]
    chosen = {*attributes, *form.references}
    others = [
        name for name in names if name and name != found and (not attributes or name in chosen)
    ]
    return found, others


def from_entity_rows(
    label: str, rows: Iterator[Row], form: GraphForm, keep_literals: bool
) -> TripleCollector[str]:
    """Collect the cells of a table of entities.

    Args:
        label: The name of the file.
        rows: The rows. The only wanted cell is the id.
        form: Names the columns with references and the separators of lists.
        keep_literals: Whether to keep all literals, not only labels.
    """
    collector: TripleCollector[str] = TripleCollector(str, plain_text, keep_literals)
    lists, references = form.lists or {}, frozenset(form.references)
    num_rows, ids = 0, set[str]()
    while block := list(islice(rows, BLOCK_SIZE)):
        num_rows += len(block)
        ids.update(row.cells[0] for row in block)
        cells = [
            (row.cells[0], name, part)
            for row in block
            for name, cell in row.attributes
            for part in _parts(cell, lists.get(name))
        ]
        for is_reference, add in ((True, collector.add), (False, collector.add_literals)):
            some = [cell for cell in cells if (cell[1] in references) == is_reference]
            if some:
                add(*zip(*some, strict=True))
    if num_rows > len(ids):
        log.warning(
            "%s: %d rows repeat the id of another row and add values to its entity. Set "
            "data.id_column if another column identifies the entities.",
            label,
            num_rows - len(ids),
        )
    return collector


def _parts(cell: str, separator: str | None) -> list[str]:
    """Return the items of a cell, which is a list if its column has a separator."""
    if not separator:
        return [cell]
    return [part for item in cell.split(separator) if (part := item.strip())]
