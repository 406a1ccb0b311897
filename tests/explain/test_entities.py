"""Rows of beliefs, and pairs that a file asks for."""

from pathlib import Path
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.data.graph import KnowledgeGraph
from emea.data.names import EntityIndex
from emea.explain.entities import (
    believed_back,
    best_of,
    listed_pairs,
    prob_of,
    rank_of,
    ranked_targets,
    slot_of,
)
from emea.matching.beliefs import Beliefs

ROWS = Beliefs(
    torch.tensor([[4, 2, 0, 0], [1, 3, 0, 0], [2, 1, 0, 0]]),
    torch.tensor([[0.2, 0.5, 0.1, 0.0], [0.0, 0.0, 0.0, 0.0], [0.6, 0.3, 0.0, 0.0]]),
)


def test_candidates_by_probability() -> None:
    assert ranked_targets(ROWS, 0) == [2, 4, 0]
    assert ranked_targets(ROWS, 1) == []
    assert [rank_of(ROWS, 0, target) for target in range(5)] == [3, None, 1, None, 2]


def test_a_target_that_also_names_empty_slots_keeps_its_own() -> None:
    assert slot_of(ROWS, 0, 0) == 2
    assert prob_of(ROWS, 0, 0) == ROWS.probs[0, 2]
    assert slot_of(ROWS, 0, 3) is None and prob_of(ROWS, 0, 3) is None
    assert prob_of(None, 0, 0) is None


def test_the_best_target_and_no_target() -> None:
    assert best_of(ROWS, 0) == (2, 0.5)
    assert best_of(ROWS, 1) == (None, 0.0)


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 6))
def test_beliefs_read_backwards(seed: int, num_source: int, num_target: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(num_target, (num_source, 3), generator=generator)
    probs = torch.rand(num_source, 3, generator=generator).clamp(min=0.4) - 0.4
    back = believed_back(Beliefs(targets, probs), num_target)
    for target in range(num_target):
        claims = [
            (p, s)
            for s in range(num_source)
            for t, p in _row(targets, probs, s)
            if t == target
        ]
        most = max(claims, default=(0.0, 0))
        assert float(back.probs[target]) == most[0]
        if most[0] > 0:
            assert (most[0], int(back.targets[target])) in claims


def _row(
    targets: torch.Tensor, probs: torch.Tensor, source: int
) -> list[tuple[int, float]]:
    return list(zip(targets[source].tolist(), probs[source].tolist(), strict=True))


NAMES = ["a\u2028b", "c\x85d", "e\x0cf"]


def test_names_may_hold_what_ends_a_line_elsewhere(tmp_path: Path) -> None:
    graph = KnowledgeGraph([[0, 0, 1], [1, 0, 2]], 3, 1, NAMES)
    index: Any = EntityIndex(graph, "entity")
    lines = ["source\ttarget", *(f"{name}\t{name}" for name in NAMES), ""]
    for end in ("\n", "\r\n"):
        (tmp_path / "asked.tsv").write_bytes(end.join(lines).encode())
        assert listed_pairs(tmp_path / "asked.tsv", index, index) == [
            (0, 0),
            (1, 1),
            (2, 2),
        ]
