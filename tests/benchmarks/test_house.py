"""The measures of how the code reads."""

import pytest

from benchmarks.house import measured

CODE = """# a comment
def f(x):
    a, b = 1, 2
    return a if x else b
"""

TOKENS = "def f ( x ) : a , b = 1 , 2 return a if x else b"


def test_measures_of_a_function() -> None:
    found = measured(CODE)
    assert (found.modules, found.definitions, found.comments) == (1, 1, 1)
    assert (found.code_lines, found.pair_assignments, found.choices) == (3, 1, 1)
    assert found.tokens == TOKENS.count(" ") + 1


@pytest.mark.parametrize("code", ["a = b, c", "a, b = f()", "a = b"])
def test_other_assignments_are_not_pairs(code: str) -> None:
    assert measured(code).pair_assignments == 0
