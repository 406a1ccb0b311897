"""Numbering of keys."""

import pytest

from emea.data.formats.tab_file import TabTable, Vocabulary, check_listed_once
from emea.errors import DataError


def test_ids_follow_first_appearance() -> None:
    vocabulary = Vocabulary(["b", "a", "b", "c"], "entity", "somewhere")
    assert len(vocabulary) == 3
    table = TabTable("links", (["c", "b"],))
    assert vocabulary.ids(["c", "b"], table).tolist() == [2, 0]


def test_unknown_key_names_its_line() -> None:
    vocabulary = Vocabulary([1, 2], "entity", "ent_ids_1")
    with pytest.raises(DataError, match=r"^t, line 2: unknown entity 7 \(not in ent_ids_1\)$"):
        vocabulary.ids([1, 7, 8], TabTable("t", (["1", "7", "8"],)))


def test_listed_twice() -> None:
    with pytest.raises(DataError, match=r"^t, line 3: entity 1 is already listed in line 1$"):
        check_listed_once([1, 2, 1], TabTable("t", (["1", "2", "1"],)))
