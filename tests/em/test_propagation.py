"""Implied pairs against brute force over all pairs."""

import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph_pair import GraphPair
from emea.em.propagation import Propagation
from emea.matching.matching import Matching
from emea.matching.similarity import Cosine, Similarity
from emea.rules.directed_triples import DirectedTriples
from emea.rules.subsumption import Subsumption

from ..baselines.random_pairs import overlapping_pair
from ..rules.literal_paris import both_directions, inverse_functionality, pairs

Pair = tuple[int, int]


def random_inclusions(rng: np.random.Generator, pair: GraphPair) -> Subsumption:
    """Of about half the pairs of relations."""
    num_source, num_target = 2 * pair.source.num_relations, 2 * pair.target.num_relations
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
    pair: GraphPair, matching: Matching, included: Subsumption, least_evidence: float
) -> dict[Pair, int]:
    """Doubt of every pair that matched neighbours imply, in fixed point."""
    source, target = both_directions(pair.source), both_directions(pair.target)
    fun, fun2 = inverse_functionality(source), inverse_functionality(target)
    known = included.as_dict()
    doubts: dict[Pair, int] = defaultdict(int)
    for x, r, n in source:
        for x2, r2, n2 in target:
            if int(matching.targets[n]) != n2:
                continue
            forth, back = known.get((r, r2), (0.0, 0.0))
            prob = float(matching.probs[n])
            parts = back * single(fun[r]) * prob, forth * single(fun2[r2]) * prob
            log = sum(math.log1p(-min(part, 1 - 1e-7)) for part in parts)
            if -math.expm1(log) > least_evidence:
                doubts[x, x2] += round(log * 2**32)
    return doubts


def check(pair: GraphPair, seed: int, num_pairs: int, least_evidence: float) -> int:
    """Compare, and say how many pairs there were."""
    rng = np.random.default_rng(seed)
    matching, included = random_matching(rng, pair), random_inclusions(rng, pair)
    graphs = DirectedTriples(pair.source), DirectedTriples(pair.target)
    similarity = random_similarity(seed, pair)
    propagation = Propagation(*graphs, num_pairs, least_evidence)
    found = propagation(matching, included, similarity)
    kept = list(zip(*(ids.tolist() for ids in found), strict=True))
    assert len(set(kept)) == len(kept)
    doubts = all_implied(pair, matching, included, least_evidence)
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
@pytest.mark.parametrize("least_evidence", [0.01, 0.3])
def test_equals_brute_force(num_pairs: int, least_evidence: float) -> None:
    assert sum(check(overlapping_pair(seed, 9), seed, num_pairs, least_evidence) for seed in (0, 1))


@given(pairs(), st.integers(0, 2**32), st.integers(1, 4))
def test_equals_brute_force_on_odd_graphs(pair: GraphPair, seed: int, num_pairs: int) -> None:
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
