"""Tab-separated files: what is accepted and how errors read."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emea.data.formats.tab_file import (
    IdNumbers,
    TableRows,
    parsed_ids,
    read_ids,
    read_table,
)
from emea.errors import DataError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "triples_1"


@pytest.mark.parametrize(
    "content",
    [
        b"1\t2\t3\n4\t5\t6\n",
        b"1\t2\t3\n4\t5\t6",
        b"1\t2\t3\r\n4\t5\t6\r\n",
        b"1\t2\t3\r\n4\t5\t6",
        b"\xef\xbb\xbf1\t2\t3\n4\t5\t6\n",
        b"\xef\xbb\xbf1\t2\t3\r\n4\t5\t6\r\n\r\n\n",
    ],
    ids=["lf", "no newline", "crlf", "crlf no newline", "bom", "bom crlf blank end"],
)
def test_accepted_layouts(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    table = read_table(file, 3)
    assert len(table) == 2
    assert [table.integers(column).tolist() for column in range(3)] == [
        [1, 4],
        [2, 5],
        [3, 6],
    ]


def test_names_may_hold_any_other_separator(file: Path) -> None:
    names = ["a\u2028b", "c\x85d", "e\x0cf", "g\rh", " i "]
    file.write_text(
        "".join(f"{name}\tx\n" for name in names), encoding="utf-8", newline=""
    )
    assert read_table(file, 2).names(0) == names


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\t2\t3\n1\t2\n", "line 2: expected 3 tab-separated columns, found 2"),
        (b"1\t2\t3\t4\n1\t2\n", "line 1: expected 3 tab-separated columns, found 4"),
        (
            b"1\t2\t3\n\n1\t2\t3\n",
            "line 2: expected 3 tab-separated columns, found a blank line",
        ),
        (b"1\t2\n3\t1\t2\t3\n", "line 1: expected 3 tab-separated columns, found 2"),
        (b"1\t2\t3\r\n1\t2\r\n", "line 2: expected 3 tab-separated columns, found 2"),
        (b"1\t2\t3\n1\t2\t\xff\n", "line 2: byte 0xff is not UTF-8"),
        (b"\xef\xbb\xbf1\t2\t3\n\n\n1\t2\t\xe9\n", "line 4: byte 0xe9 is not UTF-8"),
        (b"", "line 1: the file is empty"),
        (b"\xef\xbb\xbf\r\n\n", "line 1: the file is empty"),
    ],
)
def test_layout_errors(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_table(file, 3)
    assert str(error.value) == f"triples_1, {message}"


@pytest.mark.parametrize("cell", ["x", "", "1.5", "1_0", "99999999999999999999"])
def test_non_integer_id(file: Path, cell: str) -> None:
    file.write_text(f"1\t2\t3\n4\t{cell}\t6\n")
    with pytest.raises(DataError) as error:
        read_table(file, 3).integers(1)
    assert (
        str(error.value) == f"triples_1, line 2: expected an integer id, found {cell!r}"
    )


def test_empty_name(file: Path) -> None:
    file.write_text("a\tb\nc\t\n")
    with pytest.raises(DataError, match=r"^links, line 2: column 2 is empty$"):
        read_table(file, 2, label="links").names(1)


def test_missing_file(file: Path) -> None:
    with pytest.raises(DataError, match="triples_1 cannot be read: No such file"):
        read_table(file, 3)


CONTENTS = st.one_of(
    st.text(alphabet="0129-+_ \t\n\r.٣é", max_size=30),
    st.lists(
        st.lists(st.integers(0, 10**19).map(str), min_size=2, max_size=2).map(
            "\t".join
        ),
        max_size=5,
    ).map("\n".join),
)


@given(content=CONTENTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ids_are_those_of_the_general_reader(tmp_path: Path, content: str) -> None:
    path = tmp_path / "links"
    path.write_bytes(content.encode())
    try:
        table = read_table(path, 2)
        expected = [
            list(row) for row in zip(table.integers(0), table.integers(1), strict=True)
        ]
    except DataError as error:
        with pytest.raises(DataError) as found:
            read_ids(path, 2)
        assert str(found.value) == str(error)
    else:
        assert read_ids(path, 2)[1].tolist() == expected


def test_plain_ids_are_parsed_at_once() -> None:
    values = parsed_ids(b"1\t20\t3\n004\t5\t999999999999999999\n\n", 3)
    assert values is not None
    assert values.tolist() == [[1, 20, 3], [4, 5, 10**18 - 1]]
    assert values.dtype == np.int64


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"\n",
            b"1\t2\n3",
            b"1\t2\n\n3\t4",
            b"1\t\n2\t3",
            b"1\t2\t3\t4",
            b"1\n2\t3\t4",
        ),
        *(
            b"1\t2\r\n3\t4",
            b"-1\t2",
            b"1 \t2",
            b"1\t1000000000000000000",
            "1\t٣".encode(),
        ),
    ],
)
def test_other_layouts_are_left_to_the_general_reader(content: bytes) -> None:
    assert parsed_ids(content, 2) is None


@pytest.mark.parametrize("keys", [[7, 3, 5], [70_000, -3, 5 * 10**15], [4]])
def test_numbers_follow_the_order_of_the_keys(keys: list[int]) -> None:
    numbers = IdNumbers(np.array(keys), "entity", "ent_ids_1")
    column = np.array([keys[-1], keys[0], keys[-1]])
    table = TableRows("t")
    assert numbers.of(column, table).tolist() == [len(keys) - 1, 0, len(keys) - 1]
    assert numbers.of(column[:0], table).tolist() == []


@pytest.mark.parametrize("keys", [[7, 3, 5], [70_000, -3, 5 * 10**15]])
@pytest.mark.parametrize("unknown", [2, 4, 8, 10**17, -(10**17)])
def test_unknown_id_names_its_line(keys: list[int], unknown: int) -> None:
    numbers = IdNumbers(np.array(keys), "entity", "ent_ids_1")
    column = np.array([keys[1], unknown, unknown + 1])
    message = rf"^t, line 2: unknown entity {unknown} \(not in ent_ids_1\)$"
    with pytest.raises(DataError, match=message):
        numbers.of(column, TableRows("t"))
