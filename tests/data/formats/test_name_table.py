"""Names are numbered by first appearance."""

from hypothesis import given
from hypothesis import strategies as st

from emea.data.formats.triple_collector import NameTable


@given(st.lists(st.lists(st.text(max_size=2))))
def test_numbers_are_those_of_a_loop(blocks: list[list[str]]) -> None:
    table: NameTable[str] = NameTable()
    seen: list[str] = []
    for block in blocks:
        expected = []
        for name in block:
            if name not in seen:
                seen.append(name)
            expected.append(seen.index(name))
        assert table.numbers(block).tolist() == expected
    assert list(table) == seen
    half = len(seen) // 2
    assert list(table.since(half)) == seen[half:][::-1]
    table.forget(half)
    assert list(table) == seen[:half]
