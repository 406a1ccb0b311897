"""Tables of figures, which are drawn of strict runs, for either protocol."""

from collections.abc import Mapping, Sequence

from emea.reporting.comparison import NOT_RUN
from emea.reporting.markdown import markdown_table

RELEASED = "The same under `protocol=released`, where it was run:"

Rows = Sequence[Sequence[str]]


def protocol_tables(
    titles: Sequence[str], rows: Mapping[str, Rows], num_left: int
) -> tuple[str, ...]:
    """The table of the strict runs and, if there are any, that of the released ones.

    Args:
        titles: of the columns.
        rows: of each protocol; of ``released`` those that were run are shown.
        num_left: columns of text.
    """
    tables = [markdown_table(titles, rows["strict"], num_left=num_left)]
    released = [row for row in rows["released"] if NOT_RUN not in row]
    if released:
        tables += [RELEASED, markdown_table(titles, released, num_left=num_left)]
    return tuple(tables)
