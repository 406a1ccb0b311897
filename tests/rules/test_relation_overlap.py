"""The overlap of relations, compared with a slow reference over Python sets."""

import math
from collections.abc import Iterable
from unittest.mock import patch

import numpy as np
import pytest
import torch

from emea.data.graph import KnowledgeGraph
from emea.matching.pair_table import PairTable
from emea.rules.directed_triples import DirectedTriples
from emea.rules.relation_overlap import LEAST_INCLUSION, PRIOR, RelationOverlap
from emea.rules.subsumption import Subsumption
from emea.runtime import threads
from emea.runtime.block_memory import limit_blocks
from emea.runtime.threads import index_ranges

ENTITIES, RELATIONS = (12, 15), (3, 4)


def graph(rng: np.random.Generator, side: int) -> KnowledgeGraph:
    triples = np.stack(
        [
            rng.integers(0, ENTITIES[side] - 1, 30),  # the last entity has no triple
            rng.integers(0, RELATIONS[side], 30),
            rng.integers(0, ENTITIES[side] - 1, 30),
        ],
        axis=1,
    )
    return KnowledgeGraph(triples, ENTITIES[side], RELATIONS[side])


def inclusions(rng: np.random.Generator) -> Subsumption:
    num_keys = 4 * RELATIONS[0] * RELATIONS[1]
    keys = np.sort(rng.choice(num_keys, num_keys // 2, replace=False))
    probs = rng.random((2, len(keys))).astype(np.float32) * (
        rng.random(len(keys)) < 0.7
    )
    first, second = (torch.from_numpy(side.astype(np.float32)) for side in probs)
    return Subsumption(torch.from_numpy(keys), first, second, 2 * RELATIONS[1])


def relations_of(graph: KnowledgeGraph) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(graph.num_entities)]
    for head, relation, tail in graph.triples.tolist():
        found[head].add(relation)
        found[tail].add(relation + graph.num_relations)
    return found


def reference(
    sets: tuple[list[set[int]], list[set[int]]],
    likelier: dict[tuple[int, int], float],
    pair: int,
) -> float:
    """Return the overlap of entity ``pair // num_target`` with entity ``pair % num_target``."""

    def share(here: int, entity: int, other: int) -> float:
        def value(relation: int, partner: int) -> float:
            key = (relation, partner) if here == 0 else (partner, relation)
            return likelier.get(key, 0.0)

        def best(relation: int, partners: Iterable[int]) -> float:
            return max((value(relation, partner) for partner in partners), default=0.0)

        everything = range(2 * RELATIONS[1 - here])
        found = expected = PRIOR
        for relation in sets[here][entity]:
            having = sum(relation in one for one in sets[here])
            weight = -math.log(having / ENTITIES[here])
            found += weight * best(relation, sets[1 - here][other])
            expected += weight * best(relation, everything)
        return min(1.0, found / expected)

    source, target = divmod(pair, ENTITIES[1])
    return math.sqrt(share(0, source, target) * share(1, target, source))


@pytest.mark.usefixtures("each_kernels")
@pytest.mark.parametrize("seed", range(5))
def test_equals_a_reference_over_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graphs = graph(rng, 0), graph(rng, 1)
    included = inclusions(rng)
    targets = torch.from_numpy(np.argsort(rng.random(ENTITIES), axis=1)[:, :6].copy())
    filled = torch.from_numpy(rng.random(tuple(targets.shape)) < 0.8)
    table = PairTable(targets, torch.zeros(targets.shape), filled, ENTITIES[1])
    overlap = RelationOverlap(*(DirectedTriples(one) for one in graphs))
    values = overlap(table, included)
    with patch.object(threads, "thread_ranges", lambda size: index_ranges(size, 3)):
        assert torch.equal(overlap(table, included), values)
    likelier = {key: max(probs) for key, probs in included.as_dict().items()}
    likelier = {key: prob for key, prob in likelier.items() if prob >= LEAST_INCLUSION}
    sets = relations_of(graphs[0]), relations_of(graphs[1])
    for row, slot in np.ndindex(*targets.shape):
        wanted = 0.0
        if filled[row, slot]:
            wanted = reference(
                sets, likelier, row * ENTITIES[1] + int(targets[row, slot])
            )
        assert values[row, slot].item() == pytest.approx(wanted, rel=1e-5)
    assert values[filled].std() > 0.05
    try:
        limit_blocks(1e-9)
        assert torch.equal(overlap(table, included), values)
    finally:
        limit_blocks(1.0)


@pytest.mark.usefixtures("each_kernels")
def test_without_inclusions_all_pairs_are_equal() -> None:
    rng = np.random.default_rng(0)
    overlap = RelationOverlap(
        DirectedTriples(graph(rng, 0)), DirectedTriples(graph(rng, 1))
    )
    empty = Subsumption(
        torch.zeros(0, dtype=torch.int64), *[torch.zeros(0)] * 2, 2 * RELATIONS[1]
    )
    targets = torch.arange(ENTITIES[1]).repeat(ENTITIES[0], 1)
    table = PairTable(
        targets,
        torch.zeros(targets.shape),
        torch.ones_like(targets).bool(),
        ENTITIES[1],
    )
    assert torch.equal(overlap(table, empty), torch.ones(targets.shape))
