"""Tables of figures for either protocol."""

from emea.reporting.comparison import NOT_RUN
from emea.reporting.study import RELEASED, protocol_tables

from .fabricated import rows_of

TITLES = ("ratio", "EMEA")


def test_strict_runs_have_a_table_whatever_is_missing() -> None:
    missing = [["1%", NOT_RUN]]
    [table] = protocol_tables(TITLES, {"strict": missing, "released": missing}, num_left=1)
    assert rows_of(table) == missing


def test_released_runs_follow_where_there_are_any() -> None:
    released = [["1%", NOT_RUN], ["5%", "0.6"]]
    rows = {"strict": [["1%", "0.4"]], "released": released}
    strict, remark, table = protocol_tables(TITLES, rows, num_left=1)
    assert rows_of(strict) == [["1%", "0.4"]]
    assert remark == RELEASED
    assert rows_of(table) == [["5%", "0.6"]]
