"""Implied pairs against brute force over all pairs."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph_pair import GraphPair
from emea.em import propagation
from emea.em.propagation import Propagation, smallest_of_groups
from emea.matching.beliefs import Matching
from emea.matching.similarity import Cosine, Similarity
from emea.matching.two_sided import Subset
from emea.rules import implied_pairs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.subsumption import Subsumption

from ..baselines.random_pairs import overlapping_pair
from ..rules.literal_paris import both_directions, inverse_functionality, pairs

Pair = tuple[int, int]


def random_inclusions(rng: np.random.Generator, pair: GraphPair) -> Subsumption:
    """Of about half the pairs of relations."""
    num_source, num_target = (
        2 * pair.source.num_relations,
        2 * pair.target.num_relations,
    )
    keys = np.flatnonzero(rng.random(num_source * num_target) < 0.5)
    probs = (torch.from_numpy(rng.random(len(keys))).float() for _ in range(2))
    return Subsumption(torch.from_numpy(keys), *probs, num_target)


def random_matching(rng: np.random.Generator, pair: GraphPair) -> Matching:
    """Of the pair's links, all with some probability, one of them certain."""
    num_source, num_target = pair.source.num_entities, pair.target.num_entities
    links = torch.from_numpy(pair.links.copy())
    matching = Matching.of_links(links, num_source, num_target)
    probs = matching.probs * torch.from_numpy(rng.random(num_source))
    probs[links[:1, 0]] = 1
    return Matching(matching.targets, probs, num_target)


def random_similarity(seed: int, pair: GraphPair) -> Similarity:
    generator = torch.Generator().manual_seed(seed)
    sizes = (pair.source.num_entities, pair.target.num_entities)
    source, target = (torch.randn(size, 4, generator=generator) for size in sizes)
    return Cosine()(source.double(), target.double())


def single(value: float) -> float:
    """As single precision keeps it."""
    return float(np.float32(value))


def all_implied(
    pair: GraphPair,
    matching: Matching,
    included: Subsumption,
    least_evidence: float,
    max_members: int = 1000,
) -> dict[Pair, int]:
    """Doubt of every pair that matched neighbours imply, in fixed point."""
    source, target = both_directions(pair.source), both_directions(pair.target)
    fun, fun2 = inverse_functionality(source), inverse_functionality(target)
    known = included.as_dict()
    members = [Counter((r, n) for _, r, n in triples) for triples in (source, target)]
    doubts: dict[Pair, int] = defaultdict(int)
    for x, r, n in source:
        for x2, r2, n2 in target:
            if int(matching.targets[n]) != n2:
                continue
            if max(members[0][r, n], members[1][r2, n2]) > max_members:
                continue
            forth, back = known.get((r, r2), (0.0, 0.0))
            prob = float(matching.probs[n])
            parts = back * single(fun[r]) * prob, forth * single(fun2[r2]) * prob
            log = sum(math.log1p(-min(part, 1 - 1e-7)) for part in parts)
            if -math.expm1(log) > least_evidence:
                doubts[x, x2] += round(log * 2**32)
    return doubts


def check(
    pair: GraphPair,
    seed: int,
    num_pairs: int,
    least_evidence: float,
    max_members: int = 1000,
    free: Subset | None = None,
) -> int:
    """Compare, and return the number of pairs."""
    rng = np.random.default_rng(seed)
    matching, included = random_matching(rng, pair), random_inclusions(rng, pair)
    graphs = DirectedTriples(pair.source), DirectedTriples(pair.target)
    similarity = random_similarity(seed, pair)
    found = Propagation(*graphs, num_pairs, least_evidence)(
        matching, included, similarity, free
    )
    kept = list(zip(*(ids.tolist() for ids in found), strict=True))
    assert len(set(kept)) == len(kept)
    doubts = all_implied(pair, matching, included, least_evidence, max_members)
    if free is not None:
        doubts = {at: doubt for at, doubt in doubts.items() if free.source[at[0]]}
        doubts = {at: doubt for at, doubt in doubts.items() if free.target[at[1]]}
    scores = similarity.scores(torch.arange(pair.source.num_entities)).tolist()
    expected = set()
    for side in (0, 1):
        by_entity: dict[int, list[Pair]] = defaultdict(list)
        for implied in doubts:
            by_entity[implied[side]].append(implied)
        for offers in by_entity.values():
            # least doubtful first, then most similar
            order = sorted(offers, key=lambda at: (doubts[at], -scores[at[0]][at[1]]))
            expected |= set(order[:num_pairs])
    assert set(kept) == expected
    return len(kept)


@pytest.mark.parametrize("num_pairs", [1, 3, 99])
@pytest.mark.parametrize(
    ("least_evidence", "block"), [(0.01, 2**20), (0.3, 2**20), (0.01, 1)], ids=str
)
def test_equals_brute_force(
    num_pairs: int, least_evidence: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (implied_pairs, propagation):
        monkeypatch.setattr(module, "EVIDENCE_PER_BLOCK", {"cpu": block})
    assert sum(
        check(overlapping_pair(seed, 9), seed, num_pairs, least_evidence)
        for seed in (0, 1)
    )


def test_large_groups_imply_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = overlapping_pair(0, 9)
    monkeypatch.setattr(implied_pairs, "MAX_MEMBERS", 1)
    bounded = check(pair, 0, 99, 0.01, max_members=1)
    monkeypatch.undo()
    assert 0 < bounded < check(pair, 0, 99, 0.01)


def test_labelled_entities_have_no_implied_pairs() -> None:
    pair = overlapping_pair(0, 9)
    labels = torch.from_numpy(pair.links[:3].copy())
    free = Subset.unlabelled(random_similarity(0, pair), labels)
    assert int(free.source.sum()) == pair.source.num_entities - 3
    assert 0 < check(pair, 0, 3, 0.01, free=free) < check(pair, 0, 3, 0.01)


@given(pairs(), st.integers(0, 2**32), st.integers(1, 4))
def test_equals_brute_force_on_odd_graphs(
    pair: GraphPair, seed: int, num_pairs: int
) -> None:
    check(pair, seed, num_pairs, 0.01)


def test_nothing_matched_implies_nothing() -> None:
    pair = overlapping_pair(0)
    graphs = DirectedTriples(pair.source), DirectedTriples(pair.target)
    nobody = Matching.of_links(torch.zeros(0, 2, dtype=torch.int64), 12, 12)
    included = random_inclusions(np.random.default_rng(0), pair)
    similarity = random_similarity(0, pair)
    sources, targets = Propagation(*graphs)(nobody, included, similarity)
    assert sources.dtype == targets.dtype == torch.int64
    assert len(sources) == len(targets) == 0


@pytest.mark.parametrize("place", [1, 3])
def test_smallest_values_of_groups(place: int) -> None:
    rng = np.random.default_rng(0)
    values, groups = rng.integers(-9, 1, 60), rng.integers(0, 20, 60)
    found = smallest_of_groups(
        torch.from_numpy(values), torch.from_numpy(groups), 25, place, 1
    )
    own = [sorted(values[groups == group].tolist()) for group in range(25)]
    assert found.tolist() == [
        numbers[place - 1] if len(numbers) >= place else 1 for numbers in own
    ]
    assert {len(numbers) for numbers in own} & {0, place}
