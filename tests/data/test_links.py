"""Names become links between two graphs, one-to-one."""

import numpy as np
import pytest

from emea.data.formats.tab_file import TabTable
from emea.data.graph import KnowledgeGraph
from emea.data.links import (
    NUM_NAMED,
    EntityFinder,
    LinkListing,
    LinkRegister,
    LinkResolver,
)
from emea.data.names import Prefixes
from emea.errors import DataError


def finder(names: list[str], side: str) -> EntityFinder:
    triples = np.zeros((0, 3), dtype=np.int64)
    return EntityFinder(
        KnowledgeGraph(triples, len(names), 0, names), side, f"{side}.nt"
    )


def resolver(on_error: str = "stop", **prefixes: str) -> LinkResolver:
    source, target = (
        finder(["a", "b", "c"], "source"),
        finder(["x", "y", "long/z"], "target"),
    )
    return LinkResolver(source, target, Prefixes(prefixes), on_error, LinkRegister())


def listing(
    *links: tuple[str, str], label: str = "seeds.tsv", **more: bool
) -> LinkListing:
    return LinkListing(label, links, range(2, 2 + len(links)), **more)


def test_ids_and_repetitions() -> None:
    links, reading = resolver().resolve(listing(("b", "x"), ("a", "y"), ("b", "x")))
    assert links.tolist() == [[0, 1], [1, 0]]
    assert (reading.num_links, reading.num_duplicates) == (2, 1)


def test_an_unknown_entity_is_named_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    links, reading = resolver().resolve(listing(("a", "x"), ("q", "y"), ("b", "q")))
    assert links.tolist() == [[0, 0]]
    assert reading.num_unknown == 2
    assert (
        "seeds.tsv, line 3: source entity q is not in source.nt: left out"
        in caplog.text
    )
    assert (
        "seeds.tsv, line 4: target entity q is not in target.nt: left out"
        in caplog.text
    )


def test_many_unknown_entities_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    resolver().resolve(
        listing(*((f"q{number}", "x") for number in range(NUM_NAMED + 5)))
    )
    assert f"q{NUM_NAMED - 1} " in caplog.text
    assert f"q{NUM_NAMED} " not in caplog.text
    assert "5 more links with an unknown entity left out" in caplog.text


def test_same_as_may_be_meant_either_way() -> None:
    assert resolver().resolve(listing(("x", "a"), symmetric=True))[0].tolist() == [
        [0, 0]
    ]
    assert not len(resolver().resolve(listing(("x", "a")))[0])


def test_short_names() -> None:
    assert resolver(l="long/").resolve(listing(("a", "l:z")))[0].tolist() == [[0, 2]]


def test_a_contradiction_stops_or_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    links = listing(("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"))
    message = (
        r"seeds\.tsv, line 3: source entity a is already linked in seeds\.tsv, line 2 "
    )
    message += r"\(cardinality=one_to_one allows one link of each source and target entity; choose "
    message += r"another cardinality, such as cardinality=many_to_many, or use data\.on_error=skip"
    with pytest.raises(DataError, match=message):
        resolver().resolve(links)
    kept, reading = resolver("skip").resolve(links)
    assert kept.tolist() == [[0, 0], [1, 1]]
    assert reading.num_contradicting == 2
    assert "line 4: target entity x is already linked" in caplog.text


def test_a_label_is_no_test_link() -> None:
    strict, lenient = resolver(), resolver("skip")
    for one in (strict, lenient):
        one.resolve(listing(("a", "x")))
    test = listing(("a", "x"), ("b", "y"), label="test.tsv")
    with pytest.raises(
        DataError,
        match=r"test\.tsv, line 2: link a - x is already in seeds.*must differ",
    ):
        strict.resolve(test)
    assert lenient.resolve(test)[0].tolist() == [[1, 1]]


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
        (
            [(3, 13), (3, 13)],
            True,
            "test, line 2: link 3 - 13 is already in test, line 1",
        ),
        ([(2, 12)], False, "test, line 1: link 2 - 12 is already in train, line 2"),
        (
            [(2, 13)],
            True,
            "test, line 1: source entity 2 is already linked in train, line 2",
        ),
        (
            [(3, 11)],
            True,
            "test, line 1: target entity 11 is already linked in train, line 1",
        ),
    ],
)
def test_errors(
    register: LinkRegister[int],
    links: list[tuple[int, int]],
    may_repeat: bool,
    message: str,
) -> None:
    with pytest.raises(DataError) as error:
        register.add(TEST, links, may_repeat)
    assert str(error.value) == message


def test_contains(register: LinkRegister[int]) -> None:
    register.check_contains(TEST, [(2, 12)], "train")
    with pytest.raises(DataError, match=r"^test, line 2: link 2 - 11 is not in train$"):
        register.check_contains(TEST, [(2, 12), (2, 11)], "train")
