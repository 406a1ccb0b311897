"""One clustering of several graphs, from the runs of all pairs."""

import itertools

import numpy as np
import pytest

from emea.clusters.several import (
    LIKELY,
    PairMatches,
    closed_share,
    cluster_several,
    implied_pairs,
)

from .people import f1, pairs_of


def slow_implied(pairs, places) -> set[tuple[int, int]]:
    around: dict[int, set[int]] = {}
    for first, second in pairs.tolist():
        around.setdefault(first, set()).add(second)
        around.setdefault(second, set()).add(first)
    return {
        (one, other)
        for held in around.values()
        for one in held
        for other in held
        if places[one] < places[other]
    }


@pytest.mark.parametrize("seed", range(5))
def test_implied_pairs_are_those_of_a_slow_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = np.repeat([0, 1, 2, 3], 6)
    pairs = np.unique(rng.integers(0, 24, (30, 2)), axis=0)
    pairs = pairs[places[pairs[:, 0]] < places[pairs[:, 1]]]

    found = implied_pairs(pairs, places, 24)

    assert set(map(tuple, found.tolist())) == slow_implied(pairs, places)
    closed = {tuple(pair) for pair in pairs.tolist()} & slow_implied(pairs, places)
    share = len(closed) / len(slow_implied(pairs, places))
    assert closed_share(pairs, places, 24) == pytest.approx(share)


def three_graphs(*found: tuple[int, int, int, int, float], size: int = 1):
    """Matches of three graphs: graphs, entities and probability."""
    matches = []
    for both in itertools.combinations(range(3), 2):
        rows = [row for row in found if row[:2] == both]
        pairs = np.array([row[2:4] for row in rows], dtype=np.int64).reshape(-1, 2)
        probs = np.array([row[4] for row in rows], dtype=float)
        matches.append(PairMatches(*both, pairs, probs))
    return cluster_several([size] * 3, matches, is_single=True)


def test_a_missing_match_is_found_through_a_third_graph() -> None:
    found = three_graphs((0, 1, 0, 0, 0.95), (1, 2, 0, 0, 0.95))

    assert found.clusters.tolist() == [0, 0, 0]


def test_a_cluster_has_one_entity_of_each_graph() -> None:
    found = three_graphs(
        (0, 1, 0, 0, 0.95), (1, 2, 0, 0, 0.95), (0, 2, 0, 1, 0.6), size=2
    )

    assert found.clusters.tolist() == [0, 1, 0, 3, 0, 5]


def test_entities_of_some_graphs_only_have_smaller_clusters() -> None:
    found = three_graphs((0, 2, 1, 0, 0.9), (0, 1, 0, 0, 0.3), size=2)

    assert found.clusters.tolist() == [0, 1, 2, 3, 1, 5]


def test_a_missing_match_counts_more_where_runs_find_nearly_all() -> None:
    """A weak match joins nothing if the match that it implies should have been found."""
    sure = [
        (first, second, entity, entity, 0.95)
        for first, second in ((0, 1), (0, 2), (1, 2))
        for entity in range(40)
    ]
    weak = [(0, 1, 40, 40, 0.7), (1, 2, 40, 40, 0.95)]

    alone = three_graphs(*weak, size=41)
    among_sure = three_graphs(*sure, *weak, size=41)

    assert alone.clusters[[40, 81, 122]].tolist() == [40, 40, 40]
    assert among_sure.clusters[[40, 81, 122]].tolist() == [40, 81, 81]
    assert alone.confirmed == 0.5 and among_sure.confirmed > 0.95


@pytest.mark.parametrize("num_graphs", [3, 5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_consistency_gains_over_pairs(num_graphs: int, seed: int) -> None:
    """Runs that miss 20% of the matches and give 10% wrong ones, with their probabilities."""
    rng = np.random.default_rng(seed)
    size = 150
    who = [rng.permutation(200)[:size] for _ in range(num_graphs)]
    matches = []
    for one, other in itertools.combinations(range(num_graphs), 2):
        place = {person: entity for entity, person in enumerate(who[other].tolist())}
        rows = []
        for entity, person in enumerate(who[one].tolist()):
            is_right = person in place and rng.random() < 0.8
            if is_right:
                rows.append((entity, place[person], rng.beta(8, 1)))
            elif rng.random() < 0.4:
                rows.append((entity, int(rng.integers(size)), rng.beta(3, 3)))
        pairs = np.array([row[:2] for row in rows])
        matches.append(
            PairMatches(one, other, pairs, np.array([row[2] for row in rows]))
        )

    found = cluster_several([size] * num_graphs, matches, is_single=True)

    people_of = np.concatenate(who)
    first = {person: place for place, person in reversed(list(enumerate(people_of)))}
    true = pairs_of(np.array([first[person] for person in people_of]))
    shift = [size * np.array([one.first, one.second]) for one in matches]
    alone = {
        tuple(pair)
        for one, start in zip(matches, shift, strict=True)
        for pair in (one.pairs[one.probs >= LIKELY] + start).tolist()
    }
    together = pairs_of(found.clusters)
    assert f1(together, true) > f1(alone, true) + 0.03
    places = np.repeat(np.arange(num_graphs), size)
    both = [np.array(sorted(pairs)) for pairs in (alone, together)]
    closed = [closed_share(pairs, places, len(places)) for pairs in both]
    assert closed[0] < 0.9 and closed[1] == 1.0
    for row in np.unique(found.clusters):
        graphs = places[found.clusters == row]
        assert len(graphs) == len(set(graphs.tolist()))


def test_without_matches_there_are_no_clusters() -> None:
    assert three_graphs(size=2).clusters.tolist() == list(range(6))
