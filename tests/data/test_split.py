"""Splits of the links."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.split import Split, known_split, official_split, random_split
from emea.errors import DataError


def make_pair(num_links: int, parts: tuple[int, int] | None = None) -> GraphPair:
    """A pair without triples; ``parts`` are official training and validation sizes."""
    graph = KnowledgeGraph(np.empty((0, 3), dtype=np.int64), num_links, 1)
    links = np.stack([np.arange(num_links), np.arange(num_links)[::-1]], axis=1)
    official = OfficialSplit(*np.split(links, np.cumsum(parts))) if parts else None
    return GraphPair("p", graph, graph, links, official)


def rows(split: Split) -> list[set[tuple[int, int]]]:
    parts = split.supervision.train, split.supervision.validation, split.test
    return [set(map(tuple, part.tolist())) for part in parts]


def sizes(split: Split) -> tuple[int, int, int]:
    supervision = split.supervision
    return len(supervision.train), len(supervision.validation), len(split.test)


@given(
    st.integers(3, 300),
    st.floats(0.01, 0.99),
    st.integers(0, 20),
    st.sampled_from(["rest", "train"]),
    st.integers(0, 2**32),
)
def test_random_parts_are_disjoint_and_complete(
    num_links: int, ratio: float, num_validation: int, validation_from: str, seed: int
) -> None:
    pair = make_pair(num_links)
    try:
        split = random_split(pair, ratio, seed, num_validation, validation_from)
    except DataError:
        assume(False)
    parts = rows(split)
    assert set.union(*parts) == set(map(tuple, pair.links.tolist()))
    assert sum(sizes(split)) == sum(map(len, parts)) == num_links


@pytest.mark.parametrize(
    ("validation_from", "expected"),
    [("rest", (150, 100, 14750)), ("train", (50, 100, 14850))],
)
def test_random_sizes(validation_from: str, expected: tuple[int, int, int]) -> None:
    split = random_split(make_pair(15000), 0.01, 1, validation_from=validation_from)
    assert sizes(split) == expected


def test_seeds() -> None:
    pair = make_pair(200)
    first, again, other = (random_split(pair, 0.2, seed, 10) for seed in (1, 1, 2))
    assert np.array_equal(first.supervision.train, again.supervision.train)
    assert np.array_equal(first.test, again.test)
    assert rows(first)[0] != rows(other)[0]


def test_training_grows_with_the_ratio() -> None:
    pair = make_pair(500)
    small, large = (rows(random_split(pair, ratio, 1, 10))[0] for ratio in (0.1, 0.3))
    assert small < large


def test_draw_does_not_look_at_the_links() -> None:
    """Whatever the targets are, the same rows are drawn."""
    pair = make_pair(200)
    mixed = pair.links.copy()
    mixed[:, 1] = np.random.default_rng(0).permutation(mixed[:, 1])
    other = GraphPair("q", pair.source, pair.target, mixed)

    def sources(links: IntArray) -> list[int]:
        found: list[int] = links[:, 0].tolist()
        return found

    first, second = (
        random_split(pair, 0.2, 1, 10),
        random_split(other, 0.2, 1, 10),
    )
    assert sources(first.supervision.train) == sources(second.supervision.train)
    assert sources(first.test) == sources(second.test)


HINT = "validation links. Lower split.num_validation."


@pytest.mark.parametrize(
    ("ratio", "num_validation", "validation_from", "message"),
    [
        (0.3, 80, "rest", f"p has 70 links outside training, too few for 80 {HINT}"),
        (0.3, 40, "train", f"p has 30 training links, too few for 40 {HINT}"),
        (0.3, 70, "rest", "p has too few links (100): no test link is left"),
        (0.3, 30, "train", "p has too few links (100): no training link is left"),
        (0.001, 10, "rest", "p has too few links (100): no training link is left"),
        (0.999, 0, "rest", "p has too few links (100): no test link is left"),
    ],
)
def test_too_few_links(
    ratio: float, num_validation: int, validation_from: str, message: str
) -> None:
    with pytest.raises(DataError) as error:
        random_split(make_pair(100), ratio, 1, num_validation, validation_from)
    assert str(error.value) == message


def test_official_parts_are_kept() -> None:
    pair = make_pair(100, (20, 10))
    split = official_split(pair, seed=1, num_validation=5)
    assert pair.official is not None
    assert np.array_equal(split.supervision.train, pair.official.train)
    assert np.array_equal(split.supervision.validation, pair.official.validation)
    assert np.array_equal(split.test, pair.official.test)


@pytest.mark.parametrize(
    ("validation_from", "expected"), [("rest", (20, 15, 65)), ("train", (5, 15, 80))]
)
def test_official_validation_is_drawn(
    validation_from: str, expected: tuple[int, int, int]
) -> None:
    pair = make_pair(100, (20, 0))
    split = official_split(pair, 1, 15, validation_from)
    assert sizes(split) == expected
    assert set.union(*rows(split)) == set(map(tuple, pair.links.tolist()))
    assert rows(split) == rows(official_split(pair, 1, 15, validation_from))
    assert rows(split) != rows(official_split(pair, 2, 15, validation_from))


def test_no_official_parts() -> None:
    with pytest.raises(
        DataError, match=r"^p has no official split. Use split=random\.$"
    ):
        official_split(make_pair(100), 1)


def labelled_pair(num_links: int, num_test: int = 0) -> GraphPair:
    graph = KnowledgeGraph(np.zeros((0, 3), dtype=np.int64), num_links + num_test, 0)
    links = np.stack([np.arange(num_links + num_test)] * 2, axis=1)
    official = OfficialSplit(links[:num_links], links[:0], links[num_links:])
    return GraphPair("mine", graph, graph, links, official)


@pytest.mark.parametrize(
    ("num_links", "num_validation"), [(4, 0), (5, 1), (99, 19), (2000, 100)]
)
def test_known_links_are_labels(num_links: int, num_validation: int) -> None:
    split = known_split(labelled_pair(num_links, num_test=3), seed=0)
    known = split.supervision
    assert len(known.validation) == num_validation
    assert len(known.train) + num_validation == num_links
    assert split.test.tolist() == [[num_links + i] * 2 for i in range(3)]
    together = np.concatenate([known.train, known.validation])[:, 0]
    assert sorted(together.tolist()) == list(range(num_links))


def test_known_links_of_a_pair_without_parts() -> None:
    split = known_split(replace(labelled_pair(50), official=None), seed=0)
    assert (len(split.supervision.train), len(split.test)) == (40, 0)


def test_test_links_do_not_reach_into_known_labels() -> None:
    with_test, without = (known_split(labelled_pair(30, n), seed=1) for n in (7, 0))
    assert np.array_equal(with_test.supervision.train, without.supervision.train)


def test_too_few_known_links() -> None:
    with pytest.raises(
        DataError, match=r"too few. Give at least 2 links, better 10 or more"
    ):
        known_split(labelled_pair(1), seed=0)
    assert len(known_split(labelled_pair(2), seed=0).supervision.train) == 2


def test_no_known_links() -> None:
    with pytest.raises(DataError, match=r"no links to learn from. Give known links"):
        known_split(labelled_pair(0), seed=0)


def test_labels_of_a_run_are_no_test_links() -> None:
    split = random_split(make_pair(40), 0.3, 0, num_validation=5)
    labels = np.concatenate([split.supervision.train, split.test[[2, 5]]])
    judged = split.with_labels(labels)
    assert judged.supervision.train.tolist() == labels.tolist()
    assert np.array_equal(judged.supervision.validation, split.supervision.validation)
    assert judged.test.tolist() == np.delete(split.test, [2, 5], axis=0).tolist()


def test_links_without_triples_are_drawn_but_not_learned_from() -> None:
    pair = replace(make_pair(100), num_absent=50)
    split = random_split(pair, 0.4, 0, num_validation=30)
    known = split.supervision
    num_lost = (
        150
        - len(known.train)
        - len(known.validation)
        - len(split.test)
        - split.num_missed
    )
    assert len(known.train) + len(known.validation) + len(split.test) == 100
    assert 10 < split.num_missed < 40 and num_lost == 50 - split.num_missed
    assert split.missed_share == split.num_missed / (150 - 60 - 30)
    parts = np.concatenate([known.train, known.validation, split.test])
    assert sorted(parts.tolist()) == sorted(pair.links.tolist())
    assert split.with_labels(known.train).num_missed == split.num_missed


def test_missed_links_of_other_splits() -> None:
    pair = make_pair(20)
    official = OfficialSplit(
        pair.links[:10], pair.links[:0], pair.links[10:], num_absent=3
    )
    pair = replace(pair, official=official, num_absent=5)
    assert official_split(pair, 0, num_validation=2).num_missed == 3
    assert known_split(pair, 0).num_missed == 3
