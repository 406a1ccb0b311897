"""Triples in both directions."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from omegaconf import DictConfig

from emea.data.graph import KnowledgeGraph
from emea.rules import directed_triples
from emea.rules.directed_triples import DirectedTriples
from emea.run.job import run_job

from .literal_paris import both_directions, graphs, inverse_functionality


@settings(deadline=None)
@given(graphs())
def test_holds_every_directed_triple_once_sorted_by_pair(graph: KnowledgeGraph) -> None:
    triples = DirectedTriples(graph)
    pairs = list(
        zip(triples.pair_heads.tolist(), triples.pair_tails.tolist(), strict=True)
    )
    assert pairs == sorted(set(pairs))
    held = []
    for (head, tail), start, size in zip(
        pairs, triples.pair_starts.tolist(), triples.pair_sizes.tolist(), strict=False
    ):
        assert size > 0
        held += [
            (head, r, tail) for r in triples.relations[start : start + size].tolist()
        ]
    assert len(held) == len(triples.relations)
    assert sorted(held) == sorted(both_directions(graph))


@settings(deadline=None)
@given(graphs())
def test_counts_each_relation(graph: KnowledgeGraph) -> None:
    triples = DirectedTriples(graph)
    directed = both_directions(graph)
    functionality = inverse_functionality(directed)
    assert (
        triples.num_directed == len(triples.relation_sizes) == 2 * graph.num_relations
    )
    for relation in range(triples.num_directed):
        size = sum(r == relation for _, r, _ in directed)
        assert triples.relation_sizes[relation] == size
        expected = functionality.get(relation, 0.0)
        assert abs(triples.inverse_functionality[relation].item() - expected) < 1e-6


def test_leaves_checkpoints_alone() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    assert not DirectedTriples(graph).state_dict()


@pytest.mark.parametrize(
    "options",
    [
        ("em=paper", "rule=paris_avoid_conflict", "em.iterations=1"),
        ("em=dual", "em.iterations=1"),
        ("method=paris",),
    ],
    ids=["paper", "dual", "paris"],
)
def test_a_run_changes_no_shared_value(
    options: tuple[str, ...],
    tiny_config: Callable[..., DictConfig],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared: list[tuple[np.ndarray, np.ndarray]] = []
    read = directed_triples._directed

    def recorded(graph: KnowledgeGraph) -> dict[str, np.ndarray]:
        values = read(graph)
        shared.extend((value, value.copy()) for value in values.values())
        return values

    monkeypatch.setattr(directed_triples, "_directed", recorded)
    run_job(tiny_config(*options), tmp_path)
    assert len(shared) >= 12
    for values, before in shared:
        np.testing.assert_array_equal(values, before)
