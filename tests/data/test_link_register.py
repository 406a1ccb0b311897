"""Duplicate and contradictory links."""

import pytest

from emea.data.formats.tab_file import TabTable
from emea.data.links import LinkRegister
from emea.errors import DataError

TRAIN, TEST = TabTable("train", ([],)), TabTable("test", ([],))


@pytest.fixture
def register() -> LinkRegister[int]:
    register: LinkRegister[int] = LinkRegister()
    assert register.add(TRAIN, [(1, 11), (2, 12)]) == [0, 1]
    return register


def test_repeats_are_left_out_where_allowed(register: LinkRegister[int]) -> None:
    assert register.add(TEST, [(3, 13), (2, 12), (4, 14)], may_repeat=True) == [0, 2]


@pytest.mark.parametrize(
    ("links", "may_repeat", "message"),
    [
        ([(3, 13), (3, 13)], True, "test, line 2: link 3 - 13 is already in test, line 1"),
        ([(2, 12)], False, "test, line 1: link 2 - 12 is already in train, line 2"),
        ([(2, 13)], True, "test, line 1: source entity 2 is already linked in train, line 2"),
        ([(3, 11)], True, "test, line 1: target entity 11 is already linked in train, line 1"),
    ],
)
def test_errors(
    register: LinkRegister[int], links: list[tuple[int, int]], may_repeat: bool, message: str
) -> None:
    with pytest.raises(DataError) as error:
        register.add(TEST, links, may_repeat)
    assert str(error.value) == message


def test_contains(register: LinkRegister[int]) -> None:
    register.check_contains(TEST, [(2, 12)], "train")
    with pytest.raises(DataError, match=r"^test, line 2: link 2 - 11 is not in train$"):
        register.check_contains(TEST, [(2, 12), (2, 11)], "train")
