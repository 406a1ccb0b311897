"""Eq. 4-7 against a joint distribution written out in full."""

from collections import Counter

import numpy as np
import pytest
import torch

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.em.paper_step import compatible_beliefs, conditional
from emea.matching.beliefs import Beliefs
from emea.rules.avoid_conflict import AvoidConflict
from emea.rules.paris import PARIS
from emea.rules.rule import RuleView

from .enumerated_model import (
    Assignment,
    EnumeratedModel,
    TableRule,
    certain,
    random_beliefs,
    random_model,
)


@pytest.mark.parametrize("seed", range(3))
def test_conditional_is_that_of_the_whole_joint(seed: int) -> None:
    model = random_model(seed)
    rule, weights = TableRule(model), torch.from_numpy(model.weights)
    for y in list(model.assignments())[::7]:
        probs = conditional(rule(certain(y, 3)), weights).numpy()
        for e in range(model.num_source):
            np.testing.assert_allclose(
                np.log(probs[e]), model.log_conditional(e, y), atol=1e-12
            )


SOURCE = KnowledgeGraph(
    np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [0, 1, 2], [1, 1, 2]]),
    num_entities=4,
    num_relations=2,
)
TARGET = KnowledgeGraph(
    np.array([[0, 0, 1], [1, 0, 2], [0, 1, 2], [2, 1, 1]]),
    num_entities=3,
    num_relations=2,
)
LINKS = torch.tensor([[0, 0], [1, 1], [2, 2]])
"""What relation inclusions are counted from."""


def paris_tables() -> EnumeratedModel:
    """Eq. 19 of every subset F_e for every assignment of its members."""
    directed = []
    for graph in (SOURCE, TARGET):
        triples = {tuple(t) for t in graph.triples.tolist()}
        directed.append(
            triples | {(t, r + graph.num_relations, h) for h, r, t in triples}
        )
    source, target = directed
    size, size2 = (Counter(r for _, r, _ in triples) for triples in directed)
    tails, tails2 = (
        Counter(r for r, _ in {(r, t) for _, r, t in triples}) for triples in directed
    )
    to_target = dict(LINKS.tolist())

    def matched(r: int, r2: int) -> int:
        return sum(
            (to_target.get(h), r2, to_target.get(t)) in target
            for h, s, t in source
            if s == r
        )

    def value(e: int, y: dict[int, int]) -> float:
        doubt = 1.0
        for r, n in [(r, n) for h, r, n in source if h == e]:
            for r2, n2 in [(r2, n2) for h, r2, n2 in target if h == y[e]]:
                if y[n] == n2:
                    doubt *= 1 - matched(r, r2) / size2[r2] * tails[r] / size[r]
                    doubt *= 1 - matched(r, r2) / size[r] * tails2[r2] / size2[r2]
        return 1 - doubt

    members = [(e, *sorted({n for h, _, n in source if h == e})) for e in range(4)]
    tables = []
    for subset in members:
        table = np.zeros((3,) * len(subset) + (1,))
        for y in np.ndindex(*table.shape[:-1]):
            table[y] = value(subset[0], dict(zip(subset, y, strict=True)))
        tables.append(table)
    return EnumeratedModel(3, members, tables, np.array([2.5]))


def paris_conditional(y: Assignment, blanket: bool) -> np.ndarray:
    pair = GraphPair("pair", SOURCE, TARGET, np.empty((0, 2), dtype=np.int64))
    rule = PARIS(pair, markov_blanket=blanket)
    beliefs = certain(y, 3, torch.float32)
    rule.prepare(RuleView(beliefs, torch.zeros(4, 1), LINKS))
    return conditional(rule(beliefs), torch.tensor([2.5], dtype=torch.float64)).numpy()


def test_paris_with_the_blanket_is_the_conditional_of_the_whole_joint() -> None:
    model = paris_tables()
    for y in model.assignments():
        probs = paris_conditional(y, blanket=True)
        for e in range(4):
            np.testing.assert_allclose(
                probs[e], np.exp(model.log_conditional(e, y)), atol=1e-5
            )


def test_paris_without_the_blanket_is_the_own_subset_alone() -> None:
    model = paris_tables()
    far = 0.0
    for y in model.assignments():
        probs = paris_conditional(y, blanket=False)
        for e, (members, table) in enumerate(
            zip(model.members, model.tables, strict=True)
        ):
            own = np.exp(2.5 * table[(slice(None), *(y[n] for n in members[1:]), 0)])
            np.testing.assert_allclose(probs[e], own / own.sum(), atol=1e-5)
            far = max(far, np.abs(probs[e] - np.exp(model.log_conditional(e, y))).max())
    assert far > 0.1  # so the blanket makes a difference here


def test_compatible_beliefs_are_the_conditional_with_labels_certain() -> None:
    beliefs = Beliefs(torch.tensor([[3, 1], [0, 2], [1, 0]]), torch.full((3, 2), 0.5))
    values = torch.rand(3, 2, 2, generator=torch.Generator().manual_seed(0))
    weights = torch.tensor([2.0, 0.5], dtype=torch.float64)
    q = compatible_beliefs(beliefs, values, weights, torch.tensor([[1, 2]]))
    expected = conditional(values, weights)
    assert torch.equal(q.probs[[0, 2]], expected[[0, 2]])
    assert q.probs[1].tolist() == [0, 1]
    assert torch.equal(q.targets, beliefs.targets)


def test_without_evidence_the_neural_order_is_kept() -> None:
    beliefs = Beliefs(torch.tensor([[9, 4, 7]]), torch.tensor([[0.5, 0.3, 0.2]]))
    none = torch.zeros(0, 2, dtype=torch.int64)
    q = compatible_beliefs(
        beliefs, torch.full((1, 3, 1), 0.3), torch.tensor([7.0]), none
    )
    assert q.best_targets().tolist() == [9]


EMBEDDINGS = torch.tensor(
    [[1.0, 0.0], [1.0, 0.2], [1.0, 0.5], [0.0, 1.0]], dtype=torch.float64
)
NEIGHBOURS = [(1, 2), (0, 2), (1, 0), (2, 1)]
"""The two nearest of each entity."""
WEIGHTS = np.array([1.4, 0.9])


def avoid_conflict_tables(predicted: list[int]) -> EnumeratedModel:
    """Both indicators of every subset for every assignment of its members."""
    members = [(e, *neighbours) for e, neighbours in enumerate(NEIGHBOURS)]
    tables = []
    for e in range(4):
        table = np.zeros((3, 3, 3, 2))
        for y in np.ndindex(3, 3, 3):
            table[y] = y[0] == predicted[e], y[0] not in y[1:]
        tables.append(table)
    return EnumeratedModel(3, members, tables, WEIGHTS)


def avoid_conflict(beliefs: Beliefs, mappings: str) -> AvoidConflict:
    pair = GraphPair("pair", SOURCE, TARGET, np.empty((0, 2), dtype=np.int64))
    rule = AvoidConflict(pair, num_neighbours=2, mappings=mappings)
    rule.prepare(RuleView(beliefs, EMBEDDINGS))
    return rule


@pytest.mark.parametrize("mappings", ["best", "expected"])
def test_avoid_conflict_is_the_conditional_of_the_whole_joint(mappings: str) -> None:
    model = avoid_conflict_tables(predicted=[0, 0, 0, 0])
    for y in model.assignments():
        beliefs = certain(y, 3)
        values = avoid_conflict(beliefs, mappings)(beliefs)
        probs = conditional(values, torch.from_numpy(WEIGHTS)).numpy()
        for e in range(4):
            np.testing.assert_allclose(
                np.log(probs[e]), model.log_conditional(e, y), atol=1e-12
            )


@pytest.mark.parametrize("seed", range(5))
def test_avoid_conflict_expects_over_all_mappings_of_the_others(seed: int) -> None:
    labels = torch.tensor([[1, 2]])
    beliefs = random_beliefs(avoid_conflict_tables([0] * 4), seed, labels)
    model = avoid_conflict_tables(beliefs.targets[:, 0].tolist())
    weights = torch.from_numpy(WEIGHTS)
    probs = conditional(avoid_conflict(beliefs, "expected")(beliefs), weights)
    expected = conditional(TableRule(model)(beliefs), weights)
    torch.testing.assert_close(probs, expected, atol=1e-12, rtol=0)
