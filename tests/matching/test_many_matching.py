"""Matchings in which an entity may have several counterparts, against dictionaries."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.matching.many_matching import MOST_COUNTERPARTS, ManyMatching

NUM_SOURCE, NUM_TARGET = 4, 5
PAIRS = st.dictionaries(
    st.tuples(st.integers(0, NUM_SOURCE - 1), st.integers(0, NUM_TARGET - 1)),
    st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0]),
)


def matching_of(pairs: dict[tuple[int, int], float]) -> ManyMatching:
    keys = torch.tensor(list(pairs), dtype=torch.int64).reshape(-1, 2)
    return ManyMatching.of_pairs(
        keys, torch.tensor(list(pairs.values())), NUM_SOURCE, NUM_TARGET
    )


def listed(matching: ManyMatching) -> dict[tuple[int, int], float]:
    rows = zip(matching.pairs().tolist(), matching.pair_probs().tolist(), strict=True)
    return {(source, target): round(prob, 6) for (source, target), prob in rows}


@given(PAIRS, PAIRS)
def test_a_matching_is_a_dictionary_of_pairs(
    pairs: dict[tuple[int, int], float], others: dict[tuple[int, int], float]
) -> None:
    matching = matching_of(pairs)
    assert listed(matching) == pairs
    assert matching.sources.tolist() == sorted({source for source, _ in pairs})
    for side, probs in enumerate((matching.source_probs(), matching.target_probs())):
        expected = [
            max(
                (prob for pair, prob in pairs.items() if pair[side] == entity),
                default=0.0,
            )
            for entity in range((NUM_SOURCE, NUM_TARGET)[side])
        ]
        assert torch.allclose(probs, torch.tensor(expected, dtype=torch.float64))
    assert matching.num_changes(matching_of(others)) == len(
        pairs.keys() ^ others.keys()
    )
    assert listed(matching.faded(1.0)) == pairs
    assert all(
        prob in (1.0, *(0.0,)) or prob < 0.9
        for prob in listed(matching.faded(0.5)).values()
    )


@given(PAIRS, st.lists(st.integers(0, NUM_SOURCE - 1), max_size=6))
def test_matches_of_some_entities(
    pairs: dict[tuple[int, int], float], wanted: list[int]
) -> None:
    found = matching_of(pairs).matched(torch.tensor(wanted, dtype=torch.int64))
    rows = zip(found.places.tolist(), found.targets.tolist(), strict=True)
    expected = [
        (place, target)
        for place, source in enumerate(wanted)
        for one, target in pairs
        if one == source
    ]
    assert sorted(rows) == sorted(expected)
    assert found.places.tolist() == sorted(found.places.tolist())


def test_an_entity_keeps_its_best_counterparts() -> None:
    size = MOST_COUNTERPARTS + 10
    pairs = torch.stack(
        [torch.zeros(size, dtype=torch.int64), torch.arange(size)], dim=1
    )
    matching = ManyMatching.of_pairs(
        pairs, (1 + torch.arange(size)) / (size + 1), 1, size
    )
    assert sorted(matching.pairs()[:, 1].tolist()) == list(range(10, size))
