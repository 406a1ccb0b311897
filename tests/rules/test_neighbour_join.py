"""The join of candidates over edges, against loops."""

from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.kernels import choice, edge_join
from emea.kernels.edge_join import Edges
from emea.matching.beliefs import Beliefs
from emea.rules.directed_triples import DirectedTriples
from emea.rules.neighbour_join import NeighbourJoin, join_neighbours
from emea.runtime import threads
from emea.runtime.threads import index_ranges

from .literal_paris import beliefs_of, both_directions, pairs

Row = tuple[int, ...]


def rows(join: NeighbourJoin) -> list[Row]:
    columns = (
        join.entity,
        join.slot,
        join.neighbour,
        join.neighbour_slot,
        join.relation,
        join.target_relation,
    )
    assert {len(column) for column in columns} == {len(join)}
    return list(zip(*(column.tolist() for column in columns), strict=True))


def looped(
    pair: GraphPair,
    beliefs: Beliefs,
    skip_impossible: bool,
    neighbours: Beliefs | None = None,
) -> list[Row]:
    targets, others = beliefs.targets.tolist(), (neighbours or beliefs).targets.tolist()
    probs = (neighbours or beliefs).probs.tolist()
    found = []
    for e, r, n in both_directions(pair.source):
        for e2, r2, n2 in both_directions(pair.target):
            if e2 in targets[e] and n2 in others[n]:
                slot, neighbour_slot = targets[e].index(e2), others[n].index(n2)
                if probs[n][neighbour_slot] > 0 or not skip_impossible:
                    found.append((e, slot, n, neighbour_slot, r, r2))
    return sorted(found)


def joined(
    pair: GraphPair,
    beliefs: Beliefs,
    skip_impossible: bool = True,
    neighbours: Beliefs | None = None,
    filled: Tensor | None = None,
) -> NeighbourJoin:
    """Return the join by torch's operations, which must equal that of the compiled loops."""
    source, target = DirectedTriples(pair.source), DirectedTriples(pair.target)
    join_them = partial(
        join_neighbours,
        source,
        target,
        beliefs,
        skip_impossible=skip_impossible,
        neighbours=neighbours,
        filled=filled,
    )
    with patch.object(choice, "LEAST_OPERATIONS", 0):
        assert choice.uses_numba(beliefs.targets, 0)
        by_loops = join_them()
        with patch.object(threads, "thread_ranges", lambda size: index_ranges(size, 3)):
            assert rows(join_them()) == rows(by_loops)
    with patch.object(choice._Switch, "allows_compiled", False):
        join = join_them()
    assert rows(by_loops) == rows(join)
    heads = beliefs.targets[join.entity, join.slot]
    tails = (neighbours or beliefs).targets[join.neighbour, join.neighbour_slot]
    assert torch.equal(by_loops.target_pair, join.target_pair)
    assert torch.equal(target.pair_heads[join.target_pair], heads)
    assert torch.equal(target.pair_tails[join.target_pair], tails)
    return join


@settings(deadline=None)
@given(
    st.data(), pairs(), st.booleans(), st.booleans(), st.sampled_from([2**22, 60, 7, 1])
)
def test_equals_loops(
    data: st.DataObject,
    pair: GraphPair,
    skip_impossible: bool,
    are_own: bool,
    lookups: int,
) -> None:
    beliefs = data.draw(beliefs_of(pair))
    neighbours = data.draw(beliefs_of(pair)) if are_own else None
    with patch.dict(edge_join.LOOKUPS_PER_BLOCK, cpu=lookups):
        join = joined(pair, beliefs, skip_impossible, neighbours)
    assert sorted(rows(join)) == looped(pair, beliefs, skip_impossible, neighbours)


@settings(deadline=None)
@given(st.data(), pairs())
def test_empty_slots_are_left_out(data: st.DataObject, pair: GraphPair) -> None:
    beliefs = data.draw(beliefs_of(pair))
    filled = (
        torch.rand(beliefs.targets.shape, generator=torch.Generator().manual_seed(0))
        < 0.5
    )
    every = rows(joined(pair, beliefs))
    expected = [row for row in every if filled[row[0], row[1]]]
    assert rows(joined(pair, beliefs, filled=filled)) == expected


def test_blocks_bound_the_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = np.array([[i, 0, (i + 1) % 10] for i in range(10)])
    graph = KnowledgeGraph(ring, 10, 1)
    pair = GraphPair("ring", graph, graph, np.empty((0, 2), dtype=np.int64))
    beliefs = Beliefs(torch.arange(20).view(10, 2) % 10, torch.full((10, 2), 0.5))
    sizes = []
    may_join = Edges.may_join

    def counted(self: Edges, heads: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
        answers = may_join(self, heads, tails)
        sizes.append(answers.numel())
        return answers

    monkeypatch.setattr(Edges, "may_join", counted)
    monkeypatch.setitem(edge_join.LOOKUPS_PER_BLOCK, "cpu", 12)
    joined(pair, beliefs, True)
    # 20 directed pairs of 4 look-ups each
    assert sum(sizes) == 80
    assert max(sizes) == 12


def test_finds_the_edges_and_sorts_out_most_other_pairs() -> None:
    rng = np.random.default_rng(2)
    num = 300
    triples = np.stack([rng.integers(0, n, 1200) for n in (num, 3, num)], axis=1)
    directed = DirectedTriples(KnowledgeGraph(triples, num, 3))
    edges = Edges(directed.pair_heads, directed.pair_tails, num)
    expected = torch.full((num, num), -1)
    expected[directed.pair_heads, directed.pair_tails] = torch.arange(
        len(directed.pair_heads)
    )
    assert torch.equal(edges.find(torch.arange(num * num)).view(num, num), expected)
    heads, tails = torch.arange(num).unsqueeze(1), torch.arange(num).expand(num, num)
    answers = edges.may_join(heads, tails).squeeze(1)
    assert answers[expected >= 0].all()
    # eight neighbours set at most eight of 64 bits
    assert answers[expected < 0].float().mean() < 0.2
